"""Atoms and patches as a figure: the one grid of disks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dsc.show import COLUMNS, Floats, Shades, atom_shades, mosaic

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INCHES = 0.66  # of an atom in a figure: ten in a row are readable in the width of a phone


def plot_disks(
    disks: Shades,
    columns: int = COLUMNS,
    labels: Sequence[str] = (),
    headings: Sequence[str] = (),
    frames: Sequence[str | None] = (),
) -> Figure:
    """A grid of disks, with text under each and above each row, or a coloured frame around some.

    Parameters
    ----------
    disks
        (disk, y, x, 2), as `atom_shades` makes them.
    columns
        Disks in a row.
    labels
        Text under each disk.
    headings
        Text above each row.
    frames
        Colour of the frame of each disk; None for no frame.
    """
    from matplotlib.patches import Rectangle

    from dsc.dictionary.figure import NotebookFigure

    n_columns, (height, width) = min(columns, len(disks)), disks.shape[1:3]
    lines = 1 + max((label.count("\n") for label in labels), default=-1)
    below, above = round(0.22 * lines * height), round(0.3 * height) if headings else 0
    canvas = mosaic(disks, columns, below + above)
    n_y, n_x = canvas.shape[:2]
    step_y, step_x = n_y // -(-len(disks) // n_columns), n_x // n_columns
    figure = NotebookFigure(figsize=(n_x * INCHES / step_x, n_y * INCHES / step_x), dpi=160)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.imshow(
        canvas if canvas.shape[2] == 4 else canvas[..., [0, 0, 0, 1]],
        extent=(0, n_x, n_y, 0),
        interpolation="none",  # an SVG then holds the pixels as they are
        aspect="auto",
    )
    axes.set(xlim=(0, n_x), ylim=(n_y - above, -above))
    for row, heading in enumerate(headings):
        axes.text(0, row * step_y - 0.5 * above, heading, va="center", size=9.5)
    corners = [(step_x * (i % n_columns), step_y * (i // n_columns)) for i in range(len(disks))]
    for (x, y), label in zip(corners, labels, strict=False):
        axes.text(x + width / 2, y + height + below / 2, label, ha="center", va="center", size=7)
    for (x, y), colour in zip(corners, frames, strict=False):
        if colour is not None:
            inside = (x + 0.25, y + 0.25), width - 0.5, height - 0.5
            axes.add_patch(Rectangle(*inside, fill=False, edgecolor=colour, linewidth=2))
    return figure


def plot_atoms(images: Floats, columns: int = COLUMNS) -> Figure:
    """A grid of atoms (atom, y, x), grey around zero, transparent outside the disk."""
    return plot_disks(atom_shades(images), columns)
