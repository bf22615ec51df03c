"""`dsc report`."""

from __future__ import annotations

import click

from dsc.cli.options import answer, json_option
from dsc.files import local_path


@click.command()
@click.argument("run", metavar="RUN")
@click.option(
    "--out",
    "-o",
    metavar="FILE",
    help="The HTML file; by default RUN/report/index.html. Plots and numbers go beside it.",
)
@json_option
def report(run: str, out: str | None, as_json: bool) -> None:
    """Make a page about the finished run RUN: one HTML file, with its plots beside it."""
    from dsc.report import write_report

    folder, file = local_path(run), None if out is None else local_path(out)
    facts = write_report(run, file)
    path = folder / "report" / "index.html" if file is None else file
    answer({"out": str(path), **facts}, as_json, f"look at {path}")
