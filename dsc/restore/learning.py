"""The dictionary of an image, learned from some of its own patches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dsc.counter import uniform_bits
from dsc.dictionary import Dictionary, LearnConfig, learn_many
from dsc.engine import Engine
from dsc.errors import DscError
from dsc.patches import ArrayPatches
from dsc.pursuit import Coder
from dsc.restore.config import RestoreConfig

N_PATCHES = 2**15  # that a dictionary is learned from, at most

Floats = NDArray[np.float32]


def pick_patches(parts: Sequence[Floats], config: RestoreConfig) -> Floats:
    """(patch, y, x) squares at random places of parts of an image, each place once."""
    side = config.diameter
    grids = [[size - side + 1 for size in part.shape] for part in parts]
    counts = [rows * columns for rows, columns in grids]
    numbers = np.arange(min(sum(counts), N_PATCHES))
    if sum(counts) > N_PATCHES:
        bits = uniform_bits(config.seed, "restore", numbers)
        numbers = np.unique(bits % np.uint64(sum(counts))).astype(np.int64)
    squares, first = [], 0
    for part, count, (_, columns) in zip(parts, counts, grids, strict=True):
        own = numbers[(numbers >= first) & (numbers < first + count)] - first
        windows = np.lib.stride_tricks.sliding_window_view(part, (side, side))
        squares.append(windows[own // columns, own % columns])
        first += count
    return np.concatenate(squares)


def learn_coder(
    squares: Floats, config: RestoreConfig, sparsity: int, tolerance: float, engine: Engine
) -> Coder:
    """What codes patches by atoms learned from squares, down to a tolerance per pixel."""
    learning = LearnConfig(
        n_atoms=config.n_atoms,
        sparsity=min(sparsity, config.diameter),
        n_iterations=config.n_iterations,
        basis=config.basis,
        init="patches",
        tolerance=tolerance,
        seed=config.seed,
    )
    models = learn_many([(ArrayPatches(squares, center=True), learning)], scheduler=engine)
    return coder_of(models[0], sparsity)


def coder_of(model: Dictionary, sparsity: int) -> Coder:
    """What codes patches with the atoms of a model, on its grid of angles."""
    if model.n_channels > 1:
        raise DscError(
            f"model: found {model.n_channels} channels, need one: each channel of an image is "
            "restored by itself"
        )
    coder = model.coder
    most = min(sparsity, coder.basis.n_coords)
    return Coder(coder.atoms, coder.basis, most, coder.n_angles, coder.pursuit)


def coder_identity(coder: Coder) -> str:
    """What decides the codes of disks, as text."""
    basis = coder.basis
    return (
        f"{coder.sha256} {basis.name} {basis.diameter} {coder.pursuit} {coder.sparsity} "
        f"{coder.n_angles}"
    )
