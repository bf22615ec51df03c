"""Tiles of an image with a margin around, mirrored at the border."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Place = tuple[slice, slice]


def tile_places(shape: tuple[int, ...], size: int) -> list[Place]:
    """Where the tiles of an image are, row by row.

    Examples
    --------
    >>> len(tile_places((300, 200), 128))
    6
    """
    rows, columns = ([slice(i, min(i + size, n)) for i in range(0, n, size)] for n in shape)
    return [(y, x) for y in rows for x in columns]


def with_margin(image: NDArray[Any], place: Place, margin: int) -> NDArray[Any]:
    """A tile and the pixels around it; beyond the border of the image are its mirrored ones."""
    rows, columns = (
        _mirrored(at, margin, size) for at, size in zip(place, image.shape, strict=True)
    )
    return np.ascontiguousarray(image[rows[:, None], columns])


def _mirrored(at: slice, margin: int, size: int) -> NDArray[np.int64]:
    """Rows of a tile and its margin, mirrored: 1 0 | 0 1 2 … n−1 | n−1 n−2."""
    index = np.arange(at.start - margin, at.stop + margin) % (2 * size)
    return np.asarray(np.minimum(index, 2 * size - 1 - index))
