"""Images, read by window: those of files are decoded once, those of Zarr never as a whole."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsc.errors import DscError, raise_listed
from dsc.images.cache import CACHE, DECODED
from dsc.images.convert import to_grey
from dsc.images.formats import NUMPY, decode, probe, probe_array, take_plane
from dsc.images.inputs import Input, Source, find, is_zarr, names_of
from dsc.images.planes import Plane, open_planes
from dsc.images.tiles import tile_shape, tiles_of

Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Image:
    """One grey image, wherever it is."""

    name: str  # for people
    label: str | None  # its class, if it has one
    shape: tuple[int, int]  # (y, x)
    # a file and the page in it, a plane of a Zarr array, or the pixels
    source: tuple[Path, int] | Plane | NDArray[Any] = field(repr=False)
    # under which its tiles are kept: a Zarr array may be another one when it is opened again
    token: str = field(default_factory=lambda: uuid.uuid4().hex, repr=False)

    @property
    def tile(self) -> tuple[int, int]:
        """(y, x) of the windows that are read at a time."""
        chunks = self.source.chunks if isinstance(self.source, Plane) else (1, 1)
        return tile_shape(self.shape, chunks)

    def read(self, y0: int, y1: int, x0: int, x1: int) -> Floats:
        """Grey values (see `to_grey`) of the window of rows y0 to y1 and columns x0 to x1."""
        if not (0 <= y0 < y1 <= self.shape[0] and 0 <= x0 < x1 <= self.shape[1]):
            raise DscError(
                f"{self.name}: found rows {y0} to {y1} and columns {x0} to {x1}, need a window "
                f"inside {self.shape[0]} × {self.shape[1]}"
            )
        if not isinstance(self.source, Plane):
            return to_grey(self._pixels()[y0:y1, x0:x1])
        y, x = slice(y0, y1), slice(x0, x1)
        pixels = np.empty((y1 - y0, x1 - x0), np.float32)
        for tile in tiles_of(self.shape, self.tile, y, x):
            key = (self.token, tile.number)
            if (grey := CACHE.get(key)) is None:
                grey = CACHE.put(key, to_grey(self.source.read(tile.y, tile.x)))
            here, there = tile.shared(y, x)
            pixels[here] = grey[there]
        return pixels

    def whole(self) -> Floats:
        """All grey values: (y, x)."""
        return self.read(0, self.shape[0], 0, self.shape[1])

    def pixels(self) -> NDArray[Any]:
        """All pixels in their own type: (y, x), or (y, x, color)."""
        if isinstance(self.source, Plane):
            return np.asarray(self.source.read(slice(0, self.shape[0]), slice(0, self.shape[1])))
        return self._pixels()

    def _pixels(self) -> NDArray[Any]:
        """The pixels of a file or an array, in their own type."""
        if isinstance(self.source, np.ndarray):
            return self.source
        assert isinstance(self.source, tuple)
        path, page = self.source
        if path.suffix.lower() in NUMPY:  # mapped into memory, not loaded
            return decode(path, page)
        status = path.stat()
        key = ("file", str(path), page, status.st_mtime_ns, status.st_size)
        pixels = DECODED.get(key)
        return DECODED.put(key, decode(path, page)) if pixels is None else pixels


Inputs = Input | Iterable[Input] | list[Image]


def open_images(inputs: Input | Iterable[Input], missing_as_fill: bool = False) -> list[Image]:
    """All images of some inputs, sorted by path.

    Inputs are files (PNG, TIFF, JPEG, BMP, GIF, Sun raster, .npy), folders, globs, Zarr arrays,
    OME-Zarrs (level 0) and NumPy arrays, one or several. A folder stands for the images in it;
    one folder per class gives labels. Every page, frame or plane is an image. All that cannot be
    used is named in one error, of very many the first hundred. A chunk of a Zarr array that is
    missing is refused when it is read, or stands for the fill value.
    """
    images, problems = scan_inputs(inputs, missing_as_fill)
    raise_listed("images", problems)
    return images


def scan_inputs(inputs: Inputs, missing_as_fill: bool = False) -> tuple[list[Image], list[str]]:
    """The images of some inputs, and what is wrong with the others.

    Images that are open already stay as they are, in their order.
    """
    if isinstance(inputs, list) and inputs and isinstance(inputs[0], Image):
        return inputs, []
    found, problems = find(inputs)  # type: ignore[arg-type]
    images: list[Image] = []
    for item, name in zip(found, names_of(found), strict=True):
        try:
            f"{name}{item.label}".encode()
            images += _images(item, name, missing_as_fill)
        except UnicodeEncodeError:
            shown = name.encode("utf-8", "backslashreplace").decode()
            problems.append(f"{shown}: its name, or its folder's, is not in UTF-8: rename it")
        except Exception as error:  # whatever a decoder raises is the file's fault
            problems.append(image_problem(name, error))
    return images, problems


def image_problem(image: Image | str, error: Exception) -> str:
    """What is wrong with an image, in one line that names it."""
    name = image if isinstance(image, str) else image.name
    text = " ".join(str(error).split()) or type(error).__name__
    return text if text.startswith(name) else f"{name}: {text}"


def _images(item: Source, name: str, missing_as_fill: bool) -> Iterator[Image]:
    source = item.place
    if isinstance(source, np.ndarray):
        entries: list[tuple[Any, tuple[int, int]]] = [
            (take_plane(source, page), shape) for page, shape in probe_array(source)
        ]
    elif isinstance(source, str) or is_zarr(source):
        planes = open_planes(os.fspath(source), missing_as_fill)
        entries = [(plane, plane.shape) for plane in planes]
    else:
        entries = [((source, page), shape) for page, shape in probe(source)]
    if not entries:
        raise DscError("found no image in it")
    for number, (origin, shape) in enumerate(entries):
        numbered = name if len(entries) == 1 else f"{name}[{number}]"
        yield Image(numbered, item.label, (int(shape[0]), int(shape[1])), origin)
