"""Pictures in tiles: a region is put together from the tiles that it touches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

TILE = (256, 1024)  # wide, since patches are numbered along rows
BAND = 2**20  # pixels in a row of tiles, about: two of them should fit into the cache

Floats = NDArray[np.float32]
Fetch = Callable[[int, int], Floats]  # tile row, tile column → its pixels


class Region(NamedTuple):
    """A window of a picture, C-contiguous, and the place of its first pixel."""

    pixels: Floats
    y: int
    x: int


def tile_shape(shape: tuple[int, int], chunks: tuple[int, int] = (1, 1)) -> tuple[int, int]:
    """A tile of about `TILE` for a picture of this shape, of whole chunks of its array.

    The tiles of wide pictures are lower and wider.
    """
    rows = min(TILE[0], max(32, BAND // shape[1]))
    wanted = (rows, TILE[0] * TILE[1] // rows)
    return tuple(  # type: ignore[return-value]
        min(size, chunk * -(-length // chunk))
        for size, chunk, length in zip(shape, chunks, wanted, strict=True)
    )


def tiles_of(
    shape: tuple[int, int], tile: tuple[int, int]
) -> Iterator[tuple[int, int, tuple[slice, slice]]]:
    """(tile row, tile column, its rows and columns) of every tile, row by row."""
    for i in range(-(-shape[0] // tile[0])):
        for j in range(-(-shape[1] // tile[1])):
            yield i, j, _extent(shape, tile, i, j)


def read_region(
    shape: tuple[int, int], tile: tuple[int, int], fetch: Fetch, y: slice, x: slice
) -> Region:
    """Rows `y` and columns `x` of a picture; more columns if that saves a copy."""
    i0, i1 = y.start // tile[0], (y.stop - 1) // tile[0]
    j0, j1 = x.start // tile[1], (x.stop - 1) // tile[1]
    if i0 == i1 and j0 == j1:
        inside = fetch(i0, j0)[y.start - i0 * tile[0] : y.stop - i0 * tile[0]]
        return Region(np.ascontiguousarray(inside), y.start, j0 * tile[1])
    pixels = np.empty((y.stop - y.start, x.stop - x.start), np.float32)
    for i in range(i0, i1 + 1):
        for j in range(j0, j1 + 1):
            rows, columns = _extent(shape, tile, i, j)
            (ty, sy), (tx, sx) = _overlap(rows, y), _overlap(columns, x)
            pixels[ty, tx] = fetch(i, j)[sy, sx]
    return Region(pixels, y.start, x.start)


def _extent(shape: tuple[int, int], tile: tuple[int, int], i: int, j: int) -> tuple[slice, slice]:
    y, x = i * tile[0], j * tile[1]
    return slice(y, min(y + tile[0], shape[0])), slice(x, min(x + tile[1], shape[1]))


def _overlap(tile: slice, wanted: slice) -> tuple[slice, slice]:
    """Where the shared part is in what is wanted, and in the tile."""
    start, stop = max(tile.start, wanted.start), min(tile.stop, wanted.stop)
    return (
        slice(start - wanted.start, stop - wanted.start),
        slice(start - tile.start, stop - tile.start),
    )
