"""`dsc report`."""

from __future__ import annotations

import json
from pathlib import Path

import click


@click.command()
@click.argument("run", metavar="RUN")
@click.option(
    "--out",
    "-o",
    metavar="FILE",
    help="The HTML file; by default RUN/report/index.html. Plots and numbers go beside it.",
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object on stdout, nothing else."
)
def report(run: str, out: str | None, as_json: bool) -> None:
    """Make a page about the finished run RUN: one HTML file, with its plots beside it."""
    from dsc.report import write_report

    facts = write_report(run, out)
    where = Path(run) / "report" / "index.html" if out is None else Path(out)
    if as_json:
        click.echo(json.dumps({"out": str(where), **facts}))
    else:
        click.echo(f"look at {where}")
