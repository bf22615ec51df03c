"""Looking at an image once, tile by tile: its hash, and which of its windows are patches."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dsc.errors import DscError
from dsc.images import Image, image_problem, tiles_of
from dsc.patches import kernels
from dsc.patches.config import PatchConfig
from dsc.patches.disks import disk_offsets

LARGEST = 2**31 - 1  # along an axis: positions are int32
PIECE = 2**20  # candidates unpacked at a time: whole bytes of bits
SURVEYED = 2**17  # pixels hashed at a time

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
        if max(shape) > LARGEST:
            raise DscError(f"found {shape[0]} × {shape[1]} pixels, need at most {LARGEST} an axis")
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
    # SHA-256 of every tile's values, row by row: of each channel
    digests: tuple[tuple[str, ...], ...]
    sha256: str  # of the image as a whole
    span: tuple[float, float]  # its least and largest value
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


def survey(pixels: NDArray[np.float32]) -> tuple[str, float, float]:
    """The hash of a tile, and its least and largest value; these are NaN if one of its is.

    Some rows at a time, which stay in the cache meanwhile, and need no copy of the whole.
    """
    total, low, high = hashlib.sha256(), np.float32(np.inf), np.float32(-np.inf)
    step = max(1, SURVEYED // pixels.shape[1])
    for top in range(0, len(pixels), step):
        rows = np.ascontiguousarray(pixels[top : top + step], "<f4")
        total.update(rows.data)
        low, high = np.minimum(low, rows.min()), np.maximum(high, rows.max())
    return total.hexdigest(), float(low), float(high)


@dataclass(frozen=True, eq=False)
class Band:
    """What was seen of one row of tiles."""

    first: int  # the number of its first window, and how many it has
    count: int
    bits: NDArray[np.uint8]  # one for each: whether it is a patch
    digests: tuple[tuple[str, ...], ...]  # of its tiles, in each channel
    span: tuple[float, float]  # its least and largest value


def bands_of(image: Image, y: slice | None = None) -> Iterator[slice]:
    """The rows of an image's rows of tiles: of all, or of those that begin in some rows."""
    step, rows = image.tile[0], y or slice(0, image.shape[0])
    for top in range(rows.start, rows.stop, step):
        yield slice(top, min(top + step, image.shape[0]))


def scan_band(
    channels: Sequence[Image], y: slice, config: PatchConfig, mask: Image | None = None
) -> Band:
    """Hash one row of tiles of an image, and find the patches that begin there.

    A window is a patch if it varies enough in some channel, and if its disk has no pixel that is
    missing (NaN) or where the mask is zero.
    """
    first = channels[0]
    shape, grid = first.shape, Grid.of(first.shape, config)
    digests: list[list[str]] = [[] for _ in channels]
    low, high = np.inf, -np.inf
    rows = grid.inside(y, grid.n_y)
    flags = np.ones((rows.stop - rows.start, grid.n_x), np.bool_)
    for _, _, x in tiles_of(shape, first.tile, y, slice(0, shape[1])):
        columns = grid.inside(x, grid.n_x)
        (y0, y1), (x0, x1) = (y.start, y.stop), (x.start, x.stop)
        if rows.start < rows.stop and columns.start < columns.stop:
            (y0, y1), (x0, x1) = (grid.extent(part, config.diameter) for part in (rows, columns))
        # windows that begin in this tile may reach into the next
        region = (y.start, max(y.stop, y1), x.start, max(x.stop, x1))
        window = np.s_[y0 - y.start : y1 - y.start, x0 - x.start : x1 - x.start]
        keep = flags[:, columns]
        inside = [] if mask is None else [_is_inside(mask, region)[window]]
        varies = np.full(keep.shape, config.min_std <= 0)
        for image, own in zip(channels, digests, strict=True):
            pixels = image.read_once(*region)
            height, width = y.stop - y.start, x.stop - x.start
            hashed, least, most = survey(pixels[:height, :width])
            if not np.isfinite([least, most]).all():
                _check_values(pixels[:height, :width], y, x, bool(config.rotate))
            own.append(hashed)
            low, high = np.fmin(low, least), np.fmax(high, most)
            if not keep.size:
                continue
            if config.min_std > 0:
                found = np.empty(keep.shape, np.bool_)
                how = (config.diameter, config.stride, config.min_std)
                kernels.keep_windows(pixels[window], *how, found)
                varies |= found
            beside = (pixels[height:], pixels[:height, width:])
            if np.isnan(least) or any(np.isnan(part).any() for part in beside):
                inside.append(~np.isnan(pixels[window]))
        keep &= varies
        for part in inside if keep.size else ():
            offset = disk_offsets(config.diameter, part.shape[1])
            kernels.keep_inside(np.ascontiguousarray(part), config.stride, offset, keep)
    return Band(
        rows.start * grid.n_x,
        flags.size,
        np.packbits(flags),
        tuple(map(tuple, digests)),
        (float(low), float(high)),
    )


def _is_inside(mask: Image, region: tuple[int, int, int, int]) -> NDArray[np.bool_]:
    """(y, x) where a mask of any type and number of colors is not zero."""
    try:
        values = np.nan_to_num(mask.crop(*region))
    except Exception as error:  # the image is not to blame
        raise DscError(f"mask: {image_problem(mask, error)}") from error
    return np.asarray(values != 0 if values.ndim == 2 else (values != 0).any(axis=2))


def _check_values(pixels: NDArray[np.float32], y: slice, x: slice, rotated: bool) -> None:
    """Refuse values that no patch can have."""
    if np.isinf(pixels).any():
        raise DscError(
            f"found infinite pixels in rows {y.start} to {y.stop}, columns {x.start} to {x.stop}, "
            "need finite ones, or NaN where they are missing"
        )
    if rotated and np.isnan(pixels).any():
        raise DscError(
            "found missing pixels (NaN), which rotated patches would blend with others: fill them "
            "first (`dsc inpaint`), or take patches as they are"
        )


def join_bands(image: Image, config: PatchConfig, bands: Sequence[Band]) -> Scan:
    """What was seen of an image, from all of its rows of tiles."""
    digests = [sum(tiles, ()) for tiles in zip(*(band.digests for band in bands), strict=True)]
    hashes = [
        hashlib.sha256(repr((image.shape, image.tile, list(own))).encode()).hexdigest()
        for own in digests
    ]
    whole = hashes[0] if len(hashes) == 1 else hashlib.sha256("".join(hashes).encode()).hexdigest()
    lows, highs = zip(*(band.span for band in bands), strict=True)
    kept = tuple((band.first, band.count, band.bits) for band in bands)
    span = (float(np.fmin.reduce(lows)), float(np.fmax.reduce(highs)))
    return Scan(Grid.of(image.shape, config), tuple(digests), whole, span, kept)


def scan(channels: Sequence[Image], config: PatchConfig, mask: Image | None = None) -> Scan:
    """Hash the channels of an image and find its patches."""
    bands = [scan_band(channels, y, config, mask) for y in bands_of(channels[0])]
    return join_bands(channels[0], config, bands)
