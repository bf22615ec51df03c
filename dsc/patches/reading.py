"""What 0 and 1 stand for in images, and what is said about how they are read."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsc.errors import DscError
from dsc.images import Image, Range, tiles_of
from dsc.patches.config import PatchConfig
from dsc.patches.scan import Scan

SAMPLE = 2**22  # pixels that percentiles are taken of, about, and of each image at least
LEAST = 2**12
SLIVER = 1 / 8  # of the values of a type: 12 bits in 16 use a sixteenth


def sampled(image: Image, rows: slice, most: int) -> NDArray[np.float32]:
    """Values of rows of tiles, as stored: about `most` of the whole image, whatever its tiles are.

    They are those at every so many rows and columns.
    """
    raw = with_range(image, (0.0, 1.0))
    step = int(np.ceil(np.sqrt(max(1.0, image.shape[0] * image.shape[1] / most))))
    parts = []
    for tile in tiles_of(raw.shape, raw.tile, rows, slice(0, raw.shape[1])):
        (y0, y1), (x0, x1) = (tile.y.start, tile.y.stop), (tile.x.start, tile.x.stop)
        pixels = raw.read(y0, y1, x0, x1)
        parts.append(pixels[-y0 % step :: step, -x0 % step :: step].ravel())
    return np.concatenate(parts)


def range_of(values: list[NDArray[np.float32]], percentile: tuple[float, float]) -> Range:
    """What becomes 0 and 1: percentiles of values, in whatever order they are."""
    low, high = np.nanpercentile(np.concatenate(values).astype(np.float64), percentile)
    if not low < high:
        raise DscError(
            f"percentile: found {low:g} at {percentile[0]:g} and {high:g} at {percentile[1]:g}, "
            "need two values: take others, or say --range MIN MAX"
        )
    return float(low), float(high)


def with_range(image: Image, ends: Range) -> Image:
    """The same image with other values for 0 and 1."""
    return replace(image, reading=image.reading._replace(range=ends), token=uuid.uuid4().hex)


def reading_of(images: Sequence[Sequence[Image]], config: PatchConfig) -> dict[str, Any]:
    """How images were read, for the patch set and for models; nothing if as always."""
    ranges = [channel.reading.range for channel in images[0]]
    colors = [channel.reading.channel for channel in images[0]]
    known = None if None in colors else ",".join(map(str, colors))  # of images opened before
    found = {
        "channel": config.channel or known,
        "level": config.level or None,
        "ranges": ranges if any(ranges) else None,
    }
    return {name: value for name, value in found.items() if value is not None}


def name_of(channels: Sequence[Image]) -> str:
    """The name of an image with these channels."""
    return channels[0].name if len(channels) == 1 else channels[0].name.rpartition(" channel ")[0]


def sliver_note(images: Sequence[Sequence[Image]], scans: Sequence[Scan]) -> str:
    """A line about whole numbers that use little of what their type holds; empty if they do not."""
    types = {channels[0].dtype for channels in images}
    ranges = {channel.reading.range for channels in images for channel in channels}
    low, high = min(seen.span[0] for seen in scans), max(seen.span[1] for seen in scans)
    if ranges != {None} or len(types) > 1 or not 0 < high - low < SLIVER:
        return ""
    (dtype,) = types
    if dtype.kind != "u":
        return ""
    most = np.iinfo(dtype).max
    bits = int(np.ceil(np.log2(round(high * most) + 1)))
    return (
        f"the values {round(low * most):,} to {round(high * most):,} are a small part of what "
        f"{dtype} holds: say --range 0 {2**bits - 1} or --percentile 1 99"
    )
