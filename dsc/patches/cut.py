"""Cutting disks out of pictures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dsc.basis.grid import disk_mask
from dsc.images.cache import CACHE
from dsc.patches import kernels
from dsc.patches.album import Album
from dsc.patches.spline import CELL, Coefficients, cell_extent, coefficients

Floats = NDArray[np.float32]
Indices = NDArray[np.int64]


class Positions(NamedTuple):
    """Where patches are: picture, first row, first column, and turn if they have one."""

    image: NDArray[np.int32]
    y: NDArray[np.int32]
    x: NDArray[np.int32]
    turn: NDArray[np.float32] | None = None


@dataclass(frozen=True)
class Cutter:
    """How disks are cut and normalised."""

    diameter: int
    center: bool
    unit: bool

    def cut(self, album: Album, at: Positions, out: Floats) -> None:
        """Write the disks at these positions to (patch, pixel)."""
        for image, rows in _groups(at.image):
            shape, tile = album.run_of(image).shape, album.run_of(image).tile
            y, x = at.y[rows].astype(np.int64), at.x[rows].astype(np.int64)
            size = tile if at.turn is None else (CELL, CELL)
            n_cells = -(-shape[1] // size[1])
            for cell, inside in _groups(y // size[0] * n_cells + x // size[1]):
                part = rows[inside]
                if at.turn is None:
                    self._cut_flat(album, image, y[inside], x[inside], part, out)
                else:
                    place = divmod(cell, n_cells)
                    turn = at.turn[part].astype(np.float64)
                    self._cut_turned(album, image, place, y[inside], x[inside], turn, part, out)

    def _cut_flat(
        self, album: Album, image: int, y: Indices, x: Indices, rows: Indices, out: Floats
    ) -> None:
        side = self.diameter
        region = album.region(
            image,
            slice(int(y.min()), int(y.max()) + side),
            slice(int(x.min()), int(x.max()) + side),
        )
        width = region.pixels.shape[1]
        start = (y - region.y) * width + (x - region.x)
        dy, dx = disk_pixels(side).T
        kernels.cut(
            region.pixels.reshape(-1), start, rows, dy * width + dx, self.center, self.unit, out
        )

    def _cut_turned(
        self,
        album: Album,
        image: int,
        cell: tuple[int, int],
        y: Indices,
        x: Indices,
        turn: NDArray[np.float64],
        rows: Indices,
        out: Floats,
    ) -> None:
        shape = album.run_of(image).shape
        ys, xs = (
            cell_extent(number, self.diameter, size)
            for number, size in zip(cell, shape, strict=True)
        )
        key = (album.store, "spline", image, cell)
        spline = CACHE.get(key, lambda: (_spline(album, image, ys, xs),))[0]
        middle = (self.diameter - 1) / 2
        dy, dx = np.ascontiguousarray(disk_pixels(self.diameter).T - middle)
        kernels.cut_turned(
            spline,
            y + middle - ys.start,
            x + middle - xs.start,
            turn,
            dy,
            dx,
            rows,
            self.center,
            self.unit,
            out,
        )


def _spline(album: Album, image: int, y: slice, x: slice) -> Coefficients:
    return coefficients(album.region(image, y, x), x)


@lru_cache(maxsize=16)
def disk_pixels(diameter: int) -> Indices:
    """(pixel, 2): rows and columns of the disk's pixels in its window."""
    return np.argwhere(disk_mask(diameter))


def _groups(key: NDArray[np.integer]) -> Iterator[tuple[int, Indices]]:
    """(key, where it is), for each that occurs."""
    if not key.size:
        return
    order = np.arange(key.size)
    if (key[1:] < key[:-1]).any():
        order = np.argsort(key, kind="stable")
    ordered = key[order]
    begins = np.concatenate([[0], np.flatnonzero(np.diff(ordered)) + 1, [key.size]])
    for begin, end in pairwise(begins):
        yield int(ordered[begin]), order[begin:end]
