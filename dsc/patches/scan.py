"""Looking at an image once, tile by tile: its hash, and which of its windows are patches."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dsc.errors import DscError
from dsc.images import Image, tiles_of
from dsc.patches import kernels
from dsc.patches.config import PatchConfig

PIECE = 2**20  # candidates unpacked at a time

Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Grid:
    """The windows of an image that may become patches, numbered row by row."""

    margin: int  # first row and first column of the first window
    stride: int  # pixels between windows
    n_y: int  # how many there are
    n_x: int

    @staticmethod
    def of(shape: tuple[int, int], config: PatchConfig) -> Grid:
        """The grid of an image of this shape."""
        margin = kernels.MARGIN if config.rotate else 0
        least = config.diameter + 2 * margin
        if min(shape) < least:
            raise DscError(
                f"found {shape[0]} × {shape[1]} pixels, need at least {least} × {least} for "
                f"{'rotated ' if margin else ''}patches of diameter {config.diameter}"
            )
        n_y, n_x = ((size - least) // config.stride + 1 for size in shape)
        return Grid(margin, config.stride, n_y, n_x)

    def inside(self, pixels: slice, n_windows: int) -> slice:
        """The windows along one axis that begin in a range of pixels."""
        ends = (-(-(p - self.margin) // self.stride) for p in (pixels.start, pixels.stop))
        first, last = (min(max(end, 0), n_windows) for end in ends)
        return slice(first, last)

    def extent(self, windows: slice, diameter: int) -> tuple[int, int]:
        """The pixels along one axis that windows cover: the first, and one past the last."""
        first, last = (self.margin + self.stride * n for n in (windows.start, windows.stop - 1))
        return first, last + diameter

    def positions(self, index: Indices) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """(y, x) of the first pixels of windows."""
        i, j = np.divmod(index, self.n_x)
        y, x = (self.margin + self.stride * axis for axis in (i, j))
        return y.astype(np.int32), x.astype(np.int32)


@dataclass(frozen=True, eq=False)
class Scan:
    """What was seen of an image."""

    grid: Grid  # its windows
    digests: tuple[str, ...]  # SHA-256 of every tile's grey values, row by row
    sha256: str  # of the image as a whole
    # one entry per row of tiles: the number of its first window, how many it has, and a bit for
    # each that says whether it is a patch
    kept: tuple[tuple[int, int, NDArray[np.uint8]], ...]

    @property
    def n_windows(self) -> int:
        """Windows in all."""
        return self.grid.n_y * self.grid.n_x

    @property
    def n_patches(self) -> int:
        """Windows that are patches."""
        return sum(int(np.bitwise_count(bits).sum()) for _, _, bits in self.kept)

    def patches(self) -> Iterator[Indices]:
        """The numbers of the windows that are patches, some at a time."""
        for first, count, bits in self.kept:
            for begin in range(0, count, PIECE):
                part = bits[begin // 8 : (begin + PIECE) // 8]
                flags = np.unpackbits(part, count=min(PIECE, count - begin))
                yield np.flatnonzero(flags) + (first + begin)

    def only(self, chosen: Indices) -> Scan:
        """The same with fewer patches."""
        thinned = []
        for first, count, _ in self.kept:
            begin, end = np.searchsorted(chosen, (first, first + count))
            flags = np.zeros(count, np.bool_)
            flags[chosen[begin:end] - first] = True
            thinned.append((first, count, np.packbits(flags)))
        return replace(self, kept=tuple(thinned))


def digest(pixels: NDArray[np.float32]) -> str:
    """The hash of a tile's grey values."""
    return hashlib.sha256(np.ascontiguousarray(pixels, "<f4").data).hexdigest()


def scan(image: Image, config: PatchConfig, tick: Callable[[int], None] = lambda _: None) -> Scan:
    """Hash an image and find its patches; calls `tick` with the windows of every tile."""
    grid = Grid.of(image.shape, config)
    digests: list[str] = []
    kept = []
    flags = np.empty((0, grid.n_x), np.bool_)
    for _, y, x in tiles_of(image.shape, image.tile):
        pixels = image.read(y.start, y.stop, x.start, x.stop)
        if not np.isfinite(pixels).all():
            raise DscError(
                f"found NaN or infinite pixels in rows {y.start} to {y.stop}, columns {x.start} "
                f"to {x.stop}, need finite ones: replace them"
            )
        digests.append(digest(pixels))
        rows = grid.inside(y, grid.n_y)
        if x.start == 0:
            flags = np.ones((rows.stop - rows.start, grid.n_x), np.bool_)
        columns = grid.inside(x, grid.n_x)
        if config.min_std > 0 and rows.start < rows.stop and columns.start < columns.stop:
            extents = (grid.extent(part, config.diameter) for part in (rows, columns))
            (y0, y1), (x0, x1) = extents  # windows that begin in this tile may reach into the next
            window, keep = image.read(y0, y1, x0, x1), flags[:, columns]
            kernels.keep_windows(window, config.diameter, config.stride, config.min_std, keep)
        tick((rows.stop - rows.start) * (columns.stop - columns.start))
        if x.stop == image.shape[1]:
            kept.append((rows.start * grid.n_x, flags.size, np.packbits(flags)))
    whole = hashlib.sha256(repr((image.shape, image.tile, digests)).encode()).hexdigest()
    return Scan(grid, tuple(digests), whole, tuple(kept))
