"""The sections on accuracy of a texture report, and the parts that all its sections use.

Every value on the page is marked with where it is from: `data-name` is its place in report.json,
`data-derived` says what it was computed from.
"""

from __future__ import annotations

import html
from typing import Any

from dsc.report.figures import Drawn, themed_url
from dsc.report.numbers import Numbers
from dsc.report.texture_figures import accuracy_axis, cell_strengths
from dsc.texture.config import BINS

STYLE = """
.key { grid-template-columns: repeat(auto-fit, minmax(8.2rem, 1fr)); }
table.facts th { width: 45%; overflow-wrap: anywhere; }
table.words td, table.words th { vertical-align: top; }
table.words { min-width: 34rem; width: 100%; }
table.words tr.group th { font-weight: 600; padding-top: 1.1rem; }
table.words th { font-weight: normal; color: var(--soft); }
tr.ours td { font-weight: 600; } tr.cited td { color: var(--soft); }
.tag { border: 1px solid var(--second); color: var(--second); border-radius: .6rem;
  padding: 0 .45rem; font-size: .78rem; white-space: nowrap; }
table.angles { margin: 1rem 0; } table.angles th:not(:first-child) { text-align: right; }
table.angles td:not(:first-child), table.angles th:not(:first-child) { padding-left: 1rem; }
table.confusion { border-collapse: separate; border-spacing: 0; font-size: .8rem; }
table.confusion th, table.confusion td { padding: 0; border: 0; line-height: 1.2; }
table.confusion td { min-width: 1.85rem; height: 1.85rem; text-align: center;
  border-right: 1px solid var(--line); border-bottom: 1px solid var(--line);
  font-variant-numeric: tabular-nums; }
table.confusion th { font-weight: normal; }
table.confusion td.corner { border-right: 0; }
table.confusion th[scope=col] { vertical-align: bottom;
  border-bottom: 1px solid var(--line); }
table.confusion th[scope=col] span { writing-mode: vertical-rl; transform: rotate(180deg);
  display: inline-block; max-height: 9rem; overflow: hidden; text-overflow: ellipsis;
  white-space: nowrap; padding: .25rem 0 0; }
table.confusion th[scope=row] { position: sticky; left: 0; background: var(--paper);
  text-align: right; padding-right: .5rem; border-right: 1px solid var(--line); }
table.confusion th[scope=row] span { display: inline-block; max-width: 8rem; overflow: hidden;
  text-overflow: ellipsis; white-space: nowrap; vertical-align: middle; }
table.confusion td.right { background:
  color-mix(in srgb, var(--accent) var(--share), var(--paper)); }
table.confusion td.wrong { background:
  color-mix(in srgb, var(--second) var(--share), var(--paper)); font-weight: 600; }
.legend-box { display: inline-block; width: .8em; height: .8em; border-radius: .15em;
  margin-right: .35em; }
"""


def derived(source: str, text: str) -> str:
    """Text that is not in report.json itself, marked with what it was computed from."""
    return f'<span data-derived="{html.escape(source)}">{html.escape(text)}</span>'


def plot(drawn: Drawn, text: str) -> str:
    """Line art that changes its colours in the dark."""
    image = f'<img alt="{html.escape(text)}" src="{themed_url(drawn)}">'
    return f'<figure class="plot">{image}</figure>'


def facts_table(caption: str, rows: list[tuple[str, str]]) -> str:
    """Names and values; the values are HTML."""
    body = "".join(f"<tr><th>{html.escape(name)}</th><td>{value}</td></tr>" for name, value in rows)
    return f'<table class="facts"><caption>{html.escape(caption)}</caption>{body}</table>'


def scroll(table: str, what: str) -> str:
    """A table that scrolls by itself where the page is too narrow."""
    text = html.escape(what)
    return f'<div class="scroll" tabindex="0" role="region" aria-label="{text}">{table}</div>'


def plural(show: Numbers, name: str, word: str, value: int) -> str:
    """A number of things."""
    return f"{show(name, ',')} {word}{'' if value == 1 else 's'}"


