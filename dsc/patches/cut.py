"""The one cutter: disks out of images, of stacks of squares and of grids of windows.

Rotated patches are sampled from the quintic spline through the pixels of their image. Its
coefficients at a pixel depend on all pixels, though hardly on far ones: they are computed in fixed
cells of the image with `REACH` pixels around, where the influence of what is left out has fallen
to 1e-12. A patch's bits depend on its cell alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dsc.images import CACHE
from dsc.patches import kernels
from dsc.patches.album import Album
from dsc.patches.disks import channel_offsets, disk_offsets, disk_pixels

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
    center: bool  # subtract the mean of each channel of the disk; divide by the norm of all
    unit: bool
    n_channels: int = 1  # an image of an album is so many consecutive ones

    def cut_album(self, album: Album, at: Positions, out: Floats) -> None:
        """Write the disks at these positions of images to (patch, pixel)."""
        for image, rows in _groups(at.image):
            run = album.run_of(image * self.n_channels)
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
        """Write the disks of squares (patch, y, x) or (patch, y, x, channel) to (patch, pixel)."""
        rows, side, n_channels = np.arange(len(squares)), self.diameter, self.n_channels
        start, offset = rows * side**2 * n_channels, channel_offsets(side, side, n_channels)
        kernels.cut(squares.reshape(-1), start, rows, offset, *self._how, out)

    @property
    def _how(self) -> tuple[int, bool, bool]:
        return self.n_channels, self.center, self.unit

    def _cut_flat(self, album: Album, at: _Group, out: Floats) -> None:
        y, x = (slice(int(a.min()), int(a.max()) + self.diameter) for a in (at.y, at.x))
        parts = []
        for plane in self._planes(at.image):
            region = album.region(plane, y, x)
            parts.append(region.pixels)
        height, width = region.pixels.shape
        start = (at.y - region.y) * width + (at.x - region.x)
        offset = disk_offsets(self.diameter, width)
        pixels = parts[0]
        if self.n_channels > 1:
            pixels = np.stack(parts)
            offset = np.concatenate([c * height * width + offset for c in range(self.n_channels)])
        kernels.cut(pixels.reshape(-1), start, at.rows, offset, *self._how, out)

    def _planes(self, image: int) -> range:
        """The numbers of the channels of an image in its album."""
        return range(image * self.n_channels, (image + 1) * self.n_channels)

    def _cut_rotated(
        self, album: Album, at: _Group, rotation: NDArray[np.float64], out: Floats
    ) -> None:
        cell = (int(at.y[0]) // CELL, int(at.x[0]) // CELL)
        around = kernels.MARGIN + REACH
        y, x = (
            slice(max(0, n * CELL - around), min(size, (n + 1) * CELL + self.diameter + around))
            for n, size in zip(cell, album.run_of(self._planes(at.image)[0]).shape, strict=True)
        )
        middle = (self.diameter - 1) / 2
        center = (at.y + middle - y.start, at.x + middle - x.start)
        disk = np.ascontiguousarray(disk_pixels(self.diameter).T - middle)
        for channel, plane in enumerate(self._planes(at.image)):
            key = (album.store, "spline", plane, cell)
            if (spline := CACHE.get(key)) is None:
                from scipy.ndimage import spline_filter  # takes a while, and few sets are rotated

                region = album.region(plane, y, x)
                pixels = region.pixels[:, x.start - region.x : x.stop - region.x]
                filtered = spline_filter(pixels.astype(np.float64), order=5, mode="mirror")
                spline = CACHE.put(key, np.ascontiguousarray(filtered))
            first = channel * disk.shape[1]
            kernels.cut_rotated(spline, *center, rotation, *disk, at.rows, first, out)
        if self.center or self.unit:
            kernels.normalize(at.rows, *self._how, out)


def cut_grid(
    pixels: NDArray[np.float32],
    diameter: int,
    stride: int,
    center: bool = False,
    unit: bool = False,
) -> Floats:
    """(window, pixel) the disks of a grid of windows, row by row from the first pixel on.

    Pixels are (y, x), or (y, x, channel): the disks then have one channel after the other.

    Examples
    --------
    >>> import numpy as np
    >>> cut_grid(np.ones((20, 30), np.float32), diameter=11, stride=3).shape
    (28, 97)
    """
    (height, width), n_channels = pixels.shape[:2], pixels.shape[2] if pixels.ndim > 2 else 1
    y, x = (np.arange(0, size - diameter + 1, stride) for size in (height, width))
    start = n_channels * (y[:, None] * width + x).ravel()
    offset = channel_offsets(diameter, width, n_channels)
    out = np.empty((start.size, offset.size), np.float32)
    flat = np.ascontiguousarray(pixels, np.float32).reshape(-1)
    kernels.cut(flat, start, np.arange(start.size), offset, n_channels, center, unit, out)
    return out


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
