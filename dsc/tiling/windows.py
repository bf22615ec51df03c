"""What a tile's function sees: the pixels of the tile and those around it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsc.errors import DscError
from dsc.images import Image, Joined


@dataclass(frozen=True, eq=False)
class Window:
    """A tile of an image with what surrounds it, cut where the image ends."""

    # (y, x) the tile and up to `margin` pixels on each side: grey values, or pixels in their own
    # type, which may have channels: (y, x, channel)
    pixels: NDArray[Any]
    y: slice  # rows and columns of the tile in the image
    x: slice
    shape: tuple[int, int]  # (y, x) of the image
    margin: int
    beside: NDArray[Any] | None = None  # the same part of a second image, in its own type

    @property
    def origin(self) -> tuple[int, int]:
        """Row and column of the first pixel in the image."""
        return max(0, self.y.start - self.margin), max(0, self.x.start - self.margin)

    @property
    def place(self) -> tuple[slice, slice]:
        """Where the tile is in the window."""
        (y0, x0), (y, x) = self.origin, (self.y, self.x)
        return slice(y.start - y0, y.stop - y0), slice(x.start - x0, x.stop - x0)

    def inner(self) -> NDArray[Any]:
        """The pixels of the tile itself."""
        return self.pixels[self.place]

    def missing(self) -> NDArray[np.bool_]:
        """(y, x) which pixels of the tile are missing: a channel of them is NaN."""
        return np.asarray(np.isnan(np.atleast_3d(self.inner())).any(2))

    def mirrored(self) -> NDArray[Any]:
        """The tile with all of its margin, mirrored (edge pixels twice) where the image ends.

        The same as a window of the mirrored image: what is needed of the other side of an edge is
        in the window, or the window is the whole image along that axis.
        """
        edges = [
            (max(0, self.margin - part.start), max(0, part.stop + self.margin - size))
            for part, size in zip((self.y, self.x), self.shape, strict=True)
        ]
        flat = [(0, 0)] * (self.pixels.ndim - 2)  # channels
        return np.pad(self.pixels, [*edges, *flat], mode="symmetric")


def cut_window(
    image: Image,
    y: slice,
    x: slice,
    margin: int,
    raw: bool = False,
    beside: Image | None = None,
) -> Window:
    """Read a tile with its margin: grey values, or raw pixels in their own type."""
    (y0, y1), (x0, x1) = (
        (max(0, part.start - margin), min(part.stop + margin, size))
        for part, size in zip((y, x), image.shape, strict=True)
    )
    second = None if beside is None else beside.crop(y0, y1, x0, x1)
    pixels = (image.crop if raw else image.read)(y0, y1, x0, x1)
    return Window(pixels, y, x, image.shape, margin, second)


def check_finite(window: Window, name: str, missing: bool = False) -> None:
    """Refuse pixels of an image that are no finite numbers; or only infinite ones."""
    bad = np.isinf(window.pixels) if missing else ~np.isfinite(window.pixels)
    if bad.any():
        first = np.argwhere(bad)[0]
        row, column = (int(n) for n in first[:2] + np.array(window.origin))
        raise DscError(
            f"{name}: found {window.pixels[tuple(first)]} at row {row}, column {column}, need "
            "finite numbers: replace it"
        )


def check_size(image: Image, diameter: int) -> None:
    """Refuse an image in which no disk fits."""
    if min(image.shape) < diameter:
        raise DscError(
            f"{image.name}: found shape {image.shape}, need (y, x) of at least {diameter} × "
            f"{diameter}, the diameter of the dictionary: take a dictionary of a smaller one"
        )


def image_identity(image: Image) -> str:
    """What tells an image from others without decoding it: pixels, file or Zarr metadata."""
    if isinstance(image.source, Joined):
        return " ".join(map(image_identity, image.source.parts))
    if isinstance(image.source, np.ndarray):
        known = hashlib.sha256(np.ascontiguousarray(image.source).tobytes()).hexdigest()
    elif isinstance(image.source, tuple):
        status = Path(image.source.path).stat()
        known = f"{':'.join(map(str, image.source))}:{status.st_size}:{status.st_mtime_ns}"
    else:
        known = repr(image.source)
    return f"{image.shape}:{image.reading}:{known}"
