"""The one cutter: disks out of images, of stacks of squares and of grids of windows.

Rotated patches are sampled from the quintic spline through the pixels of their image. Its
coefficients at a pixel depend on all pixels, though hardly on far ones: they are computed in fixed
cells of the image with `REACH` pixels around, where the influence of what is left out has fallen
to 1e-12. A patch's bits depend on its cell alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dsc.basis import disk_mask
from dsc.images import CACHE
from dsc.patches import kernels
from dsc.patches.album import Album

CELL = 256
REACH = 32

Floats = NDArray[np.float32]
Indices = NDArray[np.int64]


class Positions(NamedTuple):
    """Where patches are: image, first row, first column, and rotation if they have one."""

    image: NDArray[np.int32]
    y: NDArray[np.int32]
    x: NDArray[np.int32]
    rotation: NDArray[np.float32] | None = None


class _Group(NamedTuple):
    """Patches of one image and one tile or cell of it: where they go, and where they are."""

    image: int
    rows: Indices
    y: Indices
    x: Indices


@dataclass(frozen=True)
class Cutter:
    """How disks are cut and normalised."""

    diameter: int  # pixels across a disk
    center: bool  # subtract the mean of the disk's pixels; divide by their norm
    unit: bool

    def cut_album(self, album: Album, at: Positions, out: Floats) -> None:
        """Write the disks at these positions of images to (patch, pixel)."""
        for image, rows in _groups(at.image):
            run = album.run_of(image)
            y, x = at.y[rows].astype(np.int64), at.x[rows].astype(np.int64)
            size = run.tile if at.rotation is None else (CELL, CELL)
            n_cells = -(-run.shape[1] // size[1])
            for _, inside in _groups(y // size[0] * n_cells + x // size[1]):
                group = _Group(image, rows[inside], y[inside], x[inside])
                if at.rotation is None:
                    self._cut_flat(album, group, out)
                else:
                    self._cut_rotated(album, group, at.rotation[group.rows].astype(np.float64), out)

    def cut_stack(self, squares: Floats, out: Floats) -> None:
        """Write the disks of squares (patch, y, x) to (patch, pixel)."""
        rows, side = np.arange(len(squares)), self.diameter
        offset = disk_offsets(side, side)
        kernels.cut(squares.reshape(-1), rows * side**2, rows, offset, self.center, self.unit, out)

    def _cut_flat(self, album: Album, at: _Group, out: Floats) -> None:
        y, x = (slice(int(a.min()), int(a.max()) + self.diameter) for a in (at.y, at.x))
        region = album.region(at.image, y, x)
        width = region.pixels.shape[1]
        start = (at.y - region.y) * width + (at.x - region.x)
        offset = disk_offsets(self.diameter, width)
        kernels.cut(region.pixels.reshape(-1), start, at.rows, offset, self.center, self.unit, out)

    def _cut_rotated(
        self, album: Album, at: _Group, rotation: NDArray[np.float64], out: Floats
    ) -> None:
        cell = (int(at.y[0]) // CELL, int(at.x[0]) // CELL)
        around = kernels.MARGIN + REACH
        y, x = (
            slice(max(0, n * CELL - around), min(size, (n + 1) * CELL + self.diameter + around))
            for n, size in zip(cell, album.run_of(at.image).shape, strict=True)
        )
        key = (album.store, "spline", at.image, cell)
        if (spline := CACHE.get(key)) is None:
            from scipy.ndimage import spline_filter  # takes a while, and few sets are rotated

            region = album.region(at.image, y, x)
            pixels = region.pixels[:, x.start - region.x : x.stop - region.x].astype(np.float64)
            filtered = spline_filter(pixels, order=5, mode="mirror")
            spline = CACHE.put(key, np.ascontiguousarray(filtered))
        middle = (self.diameter - 1) / 2
        center = (at.y + middle - y.start, at.x + middle - x.start)
        disk = np.ascontiguousarray(disk_pixels(self.diameter).T - middle)
        kernels.cut_rotated(spline, *center, rotation, *disk, at.rows, self.center, self.unit, out)


def cut_grid(
    pixels: NDArray[np.float32],
    diameter: int,
    stride: int,
    center: bool = False,
    unit: bool = False,
) -> Floats:
    """(window, pixel) the disks of a grid of windows, row by row from the first pixel on.

    Examples
    --------
    >>> import numpy as np
    >>> cut_grid(np.ones((20, 30), np.float32), diameter=11, stride=3).shape
    (28, 97)
    """
    height, width = pixels.shape
    y, x = (np.arange(0, size - diameter + 1, stride) for size in (height, width))
    start = (y[:, None] * width + x).ravel()
    offset = disk_offsets(diameter, width)
    out = np.empty((start.size, offset.size), np.float32)
    flat = np.ascontiguousarray(pixels, np.float32).reshape(-1)
    kernels.cut(flat, start, np.arange(start.size), offset, center, unit, out)
    return out


@lru_cache(maxsize=16)
def disk_pixels(diameter: int) -> Indices:
    """(pixel, 2): rows and columns of the disk's pixels in its window."""
    return np.argwhere(disk_mask(diameter))


def disk_offsets(diameter: int, width: int) -> Indices:
    """(pixel,): from the first pixel of a window to those of its disk, in rows of `width`."""
    dy, dx = disk_pixels(diameter).T
    return np.asarray(dy * width + dx)


def _groups(key: NDArray[np.integer]) -> Iterator[tuple[int, Indices]]:
    """(key, where it is), for each that occurs."""
    if not key.size:
        return
    order = np.arange(key.size)
    if (key[1:] < key[:-1]).any():
        order = np.argsort(key, kind="stable")
    ordered = key[order]
    begins = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
    for begin, end in pairwise((0, *begins.tolist(), key.size)):
        yield int(ordered[begin]), order[begin:end]
