"""How images are read: which channels together, at which size, and what 0 and 1 stand for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dsc.errors import DscError, unknown_choice

ALL = "all"
CHANNEL = "c"  # the name of an axis
COLOR_NAMES = ("red", "green", "blue", "alpha")

Range = tuple[float, float]


class Reading(NamedTuple):
    """How the pixels of one plane become values."""

    channel: int | None = None  # of pixels (y, x, color); None makes them grey
    range: Range | None = None  # what becomes 0 and 1; None is by type


@dataclass(frozen=True)
class ReadOptions:
    """What is wanted of all images."""

    channel: str | None = None  # "all", or numbers or names with commas between
    level: int = 0  # of a pyramid: 0 is the full size
    range: Range | None = None
    missing_as_fill: bool = False  # whether chunks that a Zarr array does not have are its fill


class Stack(NamedTuple):
    """The axes along which planes are stacked, as far as they are known."""

    axes: tuple[str, ...]
    sizes: tuple[int, ...]
    channel_names: tuple[str, ...] = ()


class Channels(NamedTuple):
    """The channels that an image has: along an axis of planes, or as the colors of a pixel."""

    n_planes: int  # 1 where they are colors
    n_colors: int  # of a pixel, 1 if it is grey; with alpha
    names: Sequence[str] = ()

    @property
    def n_channels(self) -> int:
        """How many there are to choose from; transparency is none."""
        if self.n_planes > 1:
            return self.n_planes
        return self.n_colors - (self.n_colors in (2, 4))

    def chosen(self, wanted: str) -> list[int]:
        """The numbers of the channels that `wanted` names."""
        if wanted == ALL:
            return list(range(self.n_channels))
        names = [name.lower() for name in self.names[: self.n_channels]]
        numbers = []
        for word in (part.strip() for part in wanted.split(",")):
            if word.lower() in names:
                numbers.append(names.index(word.lower()))
            elif word.isascii() and word.isdigit() and int(word) < self.n_channels:
                numbers.append(int(word))
            else:
                known = [*map(str, range(self.n_channels)), *self.names[: self.n_channels], ALL]
                raise unknown_choice("channel", word, known)
        if len(set(numbers)) < len(numbers):
            raise DscError(f"channel: found {wanted!r}, need each channel once")
        return numbers


def check_range(name: str, found: Any, low: float = -np.inf, high: float = np.inf) -> str:
    """What is wrong with a pair of numbers, the smaller first; empty if nothing is."""
    pair = isinstance(found, tuple) and len(found) == 2
    numbers = pair and all(isinstance(v, int | float) and np.isfinite(v) for v in found)
    if numbers and low <= found[0] < found[1] <= high:
        return ""
    within = f" from {low:g} to {high:g}" if np.isfinite(high) else ""
    return f"{name}: found {found!r}, need two numbers{within}, the smaller first"


def scaled(values: NDArray[Any], bounds: Range) -> NDArray[np.float32]:
    """Values, the first bound as 0 and the second as 1."""
    low, high = bounds
    with np.errstate(over="ignore"):
        return ((values.astype(np.float64) - low) / (high - low)).astype(np.float32)


def said(reading: dict[str, Any], n_channels: int) -> str:
    """How images were read, in one line.

    Examples
    --------
    >>> said({}, 1)
    'grey values by type'
    >>> said({"level": 1}, 1)
    'grey values by type, level 1'
    >>> said({"channel": "0,2", "ranges": [[0, 4095], [0, 4095]]}, 2)
    'channels 0,2 together, 0 to 4095 as 0 to 1'
    """
    channel = reading.get("channel")
    words = "grey values" if channel is None else f"channel {channel}, values"
    if n_channels > 1:
        words = (
            f"all {n_channels} channels together"
            if channel == "all"
            else f"channels {channel} together"
        )
    ranges = list(dict.fromkeys(tuple(one) for one in reading.get("ranges", ())))
    scales = "; ".join(f"{low:g} to {high:g}" for low, high in ranges)
    level = f", level {reading['level']}" if reading.get("level") else ""
    return words + (f", {scales} as 0 to 1" if scales else " by type") + level