def lead(show: Numbers) -> str:
    """What it is, and how it came out, in two sentences."""
    facts = show.facts
    right = sum(row[i] for i, row in enumerate(facts["confusion"]))
    n_labels = len(facts["label_names"])
    return (
        f"<p>{derived('confusion', f'{right:,}')} of "
        f"{plural(show, 'n_test', 'test picture', facts['n_test'])} of {show('suite')} are "
        f"recognised ({show('accuracy', '.2%')}). Each of the "
        f"{derived('label_names', f'{n_labels:,}')} classes has a dictionary "
        f"(<code>{show('config.method')}</code>), learned from "
        f"{plural(show, 'n_train', 'training picture', facts['n_train'])}; every patch of a "
        "picture is labelled with the class whose dictionary codes it best, and a picture is given "
        "the class of the training picture with the nearest histogram of "
        f"{derived('config.histogram', BINS[facts['config']['histogram']])}.</p>"
        f'<p class="note">Data: {show("data")}</p>'
    )


def key_figures(show: Numbers) -> str:
    """The line of large numbers at the top."""
    facts = show.facts
    entries = [
        ("accuracy", show("accuracy", ".2%")),
        ("test pictures", show("n_test", ",")),
        ("classes", derived("label_names", f"{len(facts['label_names']):,}")),
        ("patches labelled", show("n_patches_labelled", ",")),
        ("patches per second", show("patches_per_second", ",.0f")),
    ]
    if facts["pruned"] is not None:
        entries.append(("pairs of atom and patch pruned", show("pruned", ".1%")))
    seconds = facts["seconds"]["total"]
    if seconds < 100:
        entries.append(("seconds in all", show("seconds.total", ".1f")))
    else:
        entries.append(("minutes in all", derived("seconds.total", f"{seconds / 60:,.1f}")))
    cells = "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in entries)
    return f'<dl class="key">{cells}</dl>'


def angles(show: Numbers, drawn: Drawn | None) -> str:
    """Accuracy by angle: a plot, and the same as a table."""
    heading = "<h2>Accuracy by angle</h2>"
    by_angle = show.facts["accuracy_by_angle"]
    if drawn is None:
        return heading + (
            '<p class="note">The angles of the test pictures are not known: the suite does not '
            "tell them.</p>"
        )
    low = accuracy_axis(by_angle)
    span = f"{low:.0%}".replace("%", " %"), "100 %"
    first = derived("accuracy_by_angle", span[0])
    begin = "The axis begins at zero" if low == 0 else f"The axis begins at {first}, not at zero"
    left = (
        plot(drawn, f"accuracy at each angle, on an axis from {span[0]} to {span[1]}")
        + f'<p class="note">{begin}, and ends at {derived("accuracy_by_angle", span[1])}. Bars '
        "hang from the top: their length is the share of pictures that are not recognised. "
        "The dashed line is the accuracy over all angles.</p>"
    )
    rows = "".join(_angle_row(show, i, one) for i, one in enumerate(by_angle))
    table = (
        '<table class="angles"><tr><th scope="col">angle</th><th scope="col">pictures</th>'
        f'<th scope="col">wrong</th><th scope="col">accuracy</th></tr>{rows}</table>'
    )
    return f'{heading}<div class="pair"><div>{left}</div><div>{table}</div></div>'


def _angle_row(show: Numbers, i: int, one: dict[str, Any]) -> str:
    name = f"accuracy_by_angle.{i}"
    wrong = derived(name, f"{round(one['n'] * (1 - one['accuracy'])):,}")
    cells = (show(f"{name}.n", ","), wrong, show(f"{name}.accuracy", ".2%"))
    numbers = "".join(f'<td class="number">{cell}</td>' for cell in cells)
    return f"<tr><td>{show(f'{name}.angle', 'g')}°</td>{numbers}</tr>"


GROUPS = {
    "ours": "This run",
    "compared": "Also run here, on the same pictures",
    "cited": "Cited, not run here",
}


