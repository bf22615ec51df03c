"""Figures of a texture evaluation: accuracy by angle, confusion, errors, atoms, class maps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from dsc.report import figures as look
from dsc.report.texture_images import COLUMNS, Bytes, ClassMap, Mistake
from dsc.show import mosaic

LOW_ENDS = (0.99, 0.98, 0.95, 0.9, 0.8, 0.5, 0.0)  # where an axis of accuracies may begin
MOST_LETTERS = 16  # of a class in a figure


def accuracy_axis(by_angle: Sequence[dict[str, Any]]) -> float:
    """Where the axis of accuracies begins; it ends at one.

    It shows the worst angle well above the bottom, and is never so short that a single image
    would look like a large error.

    Examples
    --------
    >>> accuracy_axis([{"angle": 5.0, "n": 480, "accuracy": 0.9979}])
    0.99
    >>> accuracy_axis([{"angle": 5.0, "n": 20, "accuracy": 1.0}])
    0.8
    """
    worst = max(1 - one["accuracy"] for one in by_angle)
    single = 1 / max(1, min(one["n"] for one in by_angle))
    span = max(1.15 * worst, 4 * single)
    return next((low for low in LOW_ENDS if 1 - low >= span - 1e-9), 0.0)


def plot_angles(by_angle: Sequence[dict[str, Any]], overall: float) -> Figure:
    """Accuracy at each angle, as errors that hang from the line of 100 %."""
    low = accuracy_axis(by_angle)
    place = np.arange(len(by_angle))
    accuracy = np.array([one["accuracy"] for one in by_angle])
    with look.drawing():
        figure, axes = look.make_axes("angle of the test images", "accuracy")
        axes.bar(place, accuracy - 1, bottom=1, color=look.PALE, width=0.5)
        axes.plot(place, accuracy, "o", color=look.ACCENT, markersize=5.5, clip_on=False, zorder=3)
        axes.axhline(overall, color=look.SECOND, linewidth=1.2, linestyle=(0, (4, 3)))
        below = overall - low > 0.2 * (1 - low)  # room for the text
        first = accuracy[-1] < accuracy[0]  # beside the shorter bar
        axes.annotate(
            "all angles", (0.01 if first else 0.99, overall), xycoords=("axes fraction", "data"),
            xytext=(0, -4 if below else 4), textcoords="offset points", color=look.SECOND,
            ha="left" if first else "right", va="top" if below else "bottom", fontsize=8.5,
        )  # fmt: skip
        step = -(-len(by_angle) // 12)
        axes.set_xticks(place[::step], [f"{one['angle']:g}°" for one in by_angle[::step]])
        axes.set_xlim(-0.6, len(by_angle) - 0.4)
        look.set_accuracy_axis(axes, low)
    return figure


def plot_curve(counts: Sequence[int], lines: Sequence[dict[str, Any]]) -> Figure:
    """Accuracy against training images of each class: this run in blue, others behind it."""
    shown = [accuracy for line in lines for accuracy in line["accuracy"]]
    worst = 1 - min(shown)
    low = next((low for low in LOW_ENDS if 1 - low >= 1.15 * worst), 0.0)
    with look.drawing():
        figure, axes = look.make_axes("training images of each class", "accuracy")
        for number, line in enumerate(lines):
            color = look.ACCENT if number == 0 else look.SECOND
            dash = "-" if number < 2 else (0, (4, 3))
            axes.plot(
                counts, line["accuracy"], marker="o", color=color, linestyle=dash,
                label=line["method"], zorder=3 - 0.5 * bool(number), clip_on=False,
            )  # fmt: skip
        axes.set_xscale("log")
        axes.minorticks_off()
        axes.set_xticks(counts, [str(n) for n in counts])
        look.set_accuracy_axis(axes, low)
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1), fontsize=8, frameon=False)
    return figure


def plot_confusion(confusion: Sequence[Sequence[int]], names: Sequence[str]) -> Figure:
    """Counts of (true, predicted) classes: right ones blue, wrong ones orange."""
    count = np.array(confusion)
    n_labels = len(names)
    diagonal = np.eye(n_labels, dtype=bool)[..., None]
    colour = np.where(diagonal, to_rgb(look.ACCENT), to_rgb(look.SECOND))
    shades = 1 + cell_strengths(confusion)[..., None] * (colour - 1)
    side = 0.33 * n_labels + 1.8
    with look.drawing():
        figure = Figure(figsize=(side, side), layout="constrained")
        axes = figure.add_subplot()
        axes.imshow(shades, interpolation="none")
        for i, j in zip(*np.nonzero(count), strict=True):
            axes.text(j, i, str(count[i, j]), ha="center", va="center", fontsize=7.5)
        short = [_short(name) for name in names]
        axes.set_xticks(range(n_labels), short, rotation=90)
        axes.set_yticks(range(n_labels), short)
        axes.set_xticks(np.arange(n_labels + 1) - 0.5, minor=True)
        axes.set_yticks(np.arange(n_labels + 1) - 0.5, minor=True)
        axes.grid(visible=False)
        axes.grid(visible=True, which="minor", axis="both")
        axes.tick_params(length=0, which="both", labelsize=8)
        axes.set(xlabel="predicted class", ylabel="true class")
    return figure


def cell_strengths(confusion: Sequence[Sequence[int]]) -> NDArray[np.float64]:
    """How strongly each cell is coloured: more for a larger share of the row.

    A single wrong image is well visible; nothing is coloured where there is none. At most 0.52,
    on which a count is readable on light pages and on dark ones.
    """
    count = np.array(confusion, np.float64)
    share = count / np.maximum(count.sum(1, keepdims=True), 1)
    least = np.where(np.eye(len(count), dtype=bool), 0.08, 0.38)
    return np.where(count > 0, least + (0.52 - least) * share, 0)


def plot_errors(history: Sequence[Sequence[float]], names: Sequence[str]) -> Figure:
    """Error of each class's dictionary over iterations, one thin line per class."""
    ends = sorted((line[-1], label) for label, line in enumerate(history) if line)
    named = {ends[0][1]: "top", ends[-1][1]: "bottom"}
    with look.drawing():
        figure, axes = look.make_axes("dictionary updates", "error per pixel")
        for label, line in enumerate(history):
            strong = label in named
            axes.plot(
                line, color=look.ACCENT, linewidth=1.5 if strong else 0.9,
                alpha=1 if strong else 0.55, marker="o" if len(line) == 1 else "", markersize=3,
            )  # fmt: skip
        for label, side in named.items():
            line = history[label]
            axes.annotate(
                _short(names[label]), (len(line) - 1, line[-1]), xytext=(5, 0), color=look.ACCENT,
                textcoords="offset points", va=side, fontsize=8.5, annotation_clip=False,
            )  # fmt: skip
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
        last = max(1, max(len(line) for line in history) - 1)
        axes.set_xlim(-0.02 * last, 1.02 * last)
        look.set_error_axis(axes, [value for line in history for value in line])
    return figure


