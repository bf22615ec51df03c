"""`write_sweep_report`: a sweep as the table of the paper's appendix and as a page."""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from dsc.report import figures as look
from dsc.report.paper import is_of_the_paper, validated
from dsc.report.render import Page, Place, plural
from dsc.texture import CAUTION, SettingResult, SweepResult

KIND = "dsc texture sweep report"  # by which we know a report.json of ours
# of the diameters, again from the first if too few
COLOURS = (look.ACCENT, look.SECOND, look.INK, look.SOFT, look.PALE)
MARKERS, LINES = "osD^v", ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (5, 2, 1, 2)))  # of sparsities
MOST_TICKS = 8
BESIDE = (
    "In brackets what the paper prints for the setting, on the same images: cited, not run here."
)


def write_sweep_report(folder: Path, result: SweepResult) -> None:
    """Write index.html, report.json, table.md and the plots to a folder; ours are replaced."""
    Place.folder(folder).write(_page(result))


def sweep_table(result: SweepResult) -> str:
    """A block per method in markdown: rows (N, K), columns M, mean ± standard deviation."""
    grid, validation = result.sweep.grid, result.sweep.validation
    lines = [
        "# Accuracy in percent, by cross-validation",
        "",
        f"N is the diameter of a patch, K the atoms per patch, M the atoms per class. Mean ± "
        f"standard deviation of {validation.repeats} repeats with {validation.held_out:g} of the "
        "training images held out; the best setting of each method is bold. Bins of the "
        f"histograms: {result.sweep.base.histogram}.",
    ]
    if has_printed(result):
        lines += ["", BESIDE]
    if len(grid.method) > 1:
        lines += ["", CAUTION]
    for method, best in result.winners.items():
        header = ["N", "K", *(f"M = {n_atoms}" for n_atoms in grid.n_atoms)]
        rows = [
            [
                row[0].config.sizes,
                str(row[0].config.sparsity),
                *(_cell(result, one, one == best) for one in row),
            ]
            for row in _rows(result, method)
        ]
        lines += ["", f"## {method}", ""]
        lines += ["| " + " | ".join(row) + " |" for row in (header, ["---:"] * len(header), *rows)]
    return "\n".join(lines) + "\n"


def has_printed(result: SweepResult) -> bool:
    """Whether it is of the training images that the paper cross-validated."""
    name = Path(str(result.options.get("images", ""))).name
    return is_of_the_paper(name, len(result.label_names), result.identity["data"]["n_images"])


def printed(result: SweepResult, one: SettingResult) -> float | None:
    """The paper's accuracy with a setting, in percent; None if it has none on these images."""
    found = validated(one.config) if has_printed(result) else None
    return None if found is None else round(100 * found, 1)


def _cell(result: SweepResult, one: SettingResult, is_best: bool) -> str:
    text = f"**{percent(one)}**" if is_best else percent(one)
    paper = printed(result, one)
    return text if paper is None else f"{text} ({paper:.1f})"


def percent(one: SettingResult) -> str:
    """Mean ± standard deviation, in percent."""
    return f"{100 * one.mean:.2f} ± {100 * one.std:.2f}"


def plot_sweep(result: SweepResult, method: str, low: float) -> Figure:
    """Mean accuracy against the atoms, a line for every (N, K); the axis begins at `low`."""
    grid = result.sweep.grid
    with look.drawing():
        figure = Figure(figsize=(1.25 * look.SIZE[0], 1.2 * look.SIZE[1]), layout="constrained")
        axes = figure.add_subplot()
        for row in _rows(result, method):
            config = row[0].config
            i, j = grid.diameter.index(config.diameter[0]), grid.sparsity.index(config.sparsity)
            points = sorted((one.config.n_atoms, one.mean) for one in row)
            axes.plot(
                *zip(*points, strict=True),
                color=COLOURS[i % len(COLOURS)],
                linestyle=LINES[j % len(LINES)],
                marker=MARKERS[j % len(MARKERS)],
                markersize=4.5,
                linewidth=1.4,
                clip_on=False,
                label=f"N = {config.sizes}, K = {config.sparsity}",
            )
        axes.set(xlabel="atoms per class (M)", ylabel="accuracy", xscale="log")
        ticks = sorted(grid.n_atoms)[:: -(-len(grid.n_atoms) // MOST_TICKS)]
        axes.set_xticks(ticks, [str(n_atoms) for n_atoms in ticks])
        axes.xaxis.set_minor_locator(NullLocator())
        look.set_accuracy_axis(axes, low)
        axes.tick_params(length=0)
        axes.margins(x=0.04)
        figure.legend(loc="outside right upper", fontsize=8.5, borderpad=0)
    return figure


def lowest(result: SweepResult) -> float:
    """Where the axis of all plots begins: a round number below the lowest accuracy."""
    worst = min(one.mean for one in result.results)
    step = next(s for s in (0.01, 0.02, 0.05, 0.1) if 1 - worst <= 5 * s or s == 0.1)
    return max(0.0, 1 - step * (int((1 - worst) / step + 1e-9) + 1))


def _page(result: SweepResult) -> Page:
    methods, index = result.sweep.grid.method, result.results.index
    n_settings, low = len(result.results), lowest(result)
    images = {
        "winner": index(result.winner),
        "winners": [index(best) for best in result.winners.values()],
        "rows": {m: [[index(one) for one in row] for row in _rows(result, m)] for m in methods},
        "accuracy": [percent(one) for one in result.results],
        "caution": CAUTION if len(methods) > 1 else "",
        "paper": [printed(result, one) for one in result.results],
        "beside": BESIDE if has_printed(result) else "",
    }
    return Page(
        "sweep.html",
        f"Sweep of {n_settings} texture {plural(n_settings, 'setting')}",
        {**result.to_dict(), "kind": KIND},
        {method: look.draw(plot_sweep(result, method, low)) for method in methods},
        images,
        {"table.md": sweep_table(result)},
    )


def _rows(result: SweepResult, method: str) -> list[tuple[SettingResult, ...]]:
    """The results of a method, a row by atoms for every diameter and sparsity."""
    found = [one for one in result.results if one.config.method == method]
    n_columns = len(result.sweep.grid.n_atoms)
    return [tuple(found[i : i + n_columns]) for i in range(0, len(found), n_columns)]
