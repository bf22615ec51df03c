"""Figures that several experiments share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from dsc.experiments.result import Drawing

DPI = 110
LABEL_WIDTH = 1.7  # inches
INK = "#808080"  # readable on light and dark pages

Floats = NDArray[np.floating]
Tile = tuple[int, int, Floats, tuple[float, float]]  # row, column, picture, its grey scale


def picture_rows(
    rows: Mapping[str, Sequence[Floats]],
    like: str,
    titles: Sequence[str] = (),
    scale: tuple[float, float] | None = None,
) -> Figure:
    """Rows of small pictures with a label on the left.

    Parameters
    ----------
    rows
        Label → pictures (y, x), NaN drawn transparent.
    like
        The row whose grey scales, column by column, hold for the others too. A row of another
        length shows atoms, each in its own scale around zero.
    titles
        Written above the first row.
    scale
        One grey scale for all pictures in place of that.
    """
    n_columns = max(len(row) for row in rows.values())
    tiles: list[Tile] = []
    for i, row in enumerate(rows.values()):
        same = len(row) == len(rows[like])
        for j, image in enumerate(row):
            limits = _range(rows[like][j]) if same else _around_zero(image)
            tiles.append((i, j, image, scale or limits))
    width = n_columns + LABEL_WIDTH
    height = len(rows) + 0.45 * bool(titles)
    figure = Figure(figsize=(width, height), dpi=DPI)
    axes = figure.add_axes((LABEL_WIDTH / width, 0, n_columns / width, len(rows) / height))
    side = _mosaic(axes, tiles, len(rows), n_columns)
    for i, label in enumerate(rows):
        axes.text(-2, (i + 0.5) * side, label, ha="right", va="center", fontsize=9, color=INK)
    for j, title in enumerate(titles):
        axes.text((j + 0.5) * side, -1, title, ha="center", va="bottom", fontsize=8, color=INK)
    return figure


def atom_grid(images: Floats, colours: Sequence[str | None] = (), columns: int = 10) -> Figure:
    """A grid of atoms (atom, y, x), those with a colour framed in it."""
    n_rows = -(-len(images) // columns)
    figure = Figure(figsize=(columns, n_rows), dpi=DPI)
    axes = figure.add_axes((0, 0, 1, 1))
    tiles = [(*divmod(m, columns), image, _around_zero(image)) for m, image in enumerate(images)]
    side = _mosaic(axes, tiles, n_rows, columns)
    for m, colour in enumerate(colours):
        if colour is not None:
            row, column = divmod(m, columns)
            place = (column * side - 0.5, row * side - 0.5)
            frame = Rectangle(place, side - 1, side - 1, fill=False, edgecolor=colour, linewidth=3)
            axes.add_patch(frame)
    return figure


def _mosaic(axes: Axes, tiles: Sequence[Tile], n_rows: int, n_columns: int) -> int:
    """Draw square pictures as one (much faster than axes each); returns pixels from one to next."""
    side = int(tiles[0][2].shape[0]) + 1
    canvas = np.full((n_rows * side, n_columns * side), np.nan)
    for i, j, image, (low, high) in tiles:
        scaled = (image - low) / (high - low if high > low else 1.0)
        canvas[i * side : (i + 1) * side - 1, j * side : (j + 1) * side - 1] = scaled
    axes.imshow(canvas, cmap="gray", vmin=0, vmax=1, interpolation="nearest", aspect="auto")
    axes.set_axis_off()
    return side


def _range(image: Floats) -> tuple[float, float]:
    return float(np.nanmin(image)), float(np.nanmax(image))


def _around_zero(image: Floats) -> tuple[float, float]:
    limit = 1.15 * float(np.abs(np.nan_to_num(image)).max()) or 1.0  # a constant is not all white
    return -limit, limit


def line_plot(
    lines: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    caption: str,
    **axes_options: Any,
) -> Drawing:
    """Lines with markers, by label; `axes_options` go to `Axes.set`."""
    figure = Figure(figsize=(7, 3.8), dpi=DPI, layout="constrained")
    axes: Axes = figure.add_subplot()
    for label, (x, y) in lines.items():
        axes.plot(x, y, marker="o", markersize=3, label=label)
    axes.set(**axes_options)
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, fontsize=9)
    return Drawing(figure, caption, plot=True)
