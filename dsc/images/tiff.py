"""TIFF files: pages and levels, small ones decoded as a whole, large ones read by window."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dsc.errors import DscError
from dsc.images.cache import DECODED
from dsc.images.limits import WHOLE, check_count, check_decoded
from dsc.images.pillow import decode_pillow
from dsc.images.reading import Stack
from dsc.images.tiles import tiles_of

PILLOW_MOST = 2**29  # bytes of colors, of which Pillow refuses more

_PLAIN = ("MINISBLACK", "MINISWHITE", "RGB", "PALETTE")  # how TIFF pixels may be meant
_JPEG = (6, 7, 33007, 34892)  # compressions of which tifffile makes RGB
_AXES = ("YX", "YXS", "SYX")

Window = Callable[[slice, slice], NDArray[Any]]


class Page(NamedTuple):
    """A page of a TIFF file, or its reduced copy."""

    number: int
    offset: int
    shape: tuple[int, int]  # (y, x)
    by_window: bool  # whether it is read by window


def probe_tiff(path: Path, level: int) -> list[tuple[int, tuple[int, int]]]:
    """(page, (y, x)) of every image in a file, from its header."""
    return [(number, page.shape) for number, page in enumerate(_pages(path, level))]


def tiff_stack(path: Path) -> Stack:
    """How the pages of a file are stacked, as far as it says so."""
    import tifffile

    with tifffile.TiffFile(path) as file:
        series = file.series[0]
        leading = [(a, n) for a, n in zip(series.axes, series.shape, strict=True) if a not in "YXS"]
    return Stack(tuple(a.lower() for a, _ in leading), tuple(int(n) for _, n in leading))


def open_window(path: Path, page: int, level: int) -> Window | None:
    """What reads a window of a large page; None if the page is decoded as a whole."""
    if not _pages(path, level)[page].by_window:
        return None
    return _open(path, page, level, *_stamp(path)).read


def decode_tiff(path: Path, page: int, level: int) -> NDArray[Any]:
    """All pixels of a page: (y, x) or (y, x, channel), in their own type."""
    import tifffile

    number, offset, *_ = _pages(path, level)[page]
    with tifffile.TiffFile(path) as file:
        file.filehandle.seek(offset)
        found: Any = tifffile.TiffPage(file, number)
        check_decoded(_n_bytes(found))
        try:
            if _is_plain(found, level):
                return _decode_whole(found)
            reason = ""
        except DscError:
            raise
        except Exception as error:  # above all compressions that it needs a further package for
            reason = f"{error}; "
    try:
        if level:
            raise DscError("levels are read with tifffile alone")
        return decode_pillow(path, number)
    except Exception as error:
        raise DscError(f"cannot be decoded: {reason}{error}") from error


def _stamp(path: Path) -> tuple[int, int]:
    """Time and size of a file, which make another call of another file."""
    status = path.stat()
    return status.st_mtime_ns, status.st_size


def _pages(path: Path, level: int) -> tuple[Page, ...]:
    return _list_pages(path, level, *_stamp(path))


@lru_cache(maxsize=16)
def _list_pages(path: Path, level: int, *_: int) -> tuple[Page, ...]:
    import tifffile

    pages = []
    with tifffile.TiffFile(path) as file:
        for number, page in _pages_of(file, level):
            shape = (int(page.imagelength), int(page.imagewidth))
            pages.append(Page(number, page.offset, shape, _goes_by_window(page, level)))
    check_count(len(pages))
    return tuple(pages)


def _pages_of(file: Any, level: int) -> Iterator[tuple[int, Any]]:
    """The pages of a level and their numbers: at 0 those that are no reduced copies of others.

    At others those of pyramids: a label or a thumbnail beside one has no levels. A slide of Aperio
    has its levels, thumbnail and labels as pages like any others; the slide alone is taken.
    """
    if level == 0 and _is_slide(file):
        yield from ((page.index, page) for page in file.series[0].pages)
        return
    if level == 0:
        full = (entry for entry in enumerate(file.pages) if not entry[1].keyframe.is_reduced)
        yield from full
        return
    pyramids = [series for series in file.series if len(series.levels) > 1]
    n_levels = min((len(series.levels) for series in pyramids), default=1)
    if level >= n_levels:
        raise DscError(f"level: found {level}, need at most {n_levels - 1}, as many as it has")
    found = [page for series in pyramids for page in series.levels[level].pages]
    # a set of OME-TIFF files names the pages of the others, too
    own = (page.aspage() for page in found if page is not None and page.parent is file)
    yield from enumerate(own)


def _is_slide(file: Any) -> bool:
    """Whether tifffile finds the slide and its levels, as its first series (.svs)."""
    return bool(file.pages.first.is_svs and file.series[0].kind == "svs")


def _n_bytes(page: Any) -> int:
    n_samples = 3 if page.photometric == 3 else 1  # a palette stands for colors
    item = page.dtype.itemsize if page.dtype else 8
    return int(math.prod(page.shape)) * int(item) * n_samples


def _is_plain(page: Any, level: int) -> bool:
    """Whether tifffile decodes to pixels that need no more than `_as_meant`.

    Of colors in YCbCr only where Pillow, which has always decoded them, cannot.
    """
    if page.photometric.name in _PLAIN:
        return True
    is_color = page.photometric.name == "YCBCR" and page.compression in _JPEG
    return is_color and (level > 0 or _n_bytes(page) > PILLOW_MOST)


def _goes_by_window(page: Any, level: int) -> bool:
    """Whether a page is read by window; what is too large to decode is refused."""
    from tifffile import TIFF

    page, n_bytes = page.keyframe, _n_bytes(page.keyframe)
    if n_bytes <= WHOLE or not _is_plain(page, level) or page.axes not in _AXES:
        check_decoded(n_bytes)
        return False
    if page.is_final:
        return True
    if page.compression not in TIFF.DECOMPRESSORS or page.predictor not in TIFF.UNPREDICTORS:
        remedy = "install imagecodecs (pip install 'dsc[formats]'), by which it is read by window"
        check_decoded(n_bytes, f"an image ({page.compression.name})", remedy)
        return False
    rows, columns = _segment_shape(page)
    n_values = rows * columns * page.shaped[4]
    is_one = rows >= page.imagelength and columns >= page.imagewidth
    what = "an image" if is_one else "tiles" if page.is_tiled else "strips"
    check_decoded(n_values * page.dtype.itemsize, what)
    return True


def _segment_shape(page: Any) -> tuple[int, int]:
    """(y, x) of a tile, or of a strip."""
    if page.is_tiled:
        return int(page.tilelength), int(page.tilewidth)
    return min(int(page.rowsperstrip), int(page.imagelength)), int(page.imagewidth)


@lru_cache(maxsize=16)
def _open(path: Path, page: int, level: int, *stamp: int) -> _Windows:
    import tifffile

    number, offset, *_ = _pages(path, level)[page]
    with tifffile.TiffFile(path) as file:
        file.filehandle.seek(offset)
        return _Windows(path, (page, level, *stamp), tifffile.TiffPage(file, number))


class _Windows:
    """Windows of a page, of which only the tiles or strips that they touch are decoded.

    It is made while the file is open; each window opens the file again, so that threads do not
    share a place in it.
    """

    def __init__(self, path: Path, key: tuple[int, ...], page: Any) -> None:
        self.path, self.key, self.page = path, ("tiff", path, *key), page
        self.shape = (int(page.imagelength), int(page.imagewidth))
        self.size = _segment_shape(page)
        self.offsets, self.counts = tuple(page.dataoffsets), tuple(page.databytecounts)
        self.decode = page.decode
        self.options: dict[str, Any] = {}
        if page.compression in _JPEG:
            self.options = {"jpegtables": page.jpegtables, "jpegheader": page.jpegheader}
        self.colormap = page.colormap if page.photometric.name == "PALETTE" else None

    def read(self, y: slice, x: slice) -> NDArray[Any]:
        """A window: (y, x) or (y, x, channel), as `decode_tiff` would give it."""
        page = self.page
        pixels = self._map(y, x) if page.is_final else self._join(y, x)  # (plane, y, x, value)
        flat = {"YX": pixels[0, :, :, 0], "YXS": pixels[0], "SYX": pixels[:, :, :, 0]}
        return _as_meant(flat[page.axes], page, self.colormap)

    def _map(self, y: slice, x: slice) -> NDArray[Any]:
        """Pixels that lie in the file as they are."""
        page, begin = self.page, int(self.offsets[0])
        shape, dtype = page.shaped, np.dtype(page.parent.byteorder + page.dtype.char)
        end, n_bytes = begin + math.prod(shape) * dtype.itemsize, self.path.stat().st_size
        if end > n_bytes:
            raise DscError(f"is cut: found {n_bytes:,} bytes, need {end:,}: fetch it again")
        mapped = np.memmap(self.path, dtype, "r", begin, shape)
        return np.array(mapped[:, 0, y, x], dtype.newbyteorder("="))

    def _join(self, y: slice, x: slice) -> NDArray[Any]:
        n_planes, n_values = self.page.shaped[0], self.page.shaped[4]
        shape = (n_planes, y.stop - y.start, x.stop - x.start, n_values)
        pixels = np.empty(shape, self.page.dtype.newbyteorder("="))
        n_segments = math.prod(-(-a // b) for a, b in zip(self.shape, self.size, strict=True))
        for plane in range(n_planes):
            for tile in tiles_of(self.shape, self.size, y, x):
                here, there = tile.shared(y, x)
                pixels[plane][here] = self._segment(plane * n_segments + tile.number)[there]
        return pixels

    def _segment(self, index: int) -> NDArray[Any]:
        """(y, x, value) of a tile or a strip."""
        if (found := DECODED.get((*self.key, index))) is not None:
            return found
        try:
            pixels, _, shape = self.decode(self._bytes(index), index, **self.options)
        except Exception as error:
            kind = "tile" if self.page.is_tiled else "strip"
            raise DscError(f"{kind} {index} cannot be decoded: {error}") from error
        if pixels is None:  # it was left out, as some writers do with empty ones
            pixels = np.full(shape, self.page.nodata, self.page.dtype)
        return DECODED.put((*self.key, index), pixels[0])

    def _bytes(self, index: int) -> bytes | None:
        if index >= min(len(self.offsets), len(self.counts)):
            raise DscError(f"found {len(self.offsets)} of them, need more: fetch the file again")
        offset, count = self.offsets[index], self.counts[index]
        if offset == 0 or count == 0:
            return None
        with self.path.open("rb") as file:
            file.seek(offset)
            data = file.read(count)
        if len(data) < count:
            raise DscError("the file ends before it: fetch the file again")
        return data


def _decode_whole(page: Any) -> NDArray[Any]:
    if page.axes not in _AXES:
        raise DscError(f"found a page with axes {page.axes}, need a flat image")
    if not page.is_contiguous and len(page.dataoffsets) < math.prod(page.chunked):
        kind = "tiles" if page.is_tiled else "strips"
        n_found, n_wanted = len(page.dataoffsets), math.prod(page.chunked)
        raise DscError(f"found {n_found} {kind}, need {n_wanted}: fetch the file again")
    colormap = page.colormap if page.photometric.name == "PALETTE" else None
    return _as_meant(page.asarray(), page, colormap)


def _as_meant(pixels: NDArray[Any], page: Any, colormap: Any) -> NDArray[Any]:
    """Colors last, palettes as colors, and white as the largest value."""
    if page.axes == "SYX":
        pixels = np.moveaxis(pixels, 0, 2)
    if colormap is not None:
        table = (np.asarray(colormap) >> 8).astype(np.uint8)  # v·256 or v·257, by the writer
        return np.moveaxis(table[:, pixels], 0, 2)
    if page.photometric.name == "MINISWHITE" and pixels.dtype.kind in "ub":
        top = 2**page.bitspersample - 1
        return ~pixels if pixels.dtype.kind == "b" else (top - pixels).astype(pixels.dtype)
    return pixels
