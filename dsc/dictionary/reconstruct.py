"""An image from its coded patches: overlapping disks averaged, band by band, without seams."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dsc.dictionary import kernels
from dsc.errors import DscError
from dsc.patches import cut_grid
from dsc.pursuit import Coder

BAND = 64  # rows of patches coded by one task

Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class BandStep:
    """What all tasks share: the coder, whether means are kept apart, pixels between patches."""

    coder: Coder
    center: bool
    stride: int


def check_image(image: ArrayLike, diameter: int, stride: int) -> Floats:
    """Grey values as float32; refuses what cannot be covered by patches."""
    grey = np.asarray(image)
    if grey.ndim != 2 or min(grey.shape) < diameter:
        raise DscError(
            f"image: found shape {grey.shape}, need (y, x) of at least {diameter} × {diameter}"
        )
    if not 1 <= stride <= diameter // 2:
        raise DscError(f"stride: found {stride}, need 1 to {diameter // 2}: no pixel left out")
    return grey.astype(np.float32)


def reconstruct_band(
    band: Floats, step: BandStep
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Sums of the coded patches of a band of rows, and how many patches cover each pixel."""
    coder, stride = step.coder, step.stride
    basis = coder.basis
    side = basis.diameter
    total, cover = np.zeros(band.shape), np.zeros(band.shape)
    dy, dx = np.nonzero(basis.mask)
    for y in range(0, len(band) - side + 1, stride):
        pixels = cut_grid(band[y : y + side], side, stride)
        means = pixels.mean(axis=1, keepdims=True) if step.center else np.float32(0)
        codes = coder.encode(basis.project(pixels - means))
        coded = basis.reconstruct(coder.decode(codes)) + means
        kernels.add_disks(coded, y, stride, dy, dx, total, cover)
    return total, cover
