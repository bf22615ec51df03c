"""Sums over an image that do not depend on its tiles.

A cell of `CELL` × `CELL` pixels, aligned in the image, is summed at once; four cells are then added
to one of twice the side, and so on: a quadtree. Tiles are whole cells of some level, so any of
them gives the same tree.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

CELL = 64

Sums = NDArray[np.float64]


def cell_sums(values: NDArray[np.floating]) -> Sums:
    """(…, cell y, cell x) sums of the cells of (…, y, x); what is no number counts as zero."""
    *leading, height, width = values.shape
    rows, columns = -(-height // CELL), -(-width // CELL)
    padded = np.zeros((*leading, rows * CELL, columns * CELL))
    padded[..., :height, :width] = np.nan_to_num(values, nan=0.0)
    cells = padded.reshape(*leading, rows, CELL, columns, CELL)
    total = np.zeros((*leading, rows, columns, CELL))
    for row in range(CELL):  # in one order, whatever the number of cells
        total += cells[..., :, row, :, :]
    return fold_last(total)


def fold_last(values: Sums) -> Sums:
    """Sums along the last axis, a power of two long: halves are added until one is left."""
    while values.shape[-1] > 1:
        half = values.shape[-1] // 2
        values = values[..., :half] + values[..., half:]
    return values[..., 0]


def merge_cells(sums: Sums, levels: int | None = None) -> Sums:
    """Sums of cells 2^levels times as long; of all of them if nothing is said."""
    while levels is None or levels > 0:
        if levels is None and sums.shape[-2:] == (1, 1):
            break
        *leading, height, width = sums.shape
        padded = np.zeros((*leading, height + height % 2, width + width % 2))
        padded[..., :height, :width] = sums
        upper = padded[..., ::2, ::2] + padded[..., ::2, 1::2]
        sums = upper + (padded[..., 1::2, ::2] + padded[..., 1::2, 1::2])
        levels = None if levels is None else levels - 1
    return sums
