"""Images from their overlapping disks: cut, coded, and averaged."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dsc.basis import SteerableBasis
from dsc.patches import cut_grid
from dsc.pursuit import Coder, Codes
from dsc.restore import kernels

ROWS = 8  # rows of disks coded at a time

Floats = NDArray[np.float32]
# the coordinates of disks, without their means, to new coordinates and weights
Restore = Callable[..., tuple[Floats, Floats]]


def average_disks(images: tuple[Floats, ...], basis: SteerableBasis, restore: Restore) -> Floats:
    """The weighted mean of the restored disks of an image, where all disks are inside of it.

    x̂ = Σ_p w_p (x̂_p + μ_p) / Σ_p w_p at every pixel, over the disks p that cover it; μ_p is the
    mean of a disk, which is kept apart. The result has diameter − 1 pixels less on each side. The
    means are those of the first image; `restore` gets the coordinates of the disks of each image.
    """
    side = basis.diameter
    height, width = images[0].shape
    total, cover = np.zeros((height, width)), np.zeros((height, width))
    offsets = np.argwhere(basis.mask)
    for y in range(0, height - side + 1, ROWS):
        rows = slice(y, min(y + ROWS + side - 1, height))
        disks = [cut_grid(image[rows], side, 1) for image in images]
        means = [pixels.mean(axis=1, keepdims=True) for pixels in disks]
        coords = [basis.project(p - m) for p, m in zip(disks, means, strict=True)]
        restored, weight = restore(*coords)
        kernels.add_disks(basis.reconstruct(restored) + means[0], weight, y, offsets, total, cover)
    inner = (slice(side - 1, 1 - side),) * 2
    return np.asarray(total[inner] / cover[inner], np.float32)


def inverse_variance(codes: Codes) -> Floats:
    """(patch,) 1 / (1 + K): a disk coded by its mean and K atoms holds the noise of 1 + K."""
    return np.asarray(1 / (1 + codes.used.sum(axis=1)), np.float32)


def rotated_atoms(coder: Coder) -> Floats:
    """(atom, angle, coord) all atoms at all angles."""
    n_angles = coder.n_angles
    theta = np.tile(np.arange(n_angles) * (2 * np.pi / n_angles), len(coder.atoms))
    rotated = coder.basis.steer(np.repeat(coder.atoms, n_angles, axis=0), theta)
    return rotated.reshape(len(coder.atoms), n_angles, -1)