def plot_atoms(atoms: Sequence[Bytes], names: Sequence[str]) -> Figure:
    """The most used atoms of each dictionary in a row, (atom, y, x, 2) each."""
    rows = [[mosaic(disks[:COLUMNS], COLUMNS)] for disks in atoms]
    return _tiled(rows, [_short(name) for name in names], 0.5 * min(COLUMNS, len(atoms[0])))


def plot_maps(maps: Sequence[ClassMap]) -> Figure:
    """Test images, each beside the classes of its patches."""
    return _tiled([[one.image, one.painted] for one in maps], [_taken_for(one) for one in maps])


def plot_pairs(mistakes: Sequence[Mistake]) -> Figure:
    """Confused images: the image, its nearest neighbour, one of its own class, if at hand."""
    rows = [
        [image for image in (one.query, one.nearest, one.example) if image is not None]
        for one in mistakes
    ]
    titles = ("test image", "nearest", "of its own class")[: len(rows[0])]
    return _tiled(rows, [_taken_for(one) for one in mistakes], titles=titles)


def _tiled(
    rows: Sequence[Sequence[Bytes]],
    labels: Sequence[str],
    width: float = 1.5,
    titles: Sequence[str] = (),
) -> Figure:
    """Rows of images `width` inches wide, with a label before each row."""
    gap, margin, top = 0.08, 1.6, 0.3 if titles else 0.0
    heights = [max(width * tile.shape[0] / tile.shape[1] for tile in row) for row in rows]
    total_width = margin + len(rows[0]) * (width + gap)
    total_height = top + sum(heights) + gap * len(rows)
    with look.drawing():
        figure = Figure(figsize=(total_width, total_height))
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        y = top
        for row, label, height in zip(rows, labels, heights, strict=True):
            axes.text(margin - 0.1, y + height / 2, label, ha="right", va="center", size=8.5)
            for j, tile in enumerate(row):
                x, high = margin + j * (width + gap), width * tile.shape[0] / tile.shape[1]
                extent = (x, x + width, y + high, y)
                axes.imshow(_rgba(tile), extent=extent, interpolation="none")
            y += height + gap
        for j, title in enumerate(titles):
            x = margin + j * (width + gap) + width / 2
            axes.text(x, top - 0.08, title, ha="center", va="bottom", size=8.5)
        axes.set(xlim=(0, total_width), ylim=(total_height, 0), aspect="auto")
    return figure


def _rgba(tile: Bytes) -> Bytes:
    """(y, x, 4) of greys (y, x), greys with alpha (y, x, 2), or colours with alpha."""
    if tile.ndim == 2:
        tile = np.dstack([tile, np.full_like(tile, 255)])
    return tile if tile.shape[2] == 4 else tile[..., [0, 0, 0, 1]]


def _taken_for(one: ClassMap | Mistake) -> str:
    return f"{_short(one.true)}\ntaken for {_short(one.predicted)}"


def _short(name: str) -> str:
    return name if len(name) <= MOST_LETTERS else name[: MOST_LETTERS - 1] + "…"
