"""Results on disk: JSON, a table, figures, and a page that opens without a server."""

from __future__ import annotations

import html
import json
from pathlib import Path
from typing import Any

from dsc.errors import DscError
from dsc.experiments.result import Finding, Result
from dsc.report.page import figure_tag, page, table_tag

SUMMARY_HEADER = ("experiment", "claim", "ours", "holds", "remark")


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
    out.mkdir(parents=True)
    for name, drawing in result.drawings.items():
        drawing.figure.savefig(out / f"{name}.png", facecolor="white")
        drawing.figure.savefig(out / f"{name}.svg", transparent=True)
    (out / "table.md").write_text(_table_file(result), encoding="utf-8")
    (out / "index.html").write_text(_page(result), encoding="utf-8")
    text = json.dumps(result.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)
    (out / "result.json").write_text(text + "\n", encoding="utf-8")
    return out


def write_summary(results: list[Result], folder: Path) -> str:
    """Write FOLDER/summary.md, summary.json and index.html; returns the table in markdown."""
    rows = [row for result in results for row in summary_rows(result)]
    text = markdown_table(SUMMARY_HEADER, rows)
    about = "\n".join(f"- {r.name}: {r.data}; {_mode(r)}, {r.seconds:.0f} s" for r in results)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "summary.md").write_text(f"{text}\n\nData:\n\n{about}\n", encoding="utf-8")
    values = {"experiments": [result.to_dict() for result in results]}
    encoded = json.dumps(values, indent=2, ensure_ascii=False, allow_nan=False)
    (folder / "summary.json").write_text(encoded + "\n", encoding="utf-8")
    links = "".join(
        f'<li><a href="{r.name}/index.html">{html.escape(r.title)}</a>: {html.escape(r.data)}</li>'
        for r in results
    )
    body = [f"<ul>{links}</ul>", _text_table(SUMMARY_HEADER, rows)]
    (folder / "index.html").write_text(page("Experiments of dsc", body), encoding="utf-8")
    return text


def summary_rows(result: Result) -> list[tuple[str, ...]]:
    """One row for each finding of a result."""
    return [
        (result.name, _claim(finding), finding.ours, "yes" if finding.holds else "no", finding.why)
        for finding in result.findings
    ]


def markdown_table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """A table in markdown."""
    lines = [header, ("---",) * len(header), *rows]
    cells = [[cell.replace("|", "\\|") for cell in line] for line in lines]
    return "\n".join("| " + " | ".join(line) + " |" for line in cells)


def _claim(finding: Finding) -> str:
    who = "the paper" if finding.by == "paper" else "we"
    return f"{who}: {finding.claim}"


def _mode(result: Result) -> str:
    return "quick version" if result.quick else "full version"


def _table_file(result: Result) -> str:
    table = markdown_table(result.header, list(result.rows))
    findings = "\n".join(f"- {finding.sentence}" for finding in result.findings)
    notes = "\n\n".join(result.notes)
    about = f"Data: {result.data} ({_mode(result)})"
    return f"# {result.title}\n\n{about}\n\n{findings}\n\n{table}\n\n{notes}\n"


def _page(result: Result) -> str:
    mark: dict[bool, str] = {True: "✓", False: "✗"}
    findings = "".join(
        f"<li>{mark[f.holds]} {html.escape(f.sentence)}</li>" for f in result.findings
    )
    about = f"Data: {result.data}. {_mode(result).capitalize()}, {result.seconds:.1f} s."
    body: list[Any] = [f'<p class="note">{html.escape(about)}</p>', f"<ul>{findings}</ul>"]
    body += [figure_tag(d.figure, d.caption, plot=d.plot) for d in result.drawings.values()]
    body.append(table_tag(list(result.header), [list(row) for row in result.rows]))
    body += [f'<p class="note">{html.escape(note)}</p>' for note in result.notes]
    return page(result.title, body)


def _text_table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """A table of words (those of the page module are right-aligned numbers)."""
    head = "".join(f"<th>{html.escape(cell)}</th>" for cell in header)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f'<div class="scroll"><table><tr>{head}</tr>{body}</table></div>'
