"""What a sweep writes at its end: the table of the paper's appendix, all numbers, and a page."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from dsc.report.figures import (
    ACCENT,
    INK,
    PALE,
    SECOND,
    SIZE,
    SOFT,
    draw,
    drawing,
    set_accuracy_axis,
)
from dsc.report.page import page, table_tag
from dsc.report.sections import STYLE as REPORT_STYLE
from dsc.report.texture_sections import STYLE as SECTION_STYLE
from dsc.report.texture_sections import facts_table, plot
from dsc.texture.sweep.folder import NUMBERS, PAGE, TABLE, SweepFolder
from dsc.texture.sweep.results import CAUTION, SWEPT, SettingResult, SweepResult
from dsc.version import __version__

COLOURS = (ACCENT, SECOND, INK, SOFT, PALE)  # of the diameters, again from the first if too few
MARKERS, LINES = "osD^v", ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (5, 2, 1, 2)))  # of sparsities
MOST_TICKS = 8
STAR = "★"

STYLE = """
.scroll table { margin: .5rem 0; } .scroll td { white-space: nowrap; }
.scroll td.number, .scroll th:not(:first-child) { padding-left: 1rem; text-align: right; }
"""


def write_sweep(sweep: SweepResult, folder: SweepFolder) -> None:
    """Write table.md, sweep.json and index.html, each whole or not at all."""
    values = sweep.to_dict()
    text = page(_title(sweep), _body(sweep), style=REPORT_STYLE + SECTION_STYLE + STYLE)
    folder.write(TABLE, sweep_table(sweep))
    encoded = json.dumps(values, indent=2, ensure_ascii=False, allow_nan=False)
    folder.write(NUMBERS, encoded + "\n")
    folder.write(PAGE, text)


def sweep_table(sweep: SweepResult) -> str:
    """A block per method in markdown: rows (N, K), columns M, mean ± standard deviation."""
    validation = sweep.identity["validation"]
    lines = [
        "# Accuracy in percent, by cross-validation",
        "",
        f"N is the diameter of a patch, K the atoms per patch, M the atoms per class. Mean ± "
        f"standard deviation of {validation['repeats']} repeats with {validation['held_out']:g} of "
        "the training pictures held out; the best setting of each method is bold. Bins of the "
        f"histograms: {sweep.results[0].config.histogram}.",
    ]
    if len(sweep.grid.method) > 1:
        lines += ["", CAUTION]
    for method in sweep.grid.method:
        header = ["N", "K", *(f"M = {n_atoms}" for n_atoms in sweep.grid.n_atoms)]
        rows = [
            [str(diameter), str(sparsity), *(_cell(one, sweep, "**{}**") for one in row)]
            for diameter, sparsity, row in _rows(sweep, method)
        ]
        lines += ["", f"## {method}", ""]
        lines += ["| " + " | ".join(row) + " |" for row in (header, ["---:"] * len(header), *rows)]
    return "\n".join(lines) + "\n"


def _rows(sweep: SweepResult, method: str) -> list[tuple[int, int, list[SettingResult]]]:
    """(diameter, sparsity, results by atoms) of one method."""
    grid = sweep.grid
    found = {
        (one.config.diameter, one.config.sparsity, one.config.n_atoms): one
        for one in sweep.results
        if one.config.method == method
    }
    return [
        (diameter, sparsity, [found[diameter, sparsity, n_atoms] for n_atoms in grid.n_atoms])
        for diameter in grid.diameter
        for sparsity in grid.sparsity
    ]


def _cell(one: SettingResult, sweep: SweepResult, mark: str) -> str:
    text = _percent(one)
    return mark.format(text) if one == sweep.winners[one.config.method] else text


def _percent(one: SettingResult) -> str:
    return f"{100 * one.mean:.2f} ± {100 * one.std:.2f}"


def plot_sweep(sweep: SweepResult, method: str, low: float) -> Figure:
    """Mean accuracy against the atoms, a line for every (N, K); the axis begins at `low`."""
    grid = sweep.grid
    with drawing():
        figure = Figure(figsize=(1.25 * SIZE[0], 1.2 * SIZE[1]), layout="constrained")
        axes = figure.add_subplot()
        for diameter, sparsity, row in _rows(sweep, method):
            i, j = grid.diameter.index(diameter), grid.sparsity.index(sparsity)
            points = sorted((one.config.n_atoms, one.mean) for one in row)
            axes.plot(
                [n_atoms for n_atoms, _ in points],
                [mean for _, mean in points],
                color=COLOURS[i % len(COLOURS)],
                linestyle=LINES[j % len(LINES)],
                marker=MARKERS[j % len(MARKERS)],
                markersize=4.5,
                linewidth=1.4,
                clip_on=False,
                label=f"N = {diameter}, K = {sparsity}",
            )
        axes.set(xlabel="atoms per class (M)", ylabel="accuracy", xscale="log")
        axes.set_xticks(*_ticks(grid.n_atoms))
        axes.xaxis.set_minor_locator(NullLocator())
        set_accuracy_axis(axes, low)
        axes.tick_params(length=0)
        axes.margins(x=0.04)
        figure.legend(loc="outside right upper", fontsize=8.5, borderpad=0)
    return figure


def _ticks(n_atoms: Sequence[int]) -> tuple[list[int], list[str]]:
    values = sorted(n_atoms)
    shown = values[:: -(-len(values) // MOST_TICKS)]
    return shown, [str(value) for value in shown]


def lowest(sweep: SweepResult) -> float:
    """Where the axis of all plots begins: a round number below the lowest accuracy."""
    worst = min(one.mean for one in sweep.results)
    step = next(s for s in (0.01, 0.02, 0.05, 0.1) if 1 - worst <= 5 * s or s == 0.1)
    return max(0.0, 1 - step * (int((1 - worst) / step + 1e-9) + 1))


def _title(sweep: SweepResult) -> str:
    n_settings = len(sweep.results)
    return f"Sweep of {n_settings} texture setting{'' if n_settings == 1 else 's'}"


def _body(sweep: SweepResult) -> list[str]:
    low = lowest(sweep)
    validation = sweep.identity["validation"]
    note = (
        f"Accuracy in percent, mean ± standard deviation of {validation['repeats']} repeats with "
        f"{validation['held_out']:g} of the training pictures held out. N is the diameter of a "
        f"patch, K the atoms per patch, M the atoms per class; {STAR} marks the best setting of "
        "the method."
    )
    body = [_lead(sweep), _winners(sweep), f'<p class="note">{html.escape(note)}</p>']
    for method in sweep.grid.method:
        header = ["", *(f"M = {n_atoms}" for n_atoms in sweep.grid.n_atoms)]
        rows = [
            [f"N = {diameter}, K = {sparsity}"] + [_cell(one, sweep, STAR + " {}") for one in row]
            for diameter, sparsity, row in _rows(sweep, method)
        ]
        drawn = draw(plot_sweep(sweep, method, low))
        body += [
            f"<h2>{html.escape(method)}</h2>",
            table_tag(header, rows),
            plot(drawn, f"{method}: mean accuracy against the atoms per class"),
        ]
    return [*body, _what_was_run(sweep)]


def _lead(sweep: SweepResult) -> str:
    best = sweep.winner
    n_pictures = sweep.identity["data"]["n_pictures"]
    n_settings = len(sweep.results)
    return (
        f"<p>The best of {n_settings:,} setting{'' if n_settings == 1 else 's'} is "
        f"<strong>{html.escape(_setting(best))}</strong>, with an accuracy of "
        f"<strong>{_percent(best)} %</strong> on {n_pictures:,} training pictures of "
        f"{len(sweep.label_names):,} classes. The dictionaries of a setting are learned once, from "
        "all training pictures; only the nearest-neighbour step is cross-validated, so these "
        "numbers choose a setting and do not tell how well it does on other pictures."
        + (f" {CAUTION}" if len(sweep.grid.method) > 1 else "")
        + "</p>"
    )


def _setting(one: SettingResult) -> str:
    config = one.config
    return f"{config.method}, N = {config.diameter}, K = {config.sparsity}, M = {config.n_atoms}"


def _winners(sweep: SweepResult) -> str:
    header = ["best of each method", "accuracy, %", "seconds", "pairs pruned"]
    rows = [
        [
            f"{STAR} {_setting(one)}" if one == sweep.winner else _setting(one),
            _percent(one),
            f"{one.seconds:,.1f}",
            "—" if one.pruned is None else f"{100 * one.pruned:.1f} %",
        ]
        for one in sweep.winners.values()
    ]
    return table_tag(header, rows)


def _what_was_run(sweep: SweepResult) -> str:
    identity = sweep.identity
    swept = [(name, ", ".join(map(str, getattr(sweep.grid, name)))) for name in SWEPT]
    run: list[tuple[str, Any]] = [
        *sweep.options.items(),
        ("classes", ", ".join(sweep.label_names)),
        *identity["data"].items(),
        *identity["validation"].items(),
        ("seconds of learning", f"{sum(one.seconds_learning for one in sweep.results):,.1f}"),
        ("seconds of labelling", f"{sum(one.seconds_labelling for one in sweep.results):,.1f}"),
    ]
    tables = {
        "Swept": swept,
        "The same in all settings": list(identity["config"].items()),
        "Data and validation": run,
        "Versions and processor": [("dsc", __version__), *identity["numerics"].items()],
    }
    return (
        '<h2>What was run</h2><div class="pair">'
        + "".join(
            "<div>"
            + facts_table(name, [(key, html.escape(_text(value))) for key, value in rows])
            + "</div>"
            for name, rows in tables.items()
        )
        + "</div>"
    )


def _text(value: Any) -> str:
    if value is None:
        return "by default"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return str(value)
