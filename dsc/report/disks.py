"""Patches and atoms as disks: small PNGs for the page, mosaics for the files beside it."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from PIL import Image

from dsc.report.figures import INK, drawing
from dsc.report.sample import Shown

Floats = NDArray[np.float32]
Shades = NDArray[np.uint8]

SHAPES_PER_ROW = 10
INCHES = 0.75  # of a disk in a mosaic


def shades(images: Floats, low: Floats, high: Floats) -> Shades:
    """(patch, y, x, 2) grey and alpha of pictures, black at `low`, white at `high` (patch,)."""
    span = np.where(high > low, high - low, 1)
    grey = (images - low[:, None, None]) / span[:, None, None]
    inside = np.isfinite(images)
    value = np.where(inside, np.clip(grey, 0, 1) * 255, 0).round().astype(np.uint8)
    return np.stack([value, np.where(inside, 255, 0).astype(np.uint8)], axis=-1)


def atom_shades(images: Floats) -> Shades:
    """Atoms, each with mid-grey at zero and its largest value black or white."""
    limit = np.nanmax(np.abs(images), axis=(1, 2))
    return shades(images, -limit, limit)


def triple_shades(shown: Shown) -> tuple[Shades, Shades, Shades]:
    """Patches, codings and residuals: one span of greys per patch, zero residual mid-grey."""
    low, high = np.nanmin(shown.patch, axis=(1, 2)), np.nanmax(shown.patch, axis=(1, 2))
    half = (high - low) / 2
    return (
        shades(shown.patch, low, high),
        shades(shown.coding, low, high),
        shades(shown.residual, -half, half),
    )


def data_url(disk: Shades) -> str:
    """One disk as a PNG in a URL."""
    data = io.BytesIO()
    Image.fromarray(disk).save(data, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(data.getvalue()).decode()


def plot_grid(disks: Shades, labels: Sequence[str]) -> Figure:
    """A mosaic of disks with a label under each."""
    columns = min(SHAPES_PER_ROW, len(disks))
    rows = -(-len(disks) // columns)
    diameter = disks.shape[1]
    wide, high = diameter + _gap(diameter), round(1.3 * diameter)
    canvas = np.zeros((rows * high, columns * wide, 2), np.uint8)
    for place, disk in enumerate(disks):
        row, column = divmod(place, columns)
        _paste(canvas, disk, row * high, column * wide)
    with drawing():
        figure, axes = _mosaic(canvas, INCHES / wide)
        for place, label in enumerate(labels):
            row, column = divmod(place, columns)
            x, y = column * wide + diameter / 2, row * high + 1.12 * diameter
            axes.text(x, y, label, ha="center", va="center", color=INK, size=7)
    return figure


def plot_triples(shown: Shown) -> Figure:
    """A mosaic with a column per patch: patch, coding, residual."""
    diameter = shown.patch.shape[1]
    step = diameter + _gap(diameter)
    canvas = np.zeros((3 * step, (len(shown.patch) + 1) * step, 2), np.uint8)
    for row, disks in enumerate(triple_shades(shown)):
        for place, disk in enumerate(disks):
            _paste(canvas, disk, row * step, (place + 1) * step)
    with drawing():
        figure, axes = _mosaic(canvas, INCHES / step)
        for row, name in enumerate(("patch", "coding", "residual")):
            x, y = 0.9 * step, row * step + diameter / 2
            axes.text(x, y, name, ha="right", va="center", color=INK, size=8)
    return figure


def _gap(diameter: int) -> int:
    """Pixels between disks."""
    return max(1, diameter // 12)


def _paste(canvas: Shades, disk: Shades, top: int, left: int) -> None:
    canvas[top : top + disk.shape[0], left : left + disk.shape[1]] = disk


def _mosaic(canvas: Shades, inches: float) -> tuple[Figure, Axes]:
    """A figure that a canvas fills, with its pixels as units, each of so many inches."""
    height, width = canvas.shape[:2]
    figure = Figure(figsize=(width * inches, height * inches))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    grey, alpha = canvas[..., 0], canvas[..., 1]
    axes.imshow(
        np.dstack([grey, grey, grey, alpha]),
        extent=(0, width, height, 0),
        interpolation="none",  # an SVG then holds the pixels as they are
        aspect="auto",
    )
    return figure, axes
