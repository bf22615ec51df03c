"""What a tile's function sees: the pixels of the tile and those around it."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dsc.errors import DscError
from dsc.images import Image, open_images

Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Window:
    """A tile of an image with what surrounds it, cut where the image ends."""

    pixels: Floats  # (y, x) the tile and up to `margin` pixels on each side
    y: slice  # rows and columns of the tile in the image
    x: slice
    shape: tuple[int, int]  # (y, x) of the image
    margin: int

    @property
    def origin(self) -> tuple[int, int]:
        """Row and column of the first pixel in the image."""
        return max(0, self.y.start - self.margin), max(0, self.x.start - self.margin)

    def inner(self) -> Floats:
        """The pixels of the tile itself."""
        (y0, x0), (y, x) = self.origin, (self.y, self.x)
        return self.pixels[y.start - y0 : y.stop - y0, x.start - x0 : x.stop - x0]

    def mirrored(self) -> Floats:
        """The tile with all of its margin, mirrored (edge pixels twice) where the image ends.

        The same as a window of the mirrored image: what is needed of the other side of an edge is
        in the window, or the window is the whole image along that axis.
        """
        edges = [
            (max(0, self.margin - part.start), max(0, part.stop + self.margin - size))
            for part, size in zip((self.y, self.x), self.shape, strict=True)
        ]
        return np.pad(self.pixels, edges, mode="symmetric")


def cut_window(image: Image, y: slice, x: slice, margin: int) -> Window:
    """Read a tile with its margin; refuses pixels that are no finite numbers."""
    (y0, y1), (x0, x1) = (
        (max(0, part.start - margin), min(part.stop + margin, size))
        for part, size in zip((y, x), image.shape, strict=True)
    )
    pixels = image.read(y0, y1, x0, x1)
    if not np.isfinite(pixels).all():
        row, column = np.argwhere(~np.isfinite(pixels))[0]
        raise DscError(
            f"{image.name}: found {pixels[row, column]} at row {y0 + row}, column {x0 + column}, "
            "need finite numbers: replace it"
        )
    return Window(pixels, y, x, image.shape, margin)


def as_image(image: Any) -> Image:
    """One grey image of a path, a URL, an `Image`, or an array (y, x), taken as it is."""
    if isinstance(image, Image):
        return image
    if isinstance(image, str | os.PathLike):
        found = open_images(image)
        if len(found) != 1:
            raise DscError(f"{image}: found {len(found)} images, need one")
        return found[0]
    return _array_image(image)


def _array_image(array: ArrayLike) -> Image:
    values = np.asarray(array)
    if values.ndim != 2 or not values.size:
        raise DscError(f"image: found shape {values.shape}, need (y, x)")
    if values.dtype.kind not in "biuf":
        raise DscError(f"image: found values of type {values.dtype}, need real numbers")
    with np.errstate(over="ignore"):
        grey = values.astype(np.float32, copy=False)
    return Image("image", None, (grey.shape[0], grey.shape[1]), grey)


def check_size(image: Image, diameter: int) -> None:
    """Refuse an image in which no disk fits."""
    if min(image.shape) < diameter:
        raise DscError(
            f"{image.name}: found shape {image.shape}, need (y, x) of at least {diameter} × "
            f"{diameter}, the diameter of the dictionary"
        )


def image_identity(image: Image) -> str:
    """What tells an image from others without decoding it: pixels, file or Zarr metadata."""
    if isinstance(image.source, np.ndarray):
        known = hashlib.sha256(np.ascontiguousarray(image.source).tobytes()).hexdigest()
    elif isinstance(image.source, tuple):
        path, page = image.source
        status = Path(path).stat()
        known = f"{path}:{page}:{status.st_size}:{status.st_mtime_ns}"
    else:
        known = repr(image.source)
    return f"{image.shape}:{known}"
