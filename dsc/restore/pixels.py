"""Images as values in units of a scale, and back in the type they came in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dsc.errors import DscError

Floats = NDArray[np.float32]


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
        if dtype.kind == "f":
            return values.astype(np.float32)
        limits = np.iinfo(dtype)
        return np.clip(np.rint(values), limits.min, limits.max).astype(dtype)


def is_color(image: ArrayLike) -> bool:
    """Whether an image is (y, x, color), with 3 channels, or 4, the last one being alpha."""
    shape = np.shape(image)
    return len(shape) == 3 and shape[2] in (3, 4)


def by_channel(image: ArrayLike, restore: Callable[[NDArray[Any]], NDArray[Any]]) -> NDArray[Any]:
    """Each of three colors restored by itself; alpha stays."""
    pixels = np.asarray(image)
    restored = [restore(pixels[:, :, channel]) for channel in range(3)]
    return np.stack([*restored, *np.moveaxis(pixels[:, :, 3:], 2, 0)], axis=2)


def check_pixels(image: ArrayLike) -> NDArray[Any]:
    """An image (y, x) of real numbers; NaN is for the caller to judge."""
    pixels = np.asarray(image)
    if pixels.ndim != 2:
        raise DscError(
            f"image: found shape {pixels.shape}, need (y, x), or (y, x, color) with 3 or 4 channels"
        )
    if pixels.dtype.kind not in "fiu":
        raise DscError(f"image: found pixels of type {pixels.dtype}, need whole numbers or floats")
    if pixels.dtype.kind == "f" and np.isinf(pixels).any():
        raise DscError("image: found infinite values, need finite ones")
    return pixels


def check_size(pixels: NDArray[Any], diameter: int) -> None:
    """Refuse an image that is smaller than a disk."""
    if min(pixels.shape) < diameter:
        raise DscError(
            f"image: found shape {pixels.shape}, need at least {diameter} × {diameter}, the "
            "diameter of the disks: choose a smaller one"
        )
