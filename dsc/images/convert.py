"""Pixels of any kind as grey values: float32, in [0, 1] for whole numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsc.errors import DscError

REC_601 = (0.299, 0.587, 0.114)
_LARGEST = {"bool": 1, "uint8": 255, "uint16": 65535}


def to_grey(pixels: NDArray[Any]) -> NDArray[np.float32]:
    """Grey values of (y, x) or (y, x, channel) pixels.

    Whole numbers are divided by the largest one of their type; floats stay as they are. Color is
    weighted as in Rec. 601, and alpha is dropped.
    """
    dtype, shape = pixels.dtype, pixels.shape
    if dtype.kind != "f" and dtype.name not in _LARGEST:
        raise DscError(
            f"found pixels of type {dtype}, need bool, uint8, uint16 or floats: convert it"
        )
    if len(shape) not in (2, 3) or (len(shape) == 3 and not 1 <= shape[2] <= 4):
        raise DscError(f"found shape {shape}, need (y, x), or (y, x, color) with 1 to 4 channels")
    largest = _LARGEST.get(dtype.name)
    if pixels.ndim == 3:
        pixels = _luma(pixels) if pixels.shape[2] > 2 else pixels[:, :, 0]
    if largest == 255 and pixels.dtype.kind == "u":
        table: NDArray[np.float32] = (np.arange(256) / 255).astype(np.float32)
        return np.asarray(table[pixels])
    with np.errstate(over="ignore"):
        grey = pixels if largest is None else pixels / np.float64(largest)
        return np.ascontiguousarray(grey, np.float32)


def to_dtype(grey: NDArray[np.floating], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Grey values as pixels of a type: the way back from `to_grey`, rounded and clipped."""
    largest = _LARGEST.get(dtype.name)
    if largest is None:
        return grey.astype(np.float32)
    return np.asarray(np.rint(grey.astype(np.float64).clip(0, 1) * largest), dtype)


def _luma(pixels: NDArray[Any]) -> NDArray[Any]:
    red, green, blue = (pixels[:, :, c].astype(np.float64) for c in range(3))
    weighted = REC_601[0] * red + REC_601[1] * green + REC_601[2] * blue
    # the weights sum to one only nearly; a grey pixel keeps its value exactly
    return np.where((red == green) & (green == blue), red, weighted)
