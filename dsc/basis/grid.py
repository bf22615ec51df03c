"""The disk of pixels that a patch is made of."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dsc.errors import DscError, count_problem

MIN_DIAMETER, MAX_DIAMETER = 3, 255


def check_diameter(diameter: int) -> int:
    """Return `diameter` as an int, or say why it is none."""
    if problem := count_problem("diameter", diameter, MIN_DIAMETER, MAX_DIAMETER):
        raise DscError(problem)
    return int(diameter)


def disk_mask(diameter: int) -> NDArray[np.bool_]:
    """(y, x) True where the pixel's centre lies in the disk of this diameter."""
    axis = np.arange(diameter) - (diameter - 1) / 2
    return np.asarray(np.hypot(axis[:, None], axis[None, :]) <= diameter / 2)


def polar_grid(diameter: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Radius in pixels and angle in radians of each pixel of the disk, in row-major order.

    Angles grow counter-clockwise as the image is seen (y points down), so a positive rotation is
    the one of `np.rot90` and of `skimage.transform.rotate`.
    """
    axis = np.arange(diameter) - (diameter - 1) / 2
    mask = disk_mask(diameter)
    y, x = (grid[mask] for grid in np.meshgrid(axis, axis, indexing="ij"))
    return np.hypot(y, x), np.arctan2(-y, x)
