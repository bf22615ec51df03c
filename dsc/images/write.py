"""Images as files."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsc.errors import DscError
from dsc.files import write_whole
from dsc.locks import lock_path, locked

WRITABLE = (".npy", ".png", ".tif", ".tiff")
BYTES = 255.0  # the largest number of 8 bits


@contextmanager
def new_file(out: str, overwrite: bool, source: str) -> Iterator[Path]:
    """The path of an image to be written, for this process alone; refused if it cannot be.

    What is there is replaced only if that is wanted, and never if it is the `source` of the image.
    """
    path = Path(out)
    if path.suffix.lower() not in WRITABLE:
        raise DscError(f"out: found {out!r}, need a name that ends in .npy, .png or .tif")
    if not path.parent.is_dir():
        raise DscError(f"{out}: there is no folder {path.parent}: make it first")
    if os.path.realpath(out) == os.path.realpath(source):
        raise DscError(f"{out}: is the image itself: choose another --out")
    with locked(lock_path(path), out):
        if path.exists() and not (overwrite and path.is_file()):
            raise DscError(f"{out}: exists already: choose another --out, or give --overwrite")
        yield path


def check_writable(path: Path, pixels: NDArray[Any], is_color: bool = True) -> None:
    """Refuse, before any work, an image of pixels like these that a file cannot hold.

    Channels of (y, x, channel) are colors and alpha, or anything else.
    """
    if path.suffix.lower() == ".png" and pixels.ndim > 2 and not is_color:
        raise DscError(
            f"{path}: found {pixels.shape[2]} channels that are no colors, which PNG does not "
            "hold: write .tif or .npy"
        )
    fits = pixels.dtype.kind in "fb" or pixels.dtype == np.uint8
    fits = fits or (pixels.dtype == np.uint16 and pixels.ndim == 2)
    if path.suffix.lower() == ".png" and not fits:
        raise DscError(
            f"{path}: found pixels {pixels.shape} of type {pixels.dtype}, which PNG does not hold: "
            "write .tif or .npy"
        )


def write_pixels(
    path: Path, pixels: NDArray[Any], like: NDArray[Any], is_color: bool = True
) -> None:
    """Write pixels (y, x) or (y, x, channel) in their own type, whole or not at all.

    Channels that are no colors are pages of a TIFF.

    PNG holds whole numbers of 8 bits, and grey ones of 16. Floats are written to it with 256
    levels, over `png_span` of the image that they come from, `like`.
    """
    data = io.BytesIO()
    suffix = path.suffix.lower()
    if suffix == ".npy":
        np.save(data, pixels)
    elif suffix == ".png":
        from PIL import Image

        check_writable(path, pixels)
        Image.fromarray(_levels(pixels, like)).save(data, format="PNG")
    else:
        import tifffile

        if pixels.ndim > 2 and not is_color:
            pages = np.ascontiguousarray(np.moveaxis(pixels, 2, 0))
            tifffile.imwrite(data, pages, photometric="minisblack", metadata={"axes": "CYX"})
        else:
            has_rgb = pixels.ndim > 2 and pixels.shape[2] > 2
            tifffile.imwrite(data, pixels, photometric="rgb" if has_rgb else "minisblack")
    write_whole(path, data.getvalue())


def _levels(pixels: NDArray[Any], like: NDArray[Any]) -> NDArray[Any]:
    """Pixels as PNG holds them."""
    if pixels.dtype == bool:
        return pixels.astype(np.uint8) * np.uint8(255)
    if pixels.dtype.kind != "f":
        return pixels
    low, high = png_span(like)
    levels = (pixels.astype(np.float64) - low) / ((high - low) or 1.0)
    return np.asarray(np.rint(255 * np.nan_to_num(levels).clip(0, 1)), np.uint8)


def png_span(like: NDArray[Any]) -> tuple[float, float]:
    """What of floats becomes 0 and 255 in a PNG.

    0 and 1 if all values are in there, 0 and 255 if they are whole numbers in there, else the least
    and the largest one.

    Examples
    --------
    >>> [png_span(np.array(pair)) for pair in ([0.2, 1.0], [3.0, 254.0], [-2.5, 9.0])]
    [(0.0, 1.0), (0.0, 255.0), (-2.5, 9.0)]
    """
    low, high = float(np.nanmin(like)), float(np.nanmax(like))
    if low >= 0 and high <= 1:
        return 0.0, 1.0
    known = like[~np.isnan(like)]
    if low >= 0 and high <= BYTES and (known == np.rint(known)).all():
        return 0.0, BYTES
    return low, high
