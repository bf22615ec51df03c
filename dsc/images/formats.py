"""Image files: how many images are in one, and their pixels."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dsc.errors import DscError
from dsc.images.cache import DECODED
from dsc.images.limits import check_count
from dsc.images.microscopes import (
    READERS,
    decode_microscope,
    microscope_stack,
    open_mosaic,
    probe_microscope,
)
from dsc.images.pillow import decode_frame, probe_pillow
from dsc.images.planes import COLORS
from dsc.images.reading import Stack
from dsc.images.tiff import decode_tiff, open_window, probe_tiff, tiff_stack

TIFF = (".tif", ".tiff", ".svs")
NUMPY = (".npy",)
PILLOW = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".ras")
WHOLE = -1  # the page of an array that is one image of channels
SUFFIXES = (*PILLOW, *TIFF, *NUMPY, *READERS)


class FilePage(NamedTuple):
    """An image of a file."""

    path: Path
    page: int
    level: int = 0  # of a pyramid


def check_level(level: int) -> None:
    """Refuse a level of what is no pyramid."""
    if level:
        raise DscError(f"level: found {level}, need 0: only OME-Zarr and TIFF have others")


def probe(path: Path, level: int = 0, channeled: bool = False) -> list[tuple[int, tuple[int, int]]]:
    """(page, (y, x)) of every image in a file, from its header."""
    suffix = path.suffix.lower()
    if suffix in TIFF:
        return probe_tiff(path, level)
    check_level(level)
    if suffix in NUMPY:
        return probe_array(np.load(path, mmap_mode="r", allow_pickle=False), channeled)
    return probe_microscope(path) if suffix in READERS else probe_pillow(path)


def read_window(source: FilePage, y: slice, x: slice) -> NDArray[Any]:
    """A window of an image of a file: (y, x) or (y, x, channel), in its own type.

    Large pages of TIFF files and mosaics are read by window, .npy files are mapped into memory;
    any other image is decoded once, and kept for the next window.
    """
    path = source.path
    if path.suffix.lower() in NUMPY:
        return decode(source)[y, x]
    status = path.stat()
    key = ("file", *source, status.st_mtime_ns, status.st_size)
    pixels = DECODED.get(key)
    if pixels is None:
        if (read := _window_reader(source)) is not None:
            return read(y, x)
        pixels = DECODED.put(key, decode(source))
    return pixels[y, x]


def _window_reader(source: FilePage) -> Callable[[slice, slice], NDArray[Any]] | None:
    suffix = source.path.suffix.lower()
    if suffix in READERS:
        return open_mosaic(source.path, source.page)
    return open_window(*source) if suffix in TIFF else None


def decode(source: FilePage) -> NDArray[Any]:
    """The pixels of one image of a file: (y, x) or (y, x, channel), in their own type."""
    path, page, level = source
    suffix = path.suffix.lower()
    if suffix in NUMPY:
        return take_plane(np.load(path, mmap_mode="r", allow_pickle=False), page)
    if suffix in TIFF:
        return decode_tiff(path, page, level)
    return decode_microscope(path, page) if suffix in READERS else decode_frame(path, page)


def page_stack(path: Path) -> Stack:
    """How the images of a file are stacked, as far as it says so."""
    suffix = path.suffix.lower()
    if suffix in READERS:
        return microscope_stack(path)
    return tiff_stack(path) if suffix in TIFF else Stack((), ())


def probe_array(array: NDArray[Any], channeled: bool = False) -> list[tuple[int, tuple[int, int]]]:
    """The same for an array: an image, an image in color, or a stack of images.

    If it is `channeled`, the last of three axes are channels, however many.
    """
    if channeled and array.ndim == 3:
        return [(WHOLE, (array.shape[0], array.shape[1]))]
    if array.ndim == 2 or (array.ndim == 3 and array.shape[2] in COLORS):
        return [(0, (array.shape[0], array.shape[1]))]
    if array.ndim == 3:
        check_count(len(array))
        return [(page, (array.shape[1], array.shape[2])) for page in range(len(array))]
    raise DscError(f"found a {array.ndim}-D array, need (y, x), (y, x, color) or (image, y, x)")


def take_plane(array: NDArray[Any], page: int) -> NDArray[Any]:
    """One image of such an array."""
    stacked = array.ndim == 3 and array.shape[2] not in COLORS and page != WHOLE
    return array[page] if stacked else array
