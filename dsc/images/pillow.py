"""What Pillow decodes: PNG, JPEG, BMP, GIF, Sun raster, and TIFF of rare kinds."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import local
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dsc.errors import DscError
from dsc.images.limits import check_count, check_decoded

if TYPE_CHECKING:
    from PIL.Image import Image

_MODE_BYTES = {"I": 4, "F": 4, "I;16": 2, "I;16B": 2, "I;16L": 2, "I;16N": 2}  # others: 1 a band
_local = local()  # the animation that a thread reads


def probe_pillow(path: Path) -> list[tuple[int, tuple[int, int]]]:
    """(page, (y, x)) of every image in a file, from its header."""
    with _pillow(path) as image:
        _check_pillow(image)
        n_frames = getattr(image, "n_frames", 1)
        check_count(n_frames)
        return [(page, (image.height, image.width)) for page in range(n_frames)]


def decode_pillow(path: Path, page: int) -> NDArray[Any]:
    """The pixels of one image of a file: (y, x) or (y, x, channel), in their own type."""
    with _pillow(path) as image:
        image.seek(page)
        runs = _decode_runs(image, path)
        return _pixels(image if runs is None else runs)


def decode_frame(path: Path, page: int) -> NDArray[Any]:
    """The same of an animation.

    Each frame builds on the one before it, so the file stays open for the thread's next one.
    """
    if page == 0:
        return decode_pillow(path, 0)
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


def _decode_runs(image: Image, path: Path) -> Image | None:
    """A BMP of 8 bits in runs (RLE8), which Pillow decodes byte by byte in Python.

    None of any other, and of one that has no pixel for each place: Pillow says what is wrong.
    """
    from PIL import Image as Pillow

    # (decoder, extents, offset, (raw mode, whether it is RLE4, direction))
    parts: Any = getattr(image, "tile", ())
    if image.mode not in ("L", "P") or len(parts) != 1 or parts[0][0] != "bmp_rle":
        return None
    _, extents, offset, (_, is_rle4, direction) = parts[0]
    if is_rle4 or extents != (0, 0, *image.size):
        return None
    from dsc.images.kernels import decode_rle8

    _check_pillow(image)
    indices = np.zeros((image.height, image.width), np.uint8)
    data = np.frombuffer(path.read_bytes(), np.uint8)
    if decode_rle8(data, offset, image.width, indices.reshape(-1)) < indices.size:
        return None
    found = Pillow.fromarray(np.ascontiguousarray(indices[::direction]))
    if image.palette is not None:
        found.putpalette(image.palette.palette, image.palette.rawmode or "RGB")
    return found


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
