"""Two scales of an image: halved, and what a halved image says better of the coarse structure.

All functions work along the first two axes (y, x), and give what depends on given pixels alone: no
border is made up.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

LOST = 4  # pixels on each side that `correct` does not know

Floats = NDArray[np.float32]


def halve(pixels: Floats) -> Floats:
    """Half the sum of 2 × 2 pixels, so that white noise keeps its variance; whole squares only.

    Examples
    --------
    >>> halve(np.ones((4, 5), np.float32)).tolist()
    [[2.0, 2.0], [2.0, 2.0]]
    """
    height, width = (size // 2 * 2 for size in pixels.shape[:2])
    rows = pixels[:height:2] + pixels[1:height:2]
    return np.asarray((rows[:, :width:2] + rows[:, 1:width:2]) / 2, np.float32)


def correct(fine: Floats, coarse: Floats) -> Floats:
    """An image with the coarse structure of a halved one, less `LOST` pixels on each side.

    f + U B (c − H f) / 2 with H = `halve`, B the binomial mean (1, 2, 1) / 4, which leaves only
    what is coarse of the difference, and U linear interpolation. Pixel 0 of `fine` is of the first
    square of `coarse`.
    """
    difference = coarse - halve(fine)
    for axis in (0, 1):
        difference = _twice(_binomial(difference, axis), axis)
    height, width = difference.shape[:2]
    inner = fine[LOST : LOST + height, LOST : LOST + width]
    return np.asarray(inner + difference / 2, np.float32)


def _binomial(values: Floats, axis: int) -> Floats:
    """Means of three with the weights 1, 2, 1."""
    v = np.moveaxis(values, axis, 0)
    means = np.asarray((v[:-2] + 2 * v[1:-1] + v[2:]) / 4, np.float32)
    return np.moveaxis(means, 0, axis)


def _twice(values: Floats, axis: int) -> Floats:
    """Two pixels of each value but the first and the last, by linear interpolation."""
    v = np.moveaxis(values, axis, 0)
    near, before, after = 3 * v[1:-1], v[:-2], v[2:]
    pairs = np.stack([near + before, near + after], axis=1).reshape(-1, *v.shape[1:])
    return np.moveaxis(np.asarray(pairs / 4, np.float32), 0, axis)
