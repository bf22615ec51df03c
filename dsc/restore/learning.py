"""The dictionary of an image, learned from some of its own patches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dsc.counter import uniform_bits
from dsc.dictionary import Dictionary, LearnConfig, learn_many
from dsc.engine import Engine
from dsc.errors import DscError, counted
from dsc.images import ALL, COLOR_NAMES, Channels, Image, Joined
from dsc.patches import ArrayPatches
from dsc.pursuit import Coder
from dsc.restore.config import TOGETHER, RestoreConfig

N_PATCHES = 2**15  # that a dictionary is learned from, at most

Floats = NDArray[np.float32]


def pick_patches(parts: Sequence[Floats], config: RestoreConfig) -> Floats:
    """(patch, y, x, channel) squares at random places of parts of an image, each place once.

    Parts are (y, x, channel).
    """
    side = config.diameter
    grids = [[size - side + 1 for size in part.shape[:2]] for part in parts]
    counts = [rows * columns for rows, columns in grids]
    numbers = np.arange(min(sum(counts), N_PATCHES))
    if sum(counts) > N_PATCHES:
        bits = uniform_bits(config.seed, "restore", numbers)
        numbers = np.unique(bits % np.uint64(sum(counts))).astype(np.int64)
    squares, first = [], 0
    for part, count, (_, columns) in zip(parts, counts, grids, strict=True):
        own = numbers[(numbers >= first) & (numbers < first + count)] - first
        windows = np.lib.stride_tricks.sliding_window_view(part, (side, side), (0, 1))
        squares.append(np.moveaxis(windows[own // columns, own % columns], 1, 3))
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
    return coder_of(models[0], sparsity, [1.0] * models[0].n_channels)


def groups_of(
    image: Image, n_colors: int, model: Dictionary | None, colors: str
) -> list[tuple[int, ...]]:
    """The colors of an image that are restored together: as a model has them, or as is wanted."""
    if model is None and colors == TOGETHER:
        return [tuple(range(n_colors))]
    if model is None or model.n_channels == 1:
        return [(color,) for color in range(n_colors)]
    if isinstance(image.source, Joined):  # in the order in which the model has them
        order = list(range(n_colors))
    else:
        order = _order_of(model, n_colors)
    if len(order) != model.n_channels or sorted(order) != list(range(n_colors)):
        raise DscError(
            f"{image.name}: found {counted(n_colors, 'color')}, need the {model.n_channels} "
            "channels of the model: say which (--channel), or give a model of one channel, which "
            "restores each color by itself"
        )
    return [tuple(order)]


def _order_of(model: Dictionary, n_colors: int) -> list[int]:
    """The colors of an image in the order in which a model has them."""
    try:
        return Channels(1, n_colors, COLOR_NAMES).chosen(model.reading.get("channel", ALL))
    except DscError:  # the names of channels that were no colors
        return list(range(model.n_channels))


def coder_of(model: Dictionary, sparsity: int, units: Sequence[float]) -> Coder:
    """What codes patches with the atoms of a model, on its grid of angles.

    `units` are those of the channels, in which the patches are. A model has seen channel c in units
    of s_c: the span of its range, one if it has none. What is Σ a R(θ) d there is Σ a R(θ) D d in
    units u_c with D = diag(s_c / u_c), since a rotation acts in each channel alone and D is one
    number in each. So the atoms D d / ‖D d‖ are those of the model, whatever the scaling, and white
    noise is the same in all coordinates. Channels in the same proportions have the same atoms.
    """
    coder = model.coder
    most = min(sparsity, coder.basis.n_coords)
    spans = [high - low for low, high in model.reading.get("ranges", [(0, 1)] * len(units))]
    factor = np.array(spans) / np.array(units)
    atoms = coder.atoms
    if (factor != factor[0]).any():
        scaled = atoms * (factor / factor.max())[coder.basis.channel]
        norms = np.linalg.norm(scaled, axis=1, keepdims=True)
        atoms = (scaled / norms).astype(np.float32)
    return Coder(atoms, coder.basis, most, coder.n_angles, coder.pursuit)


def coder_identity(coder: Coder) -> str:
    """What decides the codes of disks, as text."""
    basis = coder.basis
    return (
        f"{coder.sha256} {basis.name} {basis.diameter} {coder.pursuit} {coder.sparsity} "
        f"{coder.n_angles}"
    )
