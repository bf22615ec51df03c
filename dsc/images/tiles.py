"""Images in tiles: which tiles there are, and what a window shares with each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

TILE = (256, 1024)  # wide, since patches are numbered along rows
BAND = 2**20  # pixels in a row of tiles, about: two of them should fit into the cache


class Tile(NamedTuple):
    """One tile of an image."""

    number: int  # its place in the order row by row
    y: slice  # its rows and columns
    x: slice

    def shared(self, y: slice, x: slice) -> tuple[tuple[slice, slice], tuple[slice, slice]]:
        """Where what it shares with a window is in the window, and where in the tile."""
        (y_here, y_there), (x_here, x_there) = _overlap(y, self.y), _overlap(x, self.x)
        return (y_here, x_here), (y_there, x_there)


def _overlap(a: slice, b: slice) -> tuple[slice, slice]:
    first, last = max(a.start, b.start), min(a.stop, b.stop)
    return slice(first - a.start, last - a.start), slice(first - b.start, last - b.start)


def tile_shape(shape: tuple[int, int], chunks: tuple[int, int] = (1, 1)) -> tuple[int, int]:
    """A tile of about `TILE` for an image of this shape, of whole chunks of its array.

    The tiles of wide images are lower and wider.
    """
    rows = min(TILE[0], max(32, BAND // shape[1]))
    wanted = (rows, TILE[0] * TILE[1] // rows)
    return tuple(  # type: ignore[return-value]
        min(size, chunk * -(-length // chunk))
        for size, chunk, length in zip(shape, chunks, wanted, strict=True)
    )


def tiles_of(
    shape: tuple[int, int], size: tuple[int, int], y: slice | None = None, x: slice | None = None
) -> Iterator[Tile]:
    """The tiles of this size, row by row, that a window touches; without one, all."""
    y, x = y or slice(0, shape[0]), x or slice(0, shape[1])
    n_columns = -(-shape[1] // size[1])
    for i in range(y.start // size[0], -(-y.stop // size[0])):
        for j in range(x.start // size[1], -(-x.stop // size[1])):
            rows = slice(i * size[0], min((i + 1) * size[0], shape[0]))
            columns = slice(j * size[1], min((j + 1) * size[1], shape[1]))
            yield Tile(i * n_columns + j, rows, columns)
