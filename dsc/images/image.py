"""Images, read by window: large ones never as a whole, small files decoded once."""

from __future__ import annotations

import math
import os
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsc.errors import DscError, raise_listed
from dsc.images.cache import CACHE
from dsc.images.convert import GREY, to_grey
from dsc.images.formats import (
    FilePage,
    check_level,
    page_stack,
    probe,
    probe_array,
    read_window,
    take_plane,
)
from dsc.images.inputs import Input, Source, find, is_array, is_zarr, names_of
from dsc.images.planes import COLORS, PixelSize, Plane, open_planes, path_of, pixel_size_of
from dsc.images.reading import CHANNEL, COLOR_NAMES, Channels, Reading, ReadOptions, Stack
from dsc.images.tiles import tile_shape, tiles_of

Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Joined:
    """Channels that are read together."""

    parts: tuple[Image, ...]


@dataclass(frozen=True, eq=False)
class Image:
    """One grey image, or one channel of an image, or several joined, wherever it is."""

    name: str  # for people
    label: str | None  # its class, if it has one
    shape: tuple[int, int]  # (y, x)
    # a page of a file, a plane of a Zarr array, the pixels, or channels to be joined
    source: FilePage | Plane | NDArray[Any] | Joined = field(repr=False)
    reading: Reading = GREY  # how its pixels become values
    n_channels: int = 1  # of the image, which so many consecutive ones make
    # under which its tiles are kept: a Zarr array may be another one when it is opened again
    token: str = field(default_factory=lambda: uuid.uuid4().hex, repr=False)

    @property
    def tile(self) -> tuple[int, int]:
        """(y, x) of the windows that are read at a time."""
        if isinstance(self.source, Joined):
            return self.source.parts[0].tile
        chunks = self.source.chunks if isinstance(self.source, Plane) else (1, 1)
        return tile_shape(self.shape, chunks)

    def read(self, y0: int, y1: int, x0: int, x1: int) -> Floats:
        """Values (see `to_grey`) of the window of rows y0 to y1 and columns x0 to x1.

        (y, x), those of joined channels (y, x, channel).
        """
        self._check_window(y0, y1, x0, x1)
        if isinstance(self.source, Joined):
            return np.stack([part.read(y0, y1, x0, x1) for part in self.source.parts], axis=2)
        if not isinstance(self.source, Plane):
            return to_grey(self._window(slice(y0, y1), slice(x0, x1)), self.reading)
        y, x = slice(y0, y1), slice(x0, x1)
        pixels = np.empty((y1 - y0, x1 - x0), np.float32)
        for tile in tiles_of(self.shape, self.tile, y, x):
            key = (self.token, tile.number)
            if (grey := CACHE.get(key)) is None:
                grey = CACHE.put(key, to_grey(self.source.read(tile.y, tile.x), self.reading))
            here, there = tile.shared(y, x)
            pixels[here] = grey[there]
        return pixels

    def read_once(self, y0: int, y1: int, x0: int, x1: int) -> Floats:
        """The same where it is not asked for again: of Zarr only what is needed, and not kept."""
        if not isinstance(self.source, Plane):
            return self.read(y0, y1, x0, x1)
        self._check_window(y0, y1, x0, x1)
        return to_grey(self.source.read(slice(y0, y1), slice(x0, x1)), self.reading)

    def whole(self) -> Floats:
        """All grey values: (y, x)."""
        return self.read(0, self.shape[0], 0, self.shape[1])

    @property
    def n_colors(self) -> int:
        """Values of a pixel, 0 if it is a number; a part of a file is decoded for it."""
        shape = self.crop(0, 1, 0, 1).shape
        return shape[2] if len(shape) > 2 else 0

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of its pixels; a part of a file is decoded for it."""
        return self.crop(0, 1, 0, 1).dtype

    def crop(self, y0: int, y1: int, x0: int, x1: int) -> NDArray[Any]:
        """The same window as pixels in their own type: (y, x), or (y, x, channel)."""
        self._check_window(y0, y1, x0, x1)
        if isinstance(self.source, Joined):
            return np.stack([part.crop(y0, y1, x0, x1) for part in self.source.parts], axis=2)
        if isinstance(self.source, Plane):
            pixels = self.source.read(slice(y0, y1), slice(x0, x1))
        else:
            pixels = self._window(slice(y0, y1), slice(x0, x1))
        return pixels if self.reading.channel is None else pixels[:, :, self.reading.channel]

    def pixels(self) -> NDArray[Any]:
        """All pixels in their own type."""
        return self.crop(0, self.shape[0], 0, self.shape[1])

    @property
    def in_memory(self) -> bool:
        """Whether its pixels are an array, which travels with it."""
        if isinstance(self.source, Joined):
            return any(part.in_memory for part in self.source.parts)
        return isinstance(self.source, np.ndarray)

    @property
    def pixel_size(self) -> PixelSize | None:
        """How large its pixels are, if it is of an OME-Zarr that says so."""
        if isinstance(self.source, Joined):
            return self.source.parts[0].pixel_size
        return pixel_size_of(self.source) if isinstance(self.source, Plane) else None

    def _check_window(self, y0: int, y1: int, x0: int, x1: int) -> None:
        if not (0 <= y0 < y1 <= self.shape[0] and 0 <= x0 < x1 <= self.shape[1]):
            raise DscError(
                f"{self.name}: found rows {y0} to {y1} and columns {x0} to {x1}, need a window "
                f"inside {self.shape[0]} × {self.shape[1]}"
            )

    def _window(self, y: slice, x: slice) -> NDArray[Any]:
        """Pixels of a file or an array, in their own type."""
        if isinstance(self.source, np.ndarray):
            return self.source[y, x]
        assert isinstance(self.source, FilePage)
        try:
            return read_window(self.source, y, x)
        except Exception as error:  # whatever a decoder raises is the file's fault
            raise DscError(image_problem(self, error)) from error


def join_channels(parts: Sequence[Image]) -> Image:
    """Channels of an image as one; a single one stays as it is."""
    first = parts[0]
    if len(parts) == 1:
        return first
    return Image(
        first.name.rpartition(" channel ")[0] or first.name,
        first.label,
        first.shape,
        Joined(tuple(parts)),
    )


Inputs = Input | Iterable[Input] | list[Image]
_PLAIN = ReadOptions()


def open_images(inputs: Input | Iterable[Input], **options: Any) -> list[Image]:
    """All images of some inputs, sorted by path.

    Inputs are files (PNG, TIFF, SVS, JPEG, BMP, GIF, Sun raster, .npy; CZI, LIF and ND2 with the
    extra `formats`), folders, globs, Zarr arrays, OME-Zarrs, and arrays of NumPy, Dask, xarray or
    Zarr, one or several. A folder stands for the images in it; one folder per class gives labels.
    Every page, frame or plane is an image. Zarr arrays in a folder are read by window, those of
    Dask and xarray are computed here, image by image. All that cannot be used is named in one
    error, of very many the first hundred.

    Options are those of `ReadOptions`: channel, level, range, missing_as_fill. Color becomes grey,
    unless channels are named; with several of them, each is an image of its own here. An array
    (y, x, channel) of more than four channels is one image only if channels are named. A chunk of
    a Zarr array that is missing is refused when it is read, or stands for the fill value.
    """
    images, problems = scan_inputs(inputs, ReadOptions(**options))
    raise_listed("images", problems)
    return images


def scan_inputs(inputs: Inputs, options: ReadOptions = _PLAIN) -> tuple[list[Image], list[str]]:
    """The images of some inputs, and what is wrong with the others.

    Images that are open already stay as they are, in their order.
    """
    if isinstance(inputs, list) and inputs and isinstance(inputs[0], Image):
        if options != _PLAIN:
            raise DscError(
                "images: found open ones beside a channel, level or range, need these when they "
                "are opened: open_images(…, channel=…)"
            )
        return inputs, []
    found, problems = find(inputs)  # type: ignore[arg-type]
    images: list[Image] = []
    for item, name in zip(found, names_of(found), strict=True):
        try:
            f"{name}{item.label}".encode()
            images += _images(item, name, options)
        except UnicodeEncodeError:
            shown = name.encode("utf-8", "backslashreplace").decode()
            problems.append(f"{shown}: its name, or its folder's, is not in UTF-8: rename it")
        except Exception as error:  # whatever a decoder raises is the file's fault
            problems.append(image_problem(name, error))
    counts = {image.n_channels: image.name for image in images}
    if len(counts) > 1:
        shown = ", ".join(f"{count} in {name}" for count, name in sorted(counts.items()))
        problems.append(f"channel: found {shown}, need the same number in all images: say which")
    return images, problems


def image_problem(image: Image | str, error: Exception) -> str:
    """What is wrong with an image, in one line that names it."""
    name = image if isinstance(image, str) else image.name
    text = " ".join(str(error).split()) or type(error).__name__
    return text if text.startswith(name) else f"{name}: {text}"


def _images(item: Source, name: str, options: ReadOptions) -> list[Image]:
    source, level = item.place, options.level
    stack, channeled = Stack((), ()), options.channel is not None
    if is_array(source) and not channeled:
        source = path_of(source) or source
    entries: list[tuple[Any, tuple[int, int]]]
    if is_array(source):
        check_level(level)
        pages = probe_array(source, channeled)
        entries = [(np.asarray(take_plane(source, page)), shape) for page, shape in pages]
    elif isinstance(source, str) or is_zarr(source):
        planes, stack = open_planes(os.fspath(source), options.missing_as_fill, level)
        entries = [(plane, plane.shape) for plane in planes]
    else:
        pages = probe(source, level, channeled)
        entries = [(FilePage(source, page, level), shape) for page, shape in pages]
        if channeled:
            stack = page_stack(source)
    if not entries:
        raise DscError("found no image in it")
    reading = Reading(None, options.range)
    images = []
    for number, (origin, shape) in enumerate(entries):
        numbered = name if len(entries) == 1 else f"{name}[{number}]"
        y, x = map(int, shape)
        images.append(Image(numbered, item.label, (y, x), origin, reading))
    return images if options.channel is None else _channels(images, stack, options.channel)


def _channels(images: list[Image], stack: Stack, wanted: str) -> list[Image]:
    """The chosen channels of images, those of one after the other."""
    numbers = np.arange(len(images))
    groups = numbers[:, None]
    if CHANNEL in stack.axes and len(numbers) == math.prod(stack.sizes):
        whole = numbers.reshape(stack.sizes)
        groups = np.moveaxis(whole, stack.axes.index(CHANNEL), -1)
        groups = groups.reshape(-1, groups.shape[-1])
    chosen = []
    parts: dict[int, tuple[Image, int | None]]
    for group in groups:
        first = images[group[0]]
        if len(group) > 1:
            found = Channels(len(group), 1, stack.channel_names)
            parts = {k: (images[group[k]], None) for k in found.chosen(wanted)}
        else:
            is_color = first.n_colors in COLORS
            found = Channels(1, first.n_colors or 1, COLOR_NAMES if is_color else ())
            parts = {k: (first, k if first.n_colors else None) for k in found.chosen(wanted)}
        for k, (image, color) in parts.items():
            reading = image.reading._replace(channel=color)
            chosen.append(
                replace(
                    image,
                    name=f"{first.name} channel {k}",
                    reading=reading,
                    n_channels=len(parts),
                    token=uuid.uuid4().hex,
                )
            )
    return chosen
