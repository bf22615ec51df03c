"""Patches turned in their picture: sampled from the quintic spline through its pixels.

The coefficients of the spline at a pixel depend on all pixels, though hardly on far ones: they are
computed in fixed cells of the picture with `REACH` pixels around, where the influence of what is
left out has fallen to 1e-12. A patch's bits depend on its cell alone.

A turned disk reaches half a pixel past its unturned window, and a spline value needs three pixels
on each side: windows of turned patches begin and end `MARGIN` pixels inside the picture.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import spline_filter

from dsc.images.tiles import Region

MARGIN = 3
CELL = 256
REACH = 32

Coefficients = NDArray[np.float64]


def cell_extent(cell: int, diameter: int, size: int) -> slice:
    """The pixels along one axis that the patches of a cell need."""
    return slice(
        max(0, cell * CELL - MARGIN - REACH),
        min(size, (cell + 1) * CELL + diameter + MARGIN + REACH),
    )


def coefficients(region: Region, x: slice) -> Coefficients:
    """Spline coefficients of the columns `x` of a region, mirrored at its edges."""
    pixels = region.pixels[:, x.start - region.x : x.stop - region.x].astype(np.float64)
    return np.ascontiguousarray(spline_filter(pixels, order=5, mode="mirror"))
