"""Image files: how many images are in one, and their pixels."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dsc.errors import DscError
from dsc.images.planes import COLORS

if TYPE_CHECKING:
    from PIL.Image import Image

TIFF = (".tif", ".tiff")
NUMPY = (".npy",)
PILLOW = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".ras")
SUFFIXES = (*PILLOW, *TIFF, *NUMPY)

_PLAIN = ("MINISBLACK", "MINISWHITE", "RGB", "PALETTE")  # how TIFF pixels may be meant


def probe(path: Path) -> list[tuple[int, tuple[int, int]]]:
    """(page, (y, x)) of every image in a file, from its header."""
    suffix = path.suffix.lower()
    if suffix in NUMPY:
        return probe_array(np.load(path, mmap_mode="r", allow_pickle=False))
    if suffix in TIFF:
        with _full_pages(path) as pages:
            return [(n, (int(p.imagelength), int(p.imagewidth))) for n, p in enumerate(pages)]
    with _pillow(path) as image:
        shape = (image.height, image.width)
        return [(page, shape) for page in range(getattr(image, "n_frames", 1))]


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
        return [(page, (array.shape[1], array.shape[2])) for page in range(len(array))]
    raise DscError(f"found a {array.ndim}-D array, need (y, x), (y, x, color) or (image, y, x)")


def take_plane(array: NDArray[Any], page: int) -> NDArray[Any]:
    """One image of such an array."""
    stacked = array.ndim == 3 and array.shape[2] not in COLORS
    return array[page] if stacked else array


@contextmanager
def _pillow(path: Path) -> Iterator[Image]:
    from PIL import Image

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # large is what we expect
        with Image.open(path) as image:
            yield image


def _decode_pillow(path: Path, page: int) -> NDArray[Any]:
    with _pillow(path) as image:
        image.seek(page)
        if image.mode == "I" and image.format == "PNG":  # 16 bits, as some Pillows give them
            return np.asarray(image).astype(np.uint16)
        if image.mode in ("1", "L", "LA", "RGB", "RGBA", "I", "F") or image.mode[:4] == "I;16":
            pixels = np.array(image)
        else:
            pixels = np.array(image.convert("RGBA" if "A" in image.mode else "RGB"))
        return pixels.astype(pixels.dtype.newbyteorder("="), copy=False)


@contextmanager
def _full_pages(path: Path) -> Iterator[list[Any]]:
    """The pages of a TIFF file, without reduced copies of others."""
    import tifffile

    with tifffile.TiffFile(path) as file:
        pages: list[Any] = list(file.pages)
        yield [page for page in pages if not page.keyframe.is_reduced]


def _decode_tiff(path: Path, page: int) -> NDArray[Any]:
    with _full_pages(path) as pages:
        found = pages[page]
        try:
            if found.photometric.name in _PLAIN:
                return _plain_tiff(found)
            reason = ""
        except DscError:
            raise
        except Exception as error:  # above all compressions that it needs a further package for
            reason = f"{error}; "
    try:
        return _decode_pillow(path, int(found.index))
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
