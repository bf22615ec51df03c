"""Atoms and patches as grey disks: the one way in which they are shaded and put together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

COLUMNS = 10  # disks in a row
COLORS = 3  # channels that are shown as red, green and blue

Floats = NDArray[np.floating]
Shades = NDArray[np.uint8]


def shades(images: Floats, low: Floats, high: Floats) -> Shades:
    """(image, y, x, 2) grey and alpha, black at `low`, white at `high` (image,); NaN is clear.

    Images (image, y, x, channel) of three channels are in color, (image, y, x, 4); the channels of
    others are side by side.
    """
    if images.ndim == 4 and images.shape[3] != COLORS:
        images = np.concatenate(np.moveaxis(images, 3, 0), axis=2)
    each = (slice(None), *[None] * (images.ndim - 1))
    span = np.where(high > low, high - low, 1)
    level = (images - low[each]) / span[each]
    inside = np.isfinite(images)
    value = np.where(inside, np.clip(level, 0, 1) * 255, 0).round().astype(np.uint8)
    if images.ndim == 3:
        value, inside = value[..., None], inside[..., None]
    alpha = np.where(inside[..., :1], 255, 0).astype(np.uint8)
    return np.concatenate([value, alpha], axis=-1)


def atom_shades(images: Floats, margin: float = 1.0) -> Shades:
    """Atoms (atom, y, x) or (atom, y, x, channel) as disks, zero mid-grey.

    Each has its own contrast: `margin` times its largest value would be black or white.
    """
    limit = margin * np.abs(np.nan_to_num(images)).reshape(len(images), -1).max(axis=1)
    return shades(images, -limit, limit)


def mosaic(disks: Shades, columns: int = COLUMNS, label_rows: int = 0) -> Shades:
    """Disks in rows as one image (y, x, 2 or 4), with `label_rows` clear pixels under each row."""
    n_disks, height, width = disks.shape[:3]
    gap = max(1, width // 10)
    step_y, step_x = height + gap + label_rows, width + gap
    n_columns = min(columns, n_disks)
    shape = (-(-n_disks // n_columns) * step_y, n_columns * step_x, disks.shape[3])
    canvas = np.zeros(shape, np.uint8)
    for index, disk in enumerate(disks):
        row, column = divmod(index, n_columns)
        y, x = row * step_y, column * step_x
        canvas[y : y + height, x : x + width] = disk
    return canvas
