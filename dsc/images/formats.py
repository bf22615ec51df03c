"""Image files: how many images are in one, and their pixels."""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from threading import local
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dsc.errors import DscError
from dsc.images.limits import check_count, check_decoded
from dsc.images.planes import COLORS

if TYPE_CHECKING:
    from PIL.Image import Image

TIFF = (".tif", ".tiff")
NUMPY = (".npy",)
PILLOW = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".ras")
SUFFIXES = (*PILLOW, *TIFF, *NUMPY)

_MODE_BYTES = {"I": 4, "F": 4, "I;16": 2, "I;16B": 2, "I;16L": 2, "I;16N": 2}  # others: 1 a band
_local = local()  # the animation that a thread reads

_PLAIN = ("MINISBLACK", "MINISWHITE", "RGB", "PALETTE")  # how TIFF pixels may be meant


def probe(path: Path) -> list[tuple[int, tuple[int, int]]]:
    """(page, (y, x)) of every image in a file, from its header."""
    suffix = path.suffix.lower()
    if suffix in NUMPY:
        return probe_array(np.load(path, mmap_mode="r", allow_pickle=False))
    if suffix in TIFF:
        return [(number, shape) for number, (_, _, shape) in enumerate(_full_pages(path))]
    with _pillow(path) as image:
        _check_pillow(image)
        n_frames = getattr(image, "n_frames", 1)
        check_count(n_frames)
        return [(page, (image.height, image.width)) for page in range(n_frames)]


def decode(path: Path, page: int) -> NDArray[Any]:
    """The pixels of one image of a file: (y, x) or (y, x, channel), in their own type."""
    suffix = path.suffix.lower()
    if suffix in NUMPY:
        return take_plane(np.load(path, mmap_mode="r", allow_pickle=False), page)
    if suffix in TIFF:
        return _decode_tiff(path, page)
    return _decode_pillow(path, page)


def probe_array(array: NDArray[Any]) -> list[tuple[int, tuple[int, int]]]:
    """The same for an array: an image, an image in color, or a stack of images."""
    if array.ndim == 2 or (array.ndim == 3 and array.shape[2] in COLORS):
        return [(0, (array.shape[0], array.shape[1]))]
    if array.ndim == 3:
        check_count(len(array))
        return [(page, (array.shape[1], array.shape[2])) for page in range(len(array))]
    raise DscError(f"found a {array.ndim}-D array, need (y, x), (y, x, color) or (image, y, x)")


def take_plane(array: NDArray[Any], page: int) -> NDArray[Any]:
    """One image of such an array."""
    stacked = array.ndim == 3 and array.shape[2] not in COLORS
    return array[page] if stacked else array


@contextmanager
def _pillow(source: Path | io.BytesIO) -> Iterator[Image]:
    with warnings.catch_warnings():
        _ignore_large()
        with _open_pillow(source) as image:
            yield image


def _ignore_large() -> None:
    from PIL import Image

    warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # the limit here is our own


def _open_pillow(source: Path | io.BytesIO) -> Image:
    from PIL import Image

    try:
        return Image.open(source)
    except Image.DecompressionBombError as error:
        raise DscError(f"{error} Convert it to TIFF or Zarr, which may be larger") from error


def _check_pillow(image: Image) -> None:
    n_bytes = _MODE_BYTES.get(image.mode, len(image.getbands()))
    check_decoded(image.height * image.width * n_bytes)


def _decode_pillow(path: Path, page: int) -> NDArray[Any]:
    if page and path.suffix.lower() not in TIFF:
        return _decode_frame(path, page)
    with _pillow(path) as image:
        image.seek(page)
        return _pixels(image)


def _decode_frame(path: Path, page: int) -> NDArray[Any]:
    """A later frame of an animation.

    Each builds on the one before it, so the file stays open for the thread's next frame.
    """
    status = path.stat()
    key = (str(path), status.st_mtime_ns, status.st_size)
    known, image = getattr(_local, "animation", (None, None))
    with warnings.catch_warnings():
        _ignore_large()
        if image is None or known != key or image.tell() > page:
            image = _open_pillow(io.BytesIO(path.read_bytes()))
        _local.animation = (None, None)  # a broken one is not used again
        image.seek(page)
        pixels = _pixels(image)
    if page + 1 < getattr(image, "n_frames", 1):
        _local.animation = (key, image)
    return pixels


def _pixels(image: Image) -> NDArray[Any]:
    _check_pillow(image)
    parts = getattr(image, "tile", ())  # (decoder, extents, offset, raw mode)
    if any(";16" in str(part[3]) for part in parts) and len(image.getbands()) > 1:
        raise DscError("found colors of 16 bits, of which Pillow reads 8: convert it to TIFF")
    if image.mode == "I" and image.format == "PNG":  # 16 bits, as some Pillows give them
        return np.asarray(image).astype(np.uint16)
    if image.mode in ("1", "L", "LA", "RGB", "RGBA", "I", "F") or image.mode[:4] == "I;16":
        pixels = np.asarray(image)
    else:
        pixels = np.asarray(image.convert("RGBA" if "A" in image.mode else "RGB"))
    return pixels.astype(pixels.dtype.newbyteorder("="), copy=False)


def _full_pages(path: Path) -> tuple[tuple[int, int, tuple[int, int]], ...]:
    """(number, offset, (y, x)) of the pages of a TIFF file, without reduced copies of others."""
    status = path.stat()
    return _list_pages(path, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=16)
def _list_pages(path: Path, *_: int) -> tuple[tuple[int, int, tuple[int, int]], ...]:
    """Of a file as it is now: its time and size make another call of another file."""
    import tifffile

    pages = []
    with tifffile.TiffFile(path) as file:
        page: Any
        for number, page in enumerate(file.pages):
            if not page.keyframe.is_reduced:
                _check_tiff(page)
                pages.append((number, page.offset, (int(page.imagelength), int(page.imagewidth))))
    check_count(len(pages))
    return tuple(pages)


def _check_tiff(page: Any) -> None:
    n_samples = 3 if page.photometric == 3 else 1  # a palette stands for colors
    check_decoded(math.prod(page.shape) * (page.dtype.itemsize if page.dtype else 8) * n_samples)


def _decode_tiff(path: Path, page: int) -> NDArray[Any]:
    import tifffile

    number, offset, _ = _full_pages(path)[page]
    with tifffile.TiffFile(path) as file:
        file.filehandle.seek(offset)
        found: Any = tifffile.TiffPage(file, number)
        _check_tiff(found)
        try:
            if found.photometric.name in _PLAIN:
                return _plain_tiff(found)
            reason = ""
        except DscError:
            raise
        except Exception as error:  # above all compressions that it needs a further package for
            reason = f"{error}; "
    try:
        return _decode_pillow(path, number)
    except Exception as error:
        raise DscError(f"cannot be decoded: {reason}{error}") from error


def _plain_tiff(page: Any) -> NDArray[Any]:
    pixels: NDArray[Any] = page.asarray()
    if page.axes == "SYX":
        pixels = np.moveaxis(pixels, 0, 2)
    elif page.axes not in ("YX", "YXS"):
        raise DscError(f"found a page with axes {page.axes}, need a flat image")
    if page.photometric.name == "PALETTE":
        table = (np.asarray(page.colormap) >> 8).astype(np.uint8)  # v·256 or v·257, by the writer
        return np.moveaxis(table[:, pixels], 0, 2)
    if page.photometric.name == "MINISWHITE" and pixels.dtype.kind in "ub":
        top = 2**page.bitspersample - 1
        return ~pixels if pixels.dtype.kind == "b" else (top - pixels).astype(pixels.dtype)
    return pixels
