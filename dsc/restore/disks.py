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
    mean of each channel of a disk, which is kept apart. Images are (y, x, channel), and the result
    has diameter − 1 pixels less on each side. The means are those of the first image; `restore`
    gets the coordinates of the disks of each image, of all channels together.
    """
    side = basis.diameter
    height, width, n_channels = images[0].shape
    total, cover = np.zeros((2, n_channels, height, width))
    offsets = np.argwhere(basis.mask)
    for y in range(0, height - side + 1, ROWS):
        rows = slice(y, min(y + ROWS + side - 1, height))
        disks = [cut_grid(image[rows], side, 1) for image in images]
        each = [pixels.reshape(len(pixels), n_channels, -1) for pixels in disks]
        means = [pixels.mean(axis=2, keepdims=True) for pixels in each]
        coords = [
            basis.project((pixels - mean).reshape(len(pixels), -1))
            for pixels, mean in zip(each, means, strict=True)
        ]
        restored, weight = restore(*coords)
        new = basis.reconstruct(restored).reshape(each[0].shape) + means[0]
        for channel in range(n_channels):
            own = np.ascontiguousarray(new[:, channel])
            kernels.add_disks(own, weight, y, offsets, total[channel], cover[channel])
    inner = (slice(None), *(slice(side - 1, 1 - side),) * 2)
    mean = np.asarray(total[inner] / cover[inner], np.float32)
    return np.ascontiguousarray(np.moveaxis(mean, 0, 2))


def inverse_variance(codes: Codes, n_channels: int) -> Floats:
    """(patch,) 1 / (C + K): a disk coded by C means and K atoms holds the noise of C + K."""
    return np.asarray(1 / (n_channels + codes.used.sum(axis=1)), np.float32)


def rotated_atoms(coder: Coder) -> Floats:
    """(atom, angle, coord) all atoms at all angles."""
    n_angles = coder.n_angles
    theta = np.tile(np.arange(n_angles) * (2 * np.pi / n_angles), len(coder.atoms))
    rotated = coder.basis.steer(np.repeat(coder.atoms, n_angles, axis=0), theta)
    return rotated.reshape(len(coder.atoms), n_angles, -1)
