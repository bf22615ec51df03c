"""Images of any size as they are shown on a page: read by windows, and shrunken if they are large.

A view of an image is the mean over squares of its pixels; one of maps takes every so many pixels,
since angles have no mean.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsc.images import Image, Joined, Plane, to_grey
from dsc.store import Store, is_finished, open_store
from dsc.tiling import ANY, KIND, VALUES, Pick, channel_names, image_for

MOST = 1200  # pixels across a view
WINDOW = 1024  # pixels across what is read at a time, about

Floats = NDArray[np.floating]


@dataclass(frozen=True, eq=False)
class View:
    """An image as it is shown."""

    pixels: Floats  # (y, x) or (y, x, 3), whole numbers in [0, 1], floats as they are
    shape: tuple[int, int]  # (y, x) of the image
    step: int  # pixels of the image across one of the view
    is_float: bool  # whether the image has floats
    is_color: bool = True  # whether its channels, if any, are colors

    @property
    def span(self) -> tuple[float, float]:
        """What is drawn black and white: 0 and 1 if all is in there."""
        low, high = float(np.nanmin(self.pixels)), float(np.nanmax(self.pixels))
        return (0.0, 1.0) if low >= 0 and high <= 1 else (low, high)


def view_image(place: str | Path, pick: Pick = ANY, reading: dict[str, Any] | None = None) -> View:
    """An image, or maps of ours that are one; a large one, or one of a Zarr array, is grey.

    Several channels that are no colors are shown by their mean. It is read as a command did, by
    what it picked and the `reading` of its model.
    """
    if _is_maps(str(place)):
        return _view_store(open_store(place, KIND))
    shown = {name: one for name, one in (reading or {}).items() if name in ("channel", "level")}
    image = image_for(str(place), shown, 1, pick, raw=True)
    step = _step(image.shape)
    if isinstance(image.source, Joined):
        parts = [_shrink(image.shape, step, part.read) for part in image.source.parts]
        is_color = "red" in channel_names(image)
        pixels = np.stack(parts, 2) if is_color and step == 1 else np.mean(parts, 0)
        return View(pixels, image.shape, step, image.dtype.kind == "f", is_color)
    if step == 1 and not isinstance(image.source, Plane):
        pixels = image.pixels()
        return View(_unit(pixels), image.shape, 1, pixels.dtype.kind == "f")
    kind = _type_of(image).kind
    return View(_shrink(image.shape, step, image.read), image.shape, step, kind == "f")


def view_maps(place: str | Path, channels: Sequence[int]) -> Iterator[Floats]:
    """(y, x) of some channels of maps, one after the other."""
    store = open_store(place, KIND)
    _, height, width = store.shape(VALUES)
    step = _step((height, width))
    band = max(1, WINDOW // step) * step
    for channel in channels:
        rows = [
            store.read(VALUES, (slice(channel, channel + 1), slice(y, min(y + band, height)), _ALL))
            for y in range(0, height, band)
        ]
        yield np.concatenate([row[0, ::step, ::step] for row in rows])


_ALL = slice(None)


def _view_store(store: Store) -> View:
    """An image in a store of maps (channel, y, x), in color if it has three channels."""
    n_channels, height, width = store.shape(VALUES)
    step = _step((height, width))
    is_color = not any(name.startswith("channel ") for name in store.attributes["channels"])

    def read(y0: int, y1: int, x0: int, x1: int) -> NDArray[Any]:
        part = store.read(VALUES, (_ALL, slice(y0, y1), slice(x0, x1)))
        if not is_color:
            return np.asarray(np.mean([to_grey(one) for one in part], axis=0), np.float32)
        return np.moveaxis(part, 0, -1) if n_channels > 1 else part[0]

    is_float = store.read(VALUES, (slice(0, 1), slice(0, 1), slice(0, 1))).dtype.kind == "f"
    if step == 1:
        return View(_unit(read(0, height, 0, width)), (height, width), 1, is_float)
    pixels = _shrink((height, width), step, lambda *window: to_grey(read(*window)))
    return View(pixels, (height, width), step, is_float)


def _is_maps(place: str) -> bool:
    """Whether a finished store of maps is at a place."""
    return (Path(place).suffix == ".zarr" or "://" in place) and is_finished(place)


def _step(shape: tuple[int, ...]) -> int:
    return -(-max(shape) // MOST)


def _unit(pixels: NDArray[Any]) -> Floats:
    """Whole numbers in [0, 1], floats as they are; no more than three colors."""
    values = pixels[..., :3] if pixels.ndim == 3 else pixels
    if values.ndim == 3 and values.shape[2] < 3:
        values = values[..., 0]
    if values.dtype.kind == "f" or values.dtype.kind == "b":
        return np.asarray(values, np.float64)
    return values / float(np.iinfo(values.dtype).max)


def _type_of(image: Image) -> np.dtype[Any]:
    if isinstance(image.source, Plane):
        return np.asarray(image.source.read(slice(0, 1), slice(0, 1))).dtype
    return image.dtype


def _shrink(shape: tuple[int, int], step: int, read: Any) -> Floats:
    """(y, x) means over squares of `step` pixels, fewer at the end, read window by window."""
    height, width = shape
    out = np.empty((-(-height // step), -(-width // step)))
    side = max(1, WINDOW // step) * step
    for y in range(0, height, side):
        for x in range(0, width, side):
            part = read(y, min(y + side, height), x, min(x + side, width)).astype(np.float64)
            rows, columns = (np.arange(0, size, step) for size in part.shape)
            total = np.add.reduceat(np.add.reduceat(part, rows, 0), columns, 1)
            n_y = np.diff(rows, append=part.shape[0])
            n_x = np.diff(columns, append=part.shape[1])
            here = np.s_[y // step : y // step + len(rows), x // step : x // step + len(columns)]
            out[here] = total / np.outer(n_y, n_x)
    return out
