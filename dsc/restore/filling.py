"""A first, rough filling of missing pixels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

WIDTHS = tuple(float(width) for width in np.geomspace(0.7, 40, 11))  # of the means
REACH = 160  # pixels that the widest reaches: four times its width
ENOUGH = 0.05  # weight of known pixels in a mean that is trusted

Floats = NDArray[np.float32]


def first_filling(pixels: Floats, missing: NDArray[np.bool_]) -> Floats:
    """Missing pixels as means of the known ones nearby, as near as there are enough of them.

    (G ∗ v) / (G ∗ 1), sums over known pixels, with Gaussians G of growing width; zero, the mean
    of all, where even the widest finds none.
    """
    known = ~missing
    values = np.where(known, pixels, 0).astype(np.float64)
    filled, left = values.copy(), missing.copy()
    for width in WIDTHS:
        if not left.any():
            break
        weight = gaussian_filter(known.astype(np.float64), width)
        new = left & (weight > ENOUGH)
        filled[new] = gaussian_filter(values, width)[new] / weight[new]
        left &= ~new
    return filled.astype(np.float32)
