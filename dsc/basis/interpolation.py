"""Rotation of a cut-out patch by interpolation: what steering is compared with."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dsc.basis.grid import check_diameter, disk_mask
from dsc.errors import DscError, unknown_choice

Floats = NDArray[np.float64]

SMALLEST_WEIGHT = 0.1  # of the neighbours inside the disk, to be scaled up to one


def _nearest(distance: Floats) -> Floats:
    return np.where((distance >= -0.5) & (distance < 0.5), 1.0, 0.0)


def _bicubic(distance: Floats) -> Floats:
    """Keys' cubic convolution kernel with a = −½."""
    x = np.abs(distance)
    near = (1.5 * x - 2.5) * x**2 + 1
    far = ((-0.5 * x + 2.5) * x - 4) * x + 2
    return np.where(x <= 1, near, np.where(x < 2, far, 0.0))


KERNELS: dict[str, Callable[[Floats], Floats]] = {"nearest": _nearest, "bicubic": _bicubic}


def rotation_matrix(diameter: int, theta: float, method: str = "bicubic") -> sparse.csr_array:
    """The (n_pixels, n_pixels) sparse matrix that rotates a disk patch by `theta` radians.

    Counter-clockwise, as `SteerableBasis.steer`. Pixels outside the disk do not exist for it, so
    the weights of a pixel near the rim are those of its neighbours inside, scaled to sum to one;
    one without neighbours takes the nearest pixel.

    Parameters
    ----------
    diameter
        Pixels across the disk.
    theta
        Radians.
    method
        "nearest" or "bicubic".
    """
    if method not in KERNELS:
        raise unknown_choice("method", method, KERNELS)
    if not np.isfinite(theta):
        raise DscError(f"theta: found {theta}, need a finite angle in radians")
    mask = disk_mask(check_diameter(diameter))
    center = (diameter - 1) / 2
    y, x = np.nonzero(mask)
    dy, dx = y - center, x - center
    # the pixel that lands here came from the place rotated back by theta
    source_x = dx * np.cos(theta) - dy * np.sin(theta) + center
    source_y = dx * np.sin(theta) + dy * np.cos(theta) + center
    number = np.full(mask.shape, -1)
    number[mask] = np.arange(y.size)
    kernel = KERNELS[method]
    rows, columns, weights = [], [], []
    for oy in range(-2, 4):
        for ox in range(-2, 4):
            iy, ix = np.floor(source_y).astype(int) + oy, np.floor(source_x).astype(int) + ox
            weight = kernel(source_y - iy) * kernel(source_x - ix)
            inside = (iy >= 0) & (iy < diameter) & (ix >= 0) & (ix < diameter) & (weight != 0)
            target = np.flatnonzero(inside)
            origin = number[iy[target], ix[target]]
            rows.append(target[origin >= 0])
            columns.append(origin[origin >= 0])
            weights.append(weight[target][origin >= 0])
    matrix = sparse.csr_array(
        (np.concatenate(weights), (np.concatenate(rows), np.concatenate(columns))),
        shape=(y.size, y.size),
    )
    total = np.asarray(matrix.sum(axis=1)).ravel()
    alone = np.flatnonzero(np.abs(total) < SMALLEST_WEIGHT)  # rotated in from outside the disk
    distance = np.hypot(source_y[alone, None] - y, source_x[alone, None] - x)
    nearest = sparse.csr_array(
        (np.ones(alone.size), (alone, distance.argmin(axis=1))), shape=matrix.shape
    )
    scale = np.divide(1, total, out=np.zeros_like(total), where=np.abs(total) >= SMALLEST_WEIGHT)
    return sparse.csr_array(sparse.diags_array(scale) @ matrix + nearest)
