"""What a tile's function sees: the pixels of the tile and those around it."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dsc.errors import DscError
from dsc.images import (
    ALL,
    COLOR_NAMES,
    Channels,
    Image,
    Joined,
    Reading,
    join_channels,
    open_images,
)

N_COLORS = 3
CHANNELS = {2: ("grey", "alpha"), 3: ("red", "green", "blue"), 4: ("red", "green", "blue", "alpha")}


def n_colors(n_channels: int) -> int:
    """How many channels are colors: without alpha."""
    return n_channels - (n_channels in (2, 4))


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


def as_image(image: Any, raw: bool = False, **options: Any) -> Image:
    """One image of a path, a URL, an `Image`, or an array (y, x), taken as it is.

    A raw array keeps its type, and may have two to four channels, the last of two or four being
    alpha: (y, x, channel). Raw planes of three channels are joined as colors. Options are those of
    `open_images`, for what has a path.
    """
    if isinstance(image, Image):
        return image
    if not isinstance(image, str | os.PathLike):
        return _array_image(image, raw)
    found = open_images(image, **options)
    if raw and len(found) == N_COLORS and "channel" not in options:
        found = open_images(image, **{**options, "channel": ALL})
    if raw and len(found) == found[0].n_channels == N_COLORS:
        return join_channels(found)
    if len(found) != 1:
        raise DscError(
            f"{image}: found {len(found)} images, need one: if they are channels, say which one "
            "(--channel)"
        )
    return found[0]


def image_for(image: Any, reading: dict[str, Any], n_channels: int = 1) -> Image:
    """One image, read as the images were that a dictionary was learned from.

    `reading` is that of the dictionary (channel, level, ranges). Arrays (y, x) or (y, x, channel)
    are taken as they are, but for the ranges.
    """
    if isinstance(image, Image):  # which was read already
        parts = image.source.parts if isinstance(image.source, Joined) else (image,)
        planes = list(parts)
        found = [None if one.reading.range is None else list(one.reading.range) for one in planes]
        wanted = [list(one) for one in reading["ranges"]] if "ranges" in reading else None
        if wanted is not None and found != wanted:
            raise DscError(
                f"{image.name}: was opened with other ranges than the images of the dictionary: "
                "give its path"
            )
        reading = {}
    elif n_channels == 1 and not reading:
        return as_image(image)
    elif isinstance(image, str | os.PathLike):
        channel = reading.get("channel", ALL if n_channels > 1 else None)
        planes = open_images(image, channel=channel, level=reading.get("level", 0))
        n_images = len(planes) // planes[0].n_channels
        if n_images != 1:
            raise DscError(f"{image}: found {n_images} images, need one")
    else:
        planes = _array_planes(image, reading.get("channel", ALL), n_channels)
    if len(planes) != n_channels:
        raise DscError(
            f"{planes[0].name}: found {len(planes)} channels, need {n_channels}, as the dictionary "
            "has: give an image with so many, or learn from images like this one"
        )
    if "ranges" in reading:
        planes = [
            replace(plane, reading=plane.reading._replace(range=(one[0], one[1])))
            for plane, one in zip(planes, reading["ranges"], strict=True)
        ]
    return join_channels(planes)


def _array_planes(array: ArrayLike, channel: str, n_channels: int) -> list[Image]:
    """The channels of an array (y, x) or (y, x, channel), as it is: all, or those that are named.

    An array of as many channels as are needed has them already.
    """
    values = np.asarray(array)
    if values.ndim not in (2, 3) or not values.size or values.dtype.kind not in "biuf":
        raise DscError(f"image: found shape {values.shape}, need (y, x) or (y, x, channel)")
    shape = (values.shape[0], values.shape[1])
    with np.errstate(over="ignore"):
        numbers = values.astype(np.float32, copy=False)
    if values.ndim == 2:
        return [Image("image", None, shape, numbers)]
    n_found = values.shape[2]
    is_color = n_found in CHANNELS
    known = Channels(1, n_found, COLOR_NAMES) if is_color else Channels(n_found, 1)
    chosen = list(range(n_found)) if n_found == n_channels else known.chosen(channel)
    return [Image("image", None, shape, numbers, Reading(k)) for k in chosen]


def _array_image(array: ArrayLike, raw: bool) -> Image:
    values = np.asarray(array)
    is_color = raw and values.ndim == 3 and values.shape[2] in CHANNELS
    if not (values.ndim == 2 or is_color) or not values.size:
        colors = ", or (y, x, color) with 2 to 4 channels" if raw else ""
        remedy = ": take one of its channels" if values.ndim == 3 else ""
        raise DscError(f"image: found shape {values.shape}, need (y, x){colors}{remedy}")
    if values.dtype.kind not in "biuf":
        raise DscError(f"image: found values of type {values.dtype}, need real numbers")
    if raw:
        return Image("image", None, (values.shape[0], values.shape[1]), values)
    with np.errstate(over="ignore"):
        grey = values.astype(np.float32, copy=False)
    return Image("image", None, (grey.shape[0], grey.shape[1]), grey)


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
