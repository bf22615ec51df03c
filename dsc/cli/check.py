"""`dsc check`."""

from __future__ import annotations

import click

import dsc
from dsc.cli.options import answer, json_option


@click.command()
@click.argument("path")
@json_option
@click.pass_context
def check(ctx: click.Context, path: str, as_json: bool) -> None:
    """Read a store or a run folder whole, and list all that is bad; exit code 1 if anything is."""
    found = dsc.check(path)
    last = f"{found.kind}, {found.n_checked:,} files and records read: "
    last += f"{len(found.bad)} bad" if found.bad else "all good"
    lines = [*(f"bad: {text}" for text in found.bad), *(f"saved: {text}" for text in found.saved)]
    answer(found.to_dict(), as_json, *lines, f"{path}: {last}")
    ctx.exit(0 if found.good else 1)