def method_group(methods: list[dict[str, Any]], i: int) -> str:
    """Which part of the table a method is in: the first is ours, cited ones say so.

    Examples
    --------
    >>> rows = [{"source": "this run"}, {"source": "scikit-image"}, {"source": "a paper: cited"}]
    >>> [method_group(rows, i) for i in range(3)]
    ['ours', 'compared', 'cited']
    """
    if "cited" in methods[i]["source"].lower():
        return "cited"
    return "ours" if i == 0 else "compared"


def methods(show: Numbers) -> str:
    """Accuracy of this run beside that of others, run here or cited."""
    rows = show.facts["methods"]
    parts = []
    for group, title in GROUPS.items():
        inside = [i for i in range(len(rows)) if method_group(rows, i) == group]
        if inside:
            parts.append(f'<tr class="group"><th colspan="4">{title}</th></tr>')
            parts += [_method_row(show, i, group) for i in inside]
    table = (
        '<table class="words"><tr><th scope="col">method</th><th scope="col">accuracy</th>'
        f'<th scope="col">setting</th><th scope="col">source</th></tr>{"".join(parts)}</table>'
    )
    note = ""
    if any(method_group(rows, i) == "cited" for i in range(len(rows))):
        note = (
            '<p class="note">Cited accuracies were not measured here; those on another data set '
            "are not to be compared digit by digit.</p>"
        )
    scrolled = scroll(table, "accuracy of this run and of others")
    return f"<h2>Beside other methods</h2>{scrolled}{note}"


def _method_row(show: Numbers, i: int, group: str) -> str:
    row = show.facts["methods"][i]
    setting = show(f"methods.{i}.setting") if row.get("setting") else ""
    known = row.get("accuracy") is not None
    accuracy = show(f"methods.{i}.accuracy", ".2%") if known else "not given"
    tags = ""
    if group == "cited":
        tags = ' <span class="tag">cited</span>'
        if show.facts["suite"].lower() not in row["source"].lower():
            tags += ' <span class="tag">another data set</span>'
    return (
        f'<tr class="{group}"><td>{show(f"methods.{i}.method")}{tags}</td>'
        f'<td class="whole">{accuracy}</td><td>{setting}</td>'
        f"<td>{show(f'methods.{i}.source')}</td></tr>"
    )


def confusion(show: Numbers) -> str:
    """Counts of true and predicted classes, as a table that is a heat map."""
    names = show.facts["label_names"]
    strengths = cell_strengths(show.facts["confusion"])
    head = "".join(
        f'<th scope="col" title="{html.escape(name)}">{show(f"label_names.{i}")}</th>'
        for i, name in enumerate(names)
    )
    body = "".join(
        f'<tr><th scope="row" title="{html.escape(name)}">{show(f"label_names.{i}")}</th>'
        + "".join(_cell(show, i, j, float(strengths[i, j])) for j in range(len(names)))
        + "</tr>"
        for i, name in enumerate(names)
    )
    table = f'<table class="confusion"><tr><td class="corner"></td>{head}</tr>{body}</table>'
    return (
        "<h2>Confusion matrix</h2>"
        '<p class="note">Test pictures: true class in the row, predicted class in the column. '
        '<span class="whole"><span class="legend-box" style="background: var(--accent)"></span>'
        'right,</span> <span class="whole"><span class="legend-box" style="background: '
        'var(--second)"></span>wrong;</span> the stronger, the larger the share of the row. Empty '
        "cells are zero.</p>" + scroll(table, "confusion matrix")
    )


def _cell(show: Numbers, i: int, j: int, strength: float) -> str:
    count = show.facts["confusion"][i][j]
    if not count:
        return "<td></td>"
    kind = "right" if i == j else "wrong"
    names = show.facts["label_names"]
    title = html.escape(f"{names[i]} taken for {names[j]}: {count:,}")
    return (
        f'<td class="{kind}" style="--share: {100 * strength:.0f}%" title="{title}">'
        f"{show(f'confusion.{i}.{j}')}</td>"
    )
