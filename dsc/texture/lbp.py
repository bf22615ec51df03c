"""Local binary patterns: the rotation-invariant texture feature that dictionaries compete with."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from skimage.feature import local_binary_pattern

from dsc.errors import DscError

SCALES = ((8, 1), (16, 2), (24, 3))  # (points, radius in pixels) of the circles
N_BINS = sum(n_points + 2 for n_points, _ in SCALES)


def lbp_histogram(grey: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """Histograms of the rotation-invariant uniform patterns of an image, at all scales.

    Grey values (y, x) in [0, 1] are rounded to the 256 levels of an 8-bit image, so that equal
    ones are equal. At each scale, over the pixels whose neighbourhood lies inside the image,
    uniform patterns are counted by their number of ones, the others together: (bin,) with sum 1,
    one scale after the other with equal weight.
    """
    side = lbp_side()
    if grey.ndim != 2 or min(grey.shape) < side:
        raise DscError(
            f"image: found shape {grey.shape}, need (y, x) of at least {side} × {side} pixels"
        )
    if not (grey.min() >= 0 and grey.max() <= 1):  # NaN is neither
        raise DscError("image: found grey values outside 0 to 1, or NaN: scale them")
    levels = np.rint(255 * np.asarray(grey, np.float64)).astype(np.uint8)
    return np.concatenate([_histogram(levels, *scale) for scale in SCALES]) / len(SCALES)


def lbp_side() -> int:
    """Pixels that an image must have along each axis."""
    return 2 * max(radius for _, radius in SCALES) + 1


def unit_range(grey: NDArray[np.float32]) -> NDArray[np.float32]:
    """Grey values as they are if they lie in [0, 1], else from their smallest to their largest."""
    low, high = float(grey.min()), float(grey.max())
    return grey if low >= 0 and high <= 1 else (grey - low) / max(high - low, 1e-30)


def _histogram(levels: NDArray[np.uint8], n_points: int, radius: int) -> NDArray[np.float64]:
    patterns = local_binary_pattern(levels, n_points, radius, method="uniform")
    inside = patterns[radius:-radius, radius:-radius].astype(np.int64)
    return np.asarray(np.bincount(inside.ravel(), minlength=n_points + 2) / inside.size)
