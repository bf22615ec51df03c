"""Values of disks brought to pixels: a weighted mean of the disks around each pixel.

All is done in one order per pixel, so that a value does not depend on the tile it is in.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from dsc.errors import DscError
from dsc.maps.coding import Around
from dsc.tiling import Window

MOST_SIGMA = 50  # pixels; a tile is then hardly larger than its margin

Doubles = NDArray[np.float64]
Values = TypeVar("Values", NDArray[np.float32], NDArray[np.float64])


@dataclass(frozen=True)
class Pool:
    """Weights exp(−(Δy² + Δx²) / 2σ²) of the disks whose centres are Δy, Δx ≤ `reach` away.

    Only disks inside the image count: at the border the mean is over those on one side.
    """

    diameter: int
    sigma: float

    @property
    def reach(self) -> float:
        """Pixels to the farthest centre along an axis: at the border the first one is as far."""
        return max(self.diameter / 2, float(np.floor(2.5 * self.sigma)))

    @property
    def margin(self) -> int:
        """Pixels around a pixel that its value depends on."""
        return int(np.ceil(self.reach + (self.diameter - 1) / 2))

    @cached_property
    def offsets(self) -> range:
        """From the first row of a disk to the pixel, all that count."""
        middle = (self.diameter - 1) / 2
        return range(int(np.ceil(middle - self.reach)), int(np.floor(middle + self.reach)) + 1)

    @cached_property
    def weights(self) -> Doubles:
        """(offset,) the weight of each."""
        away = np.array(self.offsets) - (self.diameter - 1) / 2
        return np.exp(-0.5 * (away / self.sigma) ** 2)

    def tops(self, tile: slice, size: int) -> range:
        """First rows of the disks that count for a tile, in an image of so many rows."""
        first = max(0, tile.start - self.offsets[-1])
        return range(first, min(size - self.diameter, tile.stop - 1 - self.offsets[0]) + 1)

    def mean(self, values: Values, tops: tuple[range, range], tile: tuple[slice, slice]) -> Values:
        """Means at the pixels of a tile, (y, x, …), of values of disks (top, left, …)."""
        rows = self._along(values, tops[0], tile[0])
        columns = self._along(np.moveaxis(rows, 1, 0), tops[1], tile[1])
        return np.moveaxis(columns, 0, 1)

    def known(self, around: Around, window: Window) -> Doubles:
        """(y, x) of a tile the weight of known disks in a mean: 1 of all, exactly.

        NaN where there are none, and where the pixel itself is missing.
        """
        share = self.mean(around.known, around.tops, (window.y, window.x))
        return np.where((share == 0) | window.missing(), np.nan, share)

    def _along(self, values: Values, tops: range, tile: slice) -> Values:
        """Means along the first axis: Σ_o w_o v[y − o] / Σ_o w_o, over tops y − o that exist."""
        size = tile.stop - tile.start
        total = np.zeros((size, *values.shape[1:]), values.dtype)
        weight = np.zeros(size, values.dtype)
        for offset, w in zip(self.offsets, self.weights.astype(values.dtype), strict=True):
            first = max(tile.start, tops.start + offset)
            last = min(tile.stop, tops.stop + offset)
            if first < last:
                here = slice(first - tile.start, last - tile.start)
                there = slice(first - offset - tops.start, last - offset - tops.start)
                total[here] += w * values[there]
                weight[here] += w
        total /= weight.reshape(-1, *[1] * (values.ndim - 1))
        return total


def check_sigma(sigma: float | None, diameter: int) -> float:
    """The width of a pool, by default a quarter of the diameter."""
    width = diameter / 4 if sigma is None else float(sigma)
    least = diameter / 20  # a narrower pool does not reach the disks nearest to the border
    if not (np.isfinite(width) and least <= width <= MOST_SIGMA):
        raise DscError(f"sigma: found {sigma}, need {least:g} to {MOST_SIGMA} pixels")
    return width
