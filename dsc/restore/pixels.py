"""Images to be restored: read by window, in groups of colors, and back in the type they had."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsc.counter import uniform_bits
from dsc.dictionary import Dictionary
from dsc.engine import Engine, part_tasks
from dsc.errors import DscError
from dsc.images import Image, Joined, Tile, as_whole, tiles_of, to_grey
from dsc.restore.filling import first_filling
from dsc.show import Stage
from dsc.tiling import Pick, Window, as_image, channel_names, cut_window, has_alpha, image_for

SMALL = 2**22  # pixels of an image that is looked at as a whole; of others windows are
WINDOWS = 256  # how many, and pixels across one: at least, and at least two disks
ACROSS = 64
LOOK = "look at the pixels"
SCANNED = 1024  # pixels across a part whose values are looked at

Floats = NDArray[np.float32]
Mask = NDArray[np.bool_]
Place = tuple[slice, slice]


@dataclass(frozen=True)
class Scale:
    """Values v of an image are (v − offset) / unit in the arithmetic."""

    offset: float
    unit: float

    def apply(self, pixels: NDArray[Any]) -> Floats:
        """Values in units of the scale."""
        return ((pixels.astype(np.float64) - self.offset) / self.unit).astype(np.float32)

    def undo(self, pixels: Floats, dtype: np.dtype[Any]) -> NDArray[Any]:
        """Values of the image: whole numbers rounded and clipped, floats as float32."""
        values = pixels.astype(np.float64) * self.unit + self.offset
        return values.astype(np.float32) if dtype.kind == "f" else as_whole(values, dtype)


@dataclass(frozen=True, eq=False)
class Group:
    """Colors that are restored together, each in units of its own."""

    colors: tuple[int, ...]  # by their numbers in the image
    scales: tuple[Scale, ...]

    def pixels_of(self, window: Window) -> tuple[NDArray[Any], Mask]:
        """(y, x, channel) its pixels in a window, and which of them are missing."""
        found = [color_of(window, color) for color in self.colors]
        pixels, missing = (np.stack(parts, axis=2) for parts in zip(*found, strict=True))
        return pixels, missing

    def fill(self, pixels: NDArray[Any], missing: Mask) -> Floats:
        """(y, x, channel) values in units of the scales, missing ones roughly filled."""
        filled = [
            first_filling(scale.apply(pixels[..., c]), missing[..., c])
            for c, scale in enumerate(self.scales)
        ]
        return np.stack(filled, axis=2)

    def undo(self, values: Floats, dtype: np.dtype[Any]) -> NDArray[Any]:
        """(y, x, channel) values of the image."""
        own = [scale.undo(values[..., c], dtype) for c, scale in enumerate(self.scales)]
        return np.stack(own, axis=2)


@dataclass(frozen=True, eq=False)
class Subject:
    """An image to be restored, and where its pixels are missing besides those that are NaN."""

    image: Image
    mask: Image | None = None

    @cached_property
    def like(self) -> NDArray[Any]:
        """One of its pixels, (1, 1) or (1, 1, channel), for its type."""
        return self.image.crop(0, 1, 0, 1)

    @cached_property
    def channels(self) -> tuple[str, ...]:
        """Names of what a pixel has."""
        return channel_names(self.image)

    @cached_property
    def n_colors(self) -> int:
        """How many channels are restored; alpha, the last one, stays."""
        return len(self.channels) - has_alpha(self.image)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the restored image: its own, and float32 for floats."""
        found = self.like.dtype
        return np.dtype(np.float32) if found.kind == "f" else found

    @property
    def is_small(self) -> bool:
        """Whether it is looked at as a whole."""
        return math.prod(self.image.shape) <= SMALL

    def window(self, place: Place, margin: int = 0) -> Window:
        """A part of it with a margin, in its own type, with the mask beside it."""
        return cut_window(self.image, *place, margin, raw=True, beside=self.mask)

    def sample(self, seed: int, diameter: int) -> list[Place]:
        """Parts that stand for it: all of it if it is small, else places by chance.

        Their first rows and columns are even.
        """
        height, width = self.image.shape
        if self.is_small:
            return [(slice(0, height), slice(0, width))]
        side = max(ACROSS, 2 * diameter)
        tall, wide = min(side, height), min(side, width)
        bits = uniform_bits(seed, "restore windows", np.arange(2 * WINDOWS))
        tops = (bits[:WINDOWS] % np.uint64(height - tall + 1) // 2 * 2).tolist()
        lefts = (bits[WINDOWS:] % np.uint64(width - wide + 1) // 2 * 2).tolist()
        return [(slice(y, y + tall), slice(x, x + wide)) for y, x in zip(tops, lefts, strict=True)]

    def map_windows(
        self,
        function: Callable[[Part, Any], Any],
        places: Sequence[Place],
        step: Any,
        margin: int,
        engine: Engine,
    ) -> list[Any]:
        """`function(part, step)` of some places, as tasks; what is in memory travels with them."""
        images = [self.image, *([self.mask] if self.mask else [])]
        travels = any(image.in_memory for image in images)
        parts = [
            Part(None, self.window(place, margin)) if travels else Part(self, None, place, margin)
            for place in places
        ]
        n_pixels = sum((y.stop - y.start) * (x.stop - x.start) for y, x in places)
        return engine.compute(part_tasks(function, parts, step), Stage(LOOK, n_pixels))

    def assemble(self, maps: NDArray[Any]) -> NDArray[Any]:
        """Channels (channel, y, x) in the shape that the image has."""
        return np.ascontiguousarray(maps[0] if self.like.ndim == 2 else np.moveaxis(maps, 0, 2))


@dataclass(frozen=True, eq=False)
class Part:
    """A window of a subject: itself, or how it is read."""

    subject: Subject | None
    window: Window | None
    place: Place = (slice(0), slice(0))
    margin: int = 0

    def read(self) -> Window:
        """The window."""
        if self.window is not None:
            return self.window
        assert self.subject is not None
        return self.subject.window(self.place, self.margin)


def open_subject(image: Any, mask: Any, model: Dictionary | None, pick: Pick) -> Subject:
    """An image by a path, a URL or an array, read as its model was learned, with its mask."""
    reading, n_channels = (model.reading, model.n_channels) if model else ({}, 1)
    source = image_for(image, reading, n_channels, pick, raw=True)
    fill = Pick(missing_as_fill=True) if pick.missing_as_fill else None
    subject = Subject(source, None if mask is None else as_image(mask, True, fill))
    if not source.in_memory:
        is_joined, like = isinstance(source.source, Joined), subject.like
        try:
            to_grey(like[:, :, 0] if is_joined else like)  # what is no image elsewhere is none here
        except DscError as error:
            raise DscError(f"{source.name}: {error}") from error
    if subject.mask is not None and subject.mask.shape != source.shape:
        raise DscError(f"mask: found shape {subject.mask.shape}, need {source.shape}, the image's")
    return subject


def check_size(image: Image, diameter: int) -> None:
    """Refuse an image that is smaller than a disk."""
    if min(image.shape) < diameter:
        raise DscError(
            f"{image.name}: found shape {image.shape}, need at least {diameter} × {diameter}, the "
            "diameter of the disks: choose a smaller one"
        )


def color_of(window: Window, color: int) -> tuple[NDArray[Any], Mask]:
    """(y, x) pixels of one color of a window, and which of them are missing."""
    pixels = np.atleast_3d(window.pixels)[:, :, color]
    missing = np.isnan(pixels) if pixels.dtype.kind == "f" else np.zeros(pixels.shape, bool)
    if window.beside is not None:
        beside = window.beside if window.beside.ndim == 2 else to_grey(window.beside)
        missing = missing | (beside != 0)
    return pixels, missing


def as_it_is(window: Window, dtype: np.dtype[Any]) -> NDArray[Any]:
    """(channel, y, x) a tile of an image, before it is restored."""
    return np.moveaxis(np.atleast_3d(window.inner()), 2, 0).astype(dtype)


@dataclass(frozen=True, eq=False)
class Found:
    """What the values of an image are like: (color,) least and largest of the known ones."""

    low: NDArray[np.float64]
    high: NDArray[np.float64]
    n_missing: int  # pixels of which a color is missing
    n_nan: int  # values that are NaN


def scan(subject: Subject, engine: Engine) -> Found:
    """Look at all values; refuses infinite ones, and an image without known ones."""
    image = subject.image
    tiles = list(tiles_of(image.shape, (SCANNED, SCANNED)))
    if image.in_memory:
        parts = [scan_tile(tile, subject) for tile in tiles]
    else:
        stage = Stage(LOOK, math.prod(image.shape))
        parts = engine.compute(part_tasks(scan_tile, tiles, subject), stage)
    low = np.min([part.low for part in parts], axis=0)
    high = np.max([part.high for part in parts], axis=0)
    if (low > high).any():
        raise DscError("mask: found all pixels missing, need some known ones")
    counts = [(part.n_missing, part.n_nan) for part in parts]
    return Found(low, high, *(int(n) for n in np.sum(counts, axis=0)))


def scan_tile(tile: Tile, subject: Subject) -> Found:
    """One task of the look at all values."""
    window = subject.window((tile.y, tile.x))
    low, high, n_nan = [], [], 0
    gone = np.zeros(window.pixels.shape[:2], bool)
    for color in range(subject.n_colors):
        pixels, missing = color_of(window, color)
        known = pixels[~missing]
        if known.dtype.kind == "f" and np.isinf(pixels).any():
            raise DscError(
                f"{subject.image.name}: found infinite values, need finite ones: replace them"
            )
        low.append(float(known.min()) if known.size else np.inf)
        high.append(float(known.max()) if known.size else -np.inf)
        n_nan += int(np.isnan(pixels).sum()) if pixels.dtype.kind == "f" else 0
        gone |= missing
    return Found(np.array(low), np.array(high), int(gone.sum()), n_nan)
