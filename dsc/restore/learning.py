"""The dictionary of an image, learned from some of its own patches."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsc.counter import uniform_bits
from dsc.dictionary import Dictionary, LearnConfig, learn_many
from dsc.patches import ArrayPatches
from dsc.pursuit import Coder
from dsc.restore.config import RestoreConfig

N_PATCHES = 2**15  # that a dictionary is learned from, at most

Floats = NDArray[np.float32]


def pick_patches(image: NDArray[Any], config: RestoreConfig) -> NDArray[Any]:
    """(patch, y, x) squares at random places of an image, each place once."""
    side = config.diameter
    rows, columns = (size - side + 1 for size in image.shape)
    numbers = np.arange(rows * columns) if rows * columns <= N_PATCHES else np.arange(N_PATCHES)
    if rows * columns > N_PATCHES:
        bits = uniform_bits(config.seed, "restore", numbers)
        numbers = np.unique(bits % np.uint64(rows * columns)).astype(np.int64)
    windows = np.lib.stride_tricks.sliding_window_view(image, (side, side))
    return np.asarray(windows[numbers // columns, numbers % columns])


def learn_coder(
    squares: Floats, config: RestoreConfig, sparsity: int, tolerance: float, how: dict[str, Any]
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
    models = learn_many([(ArrayPatches(squares, center=True), learning)], **how)
    return coder_of(models[0], sparsity)


def coder_of(model: Dictionary, sparsity: int) -> Coder:
    """What codes patches with the atoms of a model, on its grid of angles."""
    coder = model.coder
    most = min(sparsity, coder.basis.n_coords)
    return Coder(coder.atoms, coder.basis, most, coder.n_angles, coder.pursuit)
