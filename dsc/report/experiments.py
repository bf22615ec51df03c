"""Results of experiments as folders: JSON, a table, figures, and a page; and their summary."""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from itertools import cycle
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from dsc.dictionary import plot_disks
from dsc.errors import DscError
from dsc.experiments import AtomGrid, FigureValue, ImageRows, Lines, Result
from dsc.files import write_whole
from dsc.report.figures import SERIES, SOFT, draw, drawing, make_axes, set_log_axis
from dsc.report.render import Page, Place
from dsc.show import atom_shades, shades

SUMMARY_HEADER = ("experiment", "claim", "ours", "holds", "remark")
WHO = {"paper": "the paper", "dsc": "we"}
DASHES = ("-", (0, (4, 2)), (0, (1, 1.5)))


def check_free(folder: Path, names: list[str]) -> None:
    """Refuse, before anything runs, to write over results that exist."""
    wanted = [folder / name for name in names]
    if len(names) > 1:
        wanted.append(folder / "summary.json")
    taken = [str(path) for path in wanted if path.exists()]
    if taken:
        raise DscError(f"{', '.join(taken)}: exists already: choose another --out, or remove it")


def write_result(result: Result, folder: Path) -> Path:
    """Write FOLDER/NAME with result.json, table.md, the figures and index.html; returns it."""
    check_free(folder, [result.name])
    out = folder / result.name
    facts = {
        "kind": "dsc experiment",
        **result.to_dict(),
        "figures": {name: figure.caption for name, figure in result.figures.items()},
    }
    figures = {name: draw(plot_figure(figure)) for name, figure in result.figures.items()}
    out.mkdir(parents=True)
    write_whole(out / "table.md", _table_file(result))
    place = Place(out / "index.html", out / "result.json")
    more = {
        "findings": [(finding.holds, finding.sentence) for finding in result.findings],
        "grids": [name for name, some in result.figures.items() if not isinstance(some, Lines)],
    }
    place.write(Page("experiment.html", result.title, facts, figures, more))
    return out


def write_summary(results: list[Result], folder: Path) -> str:
    """Write FOLDER/summary.md, summary.json and index.html; returns the table in markdown."""
    rows = [
        (result.name, f"{WHO[f.by]}: {f.claim}", f.ours, "yes" if f.holds else "no", f.why)
        for result in results
        for f in result.findings
    ]
    text = markdown_table(SUMMARY_HEADER, rows)
    about = "\n".join(f"- {r.name}: {r.data}; {_version(r)}, {r.seconds:.0f} s" for r in results)
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / "summary.md", f"{text}\n\nData:\n\n{about}\n")
    facts = {"kind": "dsc experiments", "experiments": [result.to_dict() for result in results]}
    table = {"header": SUMMARY_HEADER, "rows": rows}
    place = Place(folder / "index.html", folder / "summary.json")
    place.write(Page("experiments.html", "Experiments of dsc", facts, images=table))
    return text


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in markdown."""
    lines = [header, ["---"] * len(header), *rows]
    cells = [[cell.replace("|", "\\|") for cell in line] for line in lines]
    return "\n".join("| " + " | ".join(line) + " |" for line in cells)


def _version(result: Result) -> str:
    return "quick version" if result.quick else "full version"


def _table_file(result: Result) -> str:
    table = markdown_table(result.header, result.rows)
    findings = "\n".join(f"- {finding.sentence}" for finding in result.findings)
    notes = "\n\n".join(result.notes)
    about = f"Data: {result.data} ({_version(result)})"
    return f"# {result.title}\n\n{about}\n\n{findings}\n\n{table}\n\n{notes}\n"


@singledispatch
def plot_figure(figure: FigureValue) -> Figure:
    """Draw a figure of an experiment in the style of all pages."""
    raise TypeError(f"found {type(figure)}, need Lines, ImageRows or AtomGrid")


@plot_figure.register
def plot_lines(figure: Lines) -> Figure:
    """Lines with markers, and a legend of colours and dashes above."""
    keys = [key if isinstance(key, tuple) else (key, "") for key in figure.lines]
    colours = dict(zip(dict.fromkeys(label for label, _ in keys), cycle(SERIES), strict=False))
    dashes = dict(zip(dict.fromkeys(kind for _, kind in keys), cycle(DASHES), strict=False))
    with drawing():
        canvas, axes = make_axes(figure.x_name, figure.y_name)
        for (label, kind), y in zip(keys, figure.lines.values(), strict=True):
            axes.plot(
                figure.x, y, color=colours[label], linestyle=dashes[kind], marker="o",
                markersize=3, linewidth=1.4,
            )  # fmt: skip
        if figure.bound is not None:
            name, height = figure.bound
            axes.axhline(height, color=SOFT, linewidth=1)
            axes.annotate(
                name, (1, height), xycoords=("axes fraction", "data"), xytext=(0, 3),
                textcoords="offset points", ha="right", color=SOFT,
            )  # fmt: skip
        if len(figure.x) <= 5:
            axes.set_xticks(figure.x)
        if figure.is_log:
            set_log_axis(axes)
        entries = {label: Line2D([], [], color=colour) for label, colour in colours.items()}
        for kind, dash in dashes.items():
            if kind:
                entries[kind] = Line2D([], [], color=SOFT, linestyle=dash)
        fit = 73 // (max(map(len, entries)) + 6)  # entries side by side
        canvas.legend(
            entries.values(), entries.keys(), loc="outside upper left", fontsize=8.5,
            ncols=max(1, min(len(entries), fit)), handlelength=1.8, borderpad=0,
        )  # fmt: skip
    return canvas


@plot_figure.register
def plot_image_rows(figure: ImageRows) -> Figure:
    """Rows of images with their names above."""
    n_columns = max(map(len, figure.rows.values()))
    disks = [
        np.pad(_shade(row, figure), ((0, n_columns - len(row)), (0, 0), (0, 0), (0, 0)))
        for row in figure.rows.values()
    ]  # with clear ones at the end of shorter rows
    labels = [*figure.labels, *[""] * (n_columns * (len(disks) - 1))] if figure.labels else ()
    with drawing():
        return plot_disks(np.concatenate(disks), n_columns, labels, list(figure.rows))


def _shade(images: NDArray[np.floating], figure: ImageRows) -> NDArray[np.uint8]:
    like = figure.rows[figure.like]
    if figure.scale is not None:
        low, high = (np.full(len(images), value) for value in figure.scale)
        return shades(images, low, high)
    if len(images) != len(like):
        return atom_shades(images)
    return shades(images, np.nanmin(like, axis=(1, 2)), np.nanmax(like, axis=(1, 2)))


@plot_figure.register
def plot_atom_grid(figure: AtomGrid) -> Figure:
    """Atoms in a grid; where there are more groups than colours, their places tell them apart."""
    frames: list[str | None] = [None] * len(figure.images)
    for number, group in enumerate(figure.groups):
        for index in group:
            frames[index] = SERIES[number % len(SERIES)]
    disks = atom_shades(figure.images, margin=1.15)  # a constant is not white on white
    return plot_disks(disks, figure.columns, frames=frames)
