"""Maps as an OME-Zarr 0.5 that is complete or absent."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsc.errors import DscError
from dsc.images import Image, PixelSize, Plane
from dsc.store import (
    Store,
    check_free,
    create,
    is_finished,
    normalize,
    open_store,
    remove_store,
    reopen,
)
from dsc.tiling.schema import KIND, MEANS, MEASURES, VALUES

OWN_COLOURS = {"red": "FF0000", "green": "00FF00", "blue": "0000FF"}
COLOURS = ("FFFFFF", "00FF00", "FF00FF", "00FFFF", "FFFF00", "FF0000", "0000FF")


@dataclass(frozen=True)
class Output:
    """Where maps go: a path or URL, and what may happen to what is there.

    Attributes
    ----------
    url
        Path or URL of a new OME-Zarr; None keeps the maps in memory.
    overwrite
        Whether finished maps that are there are replaced: they go when the first tile is computed.
    resume
        Whether the tiles of an unfinished store are kept.
    """

    url: str | PathLike[str] | None = None
    overwrite: bool = False
    resume: bool = False

    @staticmethod
    def take(url: str | PathLike[str] | None, options: dict[str, Any]) -> Output:
        """An output at a place, with `overwrite` and `resume` taken out of some options."""
        return Output(url, options.pop("overwrite", False), options.pop("resume", False))

    def check(self, image: Image) -> None:
        """Refuse, before anything is computed, what could not be written."""
        if self.url is None:
            if self.overwrite or self.resume:
                raise DscError("out: found none, need one with overwrite or resume")
            return
        place = normalize(self.url)
        if _holds(place, image):
            raise DscError(f"{place}: is the image itself: choose another out")
        if self.overwrite and is_finished(place):
            open_store(place, KIND)  # nothing else is replaced
            return
        try:
            check_free(place)
        except DscError as error:
            hint = "; --overwrite replaces finished maps" if is_finished(place) else ""
            raise DscError(f"{error}{hint}") from error

    def open(
        self,
        shape: tuple[int, int, int],
        dtype: str,
        tile: int,
        attributes: dict[str, Any],
        n_measures: int = 0,
        with_means: bool = False,
    ) -> Store:
        """A store for maps of (c, y, x), new or continued.

        With measures of each tile, if any, and with a place for the means of maps.
        """
        assert self.url is not None
        store = reopen(self.url, KIND) if self.resume else None
        if store is not None:
            with store.writing():
                _check_same(store, attributes)
            return store
        if self.overwrite and is_finished(self.url):
            remove_store(self.url)
        sizes = dict(zip("cyx", shape, strict=True))
        chunks = {"c": 1, "y": tile, "x": tile}
        types = {VALUES: dtype}
        if n_measures:
            rows, columns = (-(-size // tile) for size in shape[1:])
            sizes |= {"measure": n_measures, "row": rows, "column": columns}
            chunks |= {"row": 1, "column": 1}
            types[MEASURES] = "float64"
        if with_means:
            types[MEANS] = "float64"
        return create(self.url, KIND, sizes, chunks, attributes, types)


def _holds(place: str, image: Image) -> bool:
    """Whether an image is at a place, or inside of it, or the place inside of the image."""
    if isinstance(image.source, Plane):
        there = image.source.url
    elif isinstance(image.source, tuple):
        there = str(image.source[0])
    else:
        return False
    one, other = (f"{Path(url).resolve() if '://' not in url else url}/" for url in (place, there))
    return one.startswith(other) or other.startswith(one)


def identity_of(*parts: Any) -> str:
    """A hash of what decides the values of maps."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def ome_metadata(
    name: str,
    channels: Sequence[str],
    low: NDArray[Any],
    high: NDArray[Any],
    size: PixelSize | None = None,
) -> dict[str, Any]:
    """What viewers of OME-Zarr 0.5 read: axes, the one level, and a name for each channel.

    Pixels have the size of those of the image. Each channel is shown from its least to its largest
    value, colors from the least to the largest of all.
    """
    size = size or PixelSize((1.0, 1.0))
    axes = [{"name": "c", "type": "channel"}, *({"name": n, "type": "space"} for n in "yx")]
    for axis, unit in zip(axes[1:], size.units, strict=True):
        axis |= {"unit": unit} if unit else {}
    scale: list[dict[str, Any]] = [{"type": "scale", "scale": [1.0, *size.scale]}]
    if any(size.translation):
        scale.append({"type": "translation", "translation": [0.0, *size.translation]})
    shown, colors = [], [number for number, label in enumerate(channels) if label in OWN_COLOURS]
    low, high = np.array(low), np.array(high)
    if colors:
        low[colors], high[colors] = np.fmin.reduce(low[colors]), np.fmax.reduce(high[colors])
    for number, (label, least, most) in enumerate(zip(channels, low, high, strict=True)):
        first, last = (float(v) if np.isfinite(v) else 0.0 for v in (least, most))
        last = last if last > first else first + 1
        window = {"min": first, "start": first, "max": last, "end": last}
        colour = OWN_COLOURS.get(label, COLOURS[number % len(COLOURS)])
        active = number == 0 or label in OWN_COLOURS
        shown.append({"label": label, "color": colour, "active": active, "window": window})
    return {
        "version": "0.5",
        "multiscales": [
            {
                "name": name,
                "axes": axes,
                "datasets": [{"path": VALUES, "coordinateTransformations": scale}],
            }
        ],
        "omero": {"channels": shown},
    }


def _check_same(store: Store, attributes: dict[str, Any]) -> None:
    found = store.attributes
    for key, value in attributes.items():
        if found.get(key) != value:
            raise DscError(
                f"{store.url}: was begun with another {key.replace('_', ' ')}: continue it with "
                "the same image, model and options, or run it again without resume"
            )
