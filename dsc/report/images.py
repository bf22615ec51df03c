"""Whole images on pages: grey, signed, and directions in color."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from skimage.color import lab2rgb

LIGHTNESS, CHROMA = 72, 50  # in CIELAB, of the strongest direction: all hues are equally light
STRONGEST = 95  # percentile of the strengths that is drawn in full color
WHITE = 99.5  # percentile of the sizes of signed values that is drawn white
WHEEL = 120  # pixels across the key of colors

Floats = NDArray[np.floating]
Bytes = NDArray[np.uint8]


def grey(image: Floats, low: float, high: float) -> Bytes:
    """(y, x) black at `low`, white at `high`; of (y, x, color) each channel likewise."""
    span = high - low if high > low else 1.0
    values = np.nan_to_num((np.asarray(image, np.float64) - low) / span)
    return np.asarray(np.rint(255 * values.clip(0, 1)), np.uint8)


def signed(image: Floats, limit: float | None = None) -> Bytes:
    """Zero mid-grey, ± `limit` white and black; by default what few pixels exceed."""
    if limit is None:
        limit = float(np.percentile(np.abs(np.nan_to_num(image)), WHITE)) or 1.0
    return grey(image, -limit, limit)


def strength_of(maps: Any) -> Floats:
    """(y, x) how clear a direction is, 0 to 1, of the maps of `orientation`.

    The root of the coherence times the fourth root of the energy, in units of a high percentile of
    all: fine fur is seen beside strong edges. 0 where a map has no value (NaN).
    """
    energy, coherence = (np.asarray(maps[name], np.float64) for name in ("energy", "coherence"))
    level = np.maximum(energy, 0) ** 0.25
    top = np.nanpercentile(level, STRONGEST) or 1.0
    return np.asarray(np.nan_to_num(np.sqrt(coherence) * (level / top).clip(0, 1)))


def paint_directions(degrees: Floats, strength: Floats) -> Bytes:
    """(y, x, 3) a hue for each direction, the same at 180 degrees from it; dark where weak."""
    double = 2 * np.radians(np.nan_to_num(np.asarray(degrees, np.float64)))
    chroma = CHROMA * strength
    lab = np.stack([LIGHTNESS * strength, chroma * np.cos(double), chroma * np.sin(double)], -1)
    return np.asarray(np.rint(255 * lab2rgb(lab).clip(0, 1)), np.uint8)


def direction_wheel(side: int = WHEEL) -> Bytes:
    """(y, x, 4) the key: a line from the centre in the color of its direction; clear around."""
    y, x = np.mgrid[:side, :side] - (side - 1) / 2
    radius = np.hypot(y, x) / (side / 2)
    colors = paint_directions(np.degrees(np.arctan2(-y, x)), np.ones(radius.shape))
    alpha = 255 * ((radius <= 1) & (radius >= 0.35))
    return np.concatenate([colors, alpha[..., None].astype(np.uint8)], axis=-1)
