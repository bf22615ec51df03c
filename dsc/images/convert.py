"""Pixels of any kind as grey values: float32, in [0, 1] for whole numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsc.errors import DscError
from dsc.images import kernels
from dsc.images.reading import Range, Reading, scaled

REC_601 = (0.299, 0.587, 0.114)
_LARGEST = {"bool": 1, "uint8": 255, "uint16": 65535}
_BYTES = (np.arange(256) / 255).astype(np.float32)
GREY = Reading()


def to_grey(pixels: NDArray[Any], reading: Reading = GREY) -> NDArray[np.float32]:
    """Grey values of (y, x) or (y, x, channel) pixels, or those of one channel.

    Whole numbers are divided by the largest one of their type; floats stay as they are; with a
    range, its ends become 0 and 1. Color is weighted as in Rec. 601, and alpha is dropped.
    """
    dtype, shape = pixels.dtype, pixels.shape
    if dtype.kind not in "biuf" or (
        dtype.kind != "f" and dtype.name not in _LARGEST and not reading.range
    ):
        raise DscError(
            f"found pixels of type {dtype}, need bool, uint8, uint16 or floats: say which values "
            "are black and white with --range MIN MAX, or convert it"
        )
    known = reading.channel is not None
    if len(shape) not in (2, 3) or (len(shape) == 3 and not (known or 1 <= shape[2] <= 4)):
        raise DscError(f"found shape {shape}, need (y, x), or (y, x, color) with 1 to 4 channels")
    largest = _LARGEST.get(dtype.name)
    if pixels.ndim == 3:
        if reading.channel is not None:
            pixels = pixels[:, :, reading.channel]
        else:
            pixels = _luma(pixels) if pixels.shape[2] > 2 else pixels[:, :, 0]
    if reading.range:
        return scaled(pixels, reading.range)
    if largest == 255 and pixels.dtype.kind == "u":
        grey = np.empty(pixels.shape, np.float32)
        kernels.look_up(pixels, _BYTES, grey)
        return grey
    with np.errstate(over="ignore"):
        values = pixels if largest is None else pixels / np.float64(largest)
        return np.ascontiguousarray(values, np.float32)


def to_dtype(
    grey: NDArray[np.floating], dtype: np.dtype[Any], ranges: Sequence[Range] = ()
) -> NDArray[Any]:
    """Values as pixels of a type: the way back from `to_grey`, rounded and clipped.

    With ranges, one for each channel (y, x, channel), or one for all.
    """
    if ranges:
        low, high = np.array(ranges).T  # (channel,) or (1,)
        pixels: NDArray[np.float64] = low + (high - low) * np.atleast_3d(grey).astype(np.float64)
        pixels = pixels.reshape(grey.shape)
        if dtype.kind == "f":
            return pixels.astype(np.float32)
        return as_whole(pixels, dtype)
    largest = _LARGEST.get(dtype.name)
    if largest is None:
        return grey.astype(np.float32)
    return np.asarray(np.rint(grey.astype(np.float64).clip(0, 1) * largest), dtype)


def as_whole(values: NDArray[np.float64], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Values as whole numbers or booleans, rounded and clipped to the range of the type.

    Examples
    --------
    >>> as_whole(np.array([-3.0, 2.5, 1e30]), np.dtype("uint64")).tolist()
    [0, 2, 18446744073709549568]
    """
    least, most = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    largest = float(most)
    if int(largest) > most:  # 64 bits: not a float64
        largest = float(np.nextafter(largest, 0))
    return np.asarray(np.rint(values.clip(least, largest)), dtype)


def _luma(pixels: NDArray[Any]) -> NDArray[Any]:
    red, green, blue = (pixels[:, :, c].astype(np.float64) for c in range(3))
    weighted = REC_601[0] * red + REC_601[1] * green + REC_601[2] * blue
    # the weights sum to one only nearly; a grey pixel keeps its value exactly
    return np.where((red == green) & (green == blue), red, weighted)
