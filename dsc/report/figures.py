"""The figures of a learned dictionary, and the look that the figures of all pages have.

Each is saved as PNG and SVG, and themed for the page: colours are few and solid, so that the page
can give the same SVG another set of them in the dark.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.figure import Figure

INK, SOFT, LINE, ACCENT, SECOND, PALE = (
    "#1c1e21", "#5c636b", "#d5d8dc", "#2f6fb5", "#c4651a", "#9db9da",
)  # fmt: skip
SERIES = (ACCENT, SECOND, "#2e8540", "#8a5cb8", "#b5304a", "#7a6a1f", "#c2569b", "#1f8a93")
DARK = {
    INK: "#e8eaed", SOFT: "#a5acb4", LINE: "#3d4248", ACCENT: "#7fb3ef", SECOND: "#f0a35e",
    PALE: "#3f5f85", "#2e8540": "#7cc98a", "#8a5cb8": "#c3a3e6", "#b5304a": "#f08a9b",
    "#7a6a1f": "#d3c26b", "#c2569b": "#ec9fd0", "#1f8a93": "#6fcfd8",
}  # fmt: skip

STYLE = matplotlib.rc_params_from_file(
    Path(__file__).with_name("style.mplstyle"), use_default_template=False
)  # notebooks use the same: plt.style.use("dsc.report.style")
SIZE = (4.8, 3.0)  # inches: readable in the width of a phone

# a name with dollars is no formula
drawing = partial(
    matplotlib.rc_context, {**STYLE, "text.parse_math": False}
)  # within it, figures have the look of all pages


def set_error_axis(axes: Axes, errors: Sequence[float]) -> None:
    """From zero on, or logarithmic where errors fall far."""
    if min(errors) > 0 and max(errors) > 4 * min(errors):
        set_log_axis(axes)
    else:
        axes.set_ylim(0, 1.08 * max(errors) or 1)


def set_log_axis(axes: Axes) -> None:
    """Logarithmic, with ticks at 1, 2, 5 and their tenfolds."""
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(ticker.StrMethodFormatter("{x:g}"))
    axes.yaxis.set_minor_locator(ticker.NullLocator())


def set_count_axis(axes: Axes, n: int) -> None:
    """Whole numbers from 1 to n along x, a bar's width around each."""
    axes.xaxis.set_major_locator(ticker.MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    axes.set_xlim(0.4, n + 0.6)


def set_accuracy_axis(axes: Axes, low: float) -> None:
    """Percent from `low` to one, with ticks that their digits show exactly."""
    axes.set_ylim(low, 1)
    axes.yaxis.set_major_locator(ticker.MaxNLocator(6, steps=[1, 2, 5, 10]))
    decimals = 1 if 1 - low < 0.05 else 0
    axes.yaxis.set_major_formatter(ticker.PercentFormatter(1, decimals, symbol=" %"))


def plot_history(history: list[float], shares: list[float] | None = None) -> Figure:
    """Error over iterations, as the share of energy left if it is known.

    Logarithmic where it falls far.
    """
    errors = history if shares is None else [100 * share for share in shares]
    name, unit = ("error per pixel", "") if shares is None else ("energy left, %", " %")
    with drawing():
        figure, axes = make_axes("dictionary updates", name)
        axes.plot(errors, color=ACCENT, marker="o", markersize=3.5, linewidth=1.6)
        axes.xaxis.set_major_locator(ticker.MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
        axes.margins(x=0.03)
        set_error_axis(axes, errors)
        axes.annotate(
            f"{errors[-1]:.3g}{unit}", (len(errors) - 1, errors[-1]), xytext=(0, 9),
            textcoords="offset points", ha="right", color=ACCENT,
        )  # fmt: skip
    return figure


def plot_use(count: list[int], even: float) -> Figure:
    """How often each atom is used, most used first."""
    n_atoms = len(count)
    with drawing():
        figure, axes = make_axes("atoms, most used first", "uses")
        width = 0.8 if n_atoms <= 100 else 1.0
        axes.bar(np.arange(1, n_atoms + 1), count, color=ACCENT, width=width)
        axes.axhline(even, color=SECOND, linewidth=1.2, linestyle=(0, (4, 3)))
        axes.annotate(
            "even use", (1, even), xycoords=("axes fraction", "data"), xytext=(0, 4),
            textcoords="offset points", ha="right", color=SECOND,
        )  # fmt: skip
        set_count_axis(axes, n_atoms)
        axes.yaxis.set_major_formatter(ticker.EngFormatter(sep=""))
    return figure


def plot_angles(count: list[int]) -> Figure:
    """Polar histogram of the angles at which atoms are used; the circle is even use."""
    n_angles = len(count)
    half, fine = np.pi / n_angles, max(2, 240 // n_angles)
    arcs = 2 * half * np.arange(n_angles)[:, None] + np.linspace(-half, half, fine)
    radius = np.repeat(np.array(count) / max(sum(count) / n_angles, 1e-300), fine)
    with drawing():
        figure = Figure(figsize=(SIZE[0], 3.3), layout="constrained")
        axes: Any = figure.add_subplot(projection="polar")
        axes.fill(arcs.ravel(), radius, facecolor=PALE, edgecolor=ACCENT, linewidth=1.0)
        rotation = np.linspace(0, 2 * np.pi, 181)
        axes.plot(
            rotation, np.ones_like(rotation), color=SECOND, linewidth=1.2, linestyle=(0, (4, 3))
        )
        axes.set_thetagrids(np.arange(0, 360, 45))
        axes.set_rgrids([1.0], labels=[""])
        axes.set_ylim(0, max(1.25, 1.05 * float(radius.max())))
        axes.grid(axis="both")
        axes.spines["polar"].set_color(LINE)
    return figure


def plot_time(passes: list[dict[str, Any]]) -> Figure:
    """Seconds of every pass over the patches."""
    kinds = {
        "first": ("first: also reads", SECOND),
        "update": ("updates", ACCENT),
        "final": ("final: only codes", PALE),
    }
    with drawing():
        figure, axes = make_axes("pass over the patches", "seconds")
        for kind, (name, colour) in kinds.items():
            bars = {i: one["seconds"] for i, one in enumerate(passes, 1) if one["kind"] == kind}
            if bars:
                axes.bar(list(bars), list(bars.values()), color=colour, width=0.8, label=name)
        set_count_axis(axes, max(1, len(passes)))
        figure.legend(loc="outside upper left", ncols=3, fontsize=8.5, handlelength=1, borderpad=0)
    return figure


@dataclass(frozen=True)
class Rendering:
    """A figure as files: `png` on white, `svg` transparent."""

    png: bytes
    svg: bytes


def draw(figure: Figure) -> Rendering:
    """Render a figure: the same bytes for the same figure."""
    png, svg = io.BytesIO(), io.BytesIO()
    with drawing():
        figure.savefig(png, format="png", dpi=160, facecolor="white")
        figure.set_layout_engine("none")  # all has found its place
        figure.savefig(svg, format="svg", transparent=True, metadata={"Date": None})
    return Rendering(png.getvalue(), svg.getvalue())


def themed_url(rendering: Rendering) -> str:
    """The SVG in a URL, with other colours in the dark."""
    text = rendering.svg.decode()
    for light in DARK:
        text = text.replace(light, f"var(--c{light[1:]})")
    light = "".join(f"--c{colour[1:]}:{colour};" for colour in DARK)
    dark = "".join(f"--c{colour[1:]}:{other};" for colour, other in DARK.items())
    style = f"<style>:root{{{light}}}@media (prefers-color-scheme:dark){{:root{{{dark}}}}}</style>"
    begin = text.index("<svg")
    end = text.index(">", begin) + 1
    text = text[begin:end] + style + text[end:]
    return "data:image/svg+xml;base64," + base64.b64encode(text.encode()).decode()


def make_axes(x: str, y: str) -> tuple[Figure, Axes]:
    """A figure with one pair of axes of these names."""
    figure = Figure(figsize=SIZE, layout="constrained")
    axes = figure.add_subplot()
    axes.set(xlabel=x, ylabel=y)
    axes.tick_params(length=0)
    return figure, axes
