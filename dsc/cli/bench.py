"""`dsc bench`."""

from __future__ import annotations

import click

from dsc.bench import run_bench
from dsc.cli.options import answer, json_option
from dsc.errors import DscError


@click.command()
@click.option("--quick", is_flag=True, help="Fewer patches: under 20 seconds.")
@click.option("--system", is_flag=True, help="Threads, Dask overhead, and the whole of *net*.")
@click.option("--scale", is_flag=True, help="Memory at 1 and at 20 million patches (minutes).")
@json_option
def bench(quick: bool, system: bool, scale: bool, as_json: bool) -> None:
    """Time rotational coding and learning against other implementations."""
    if quick and scale:
        raise DscError("quick and scale: found both; memory at scale has no quick version")
    summary, text = run_bench("scale" if scale else "system" if system else "coding", quick)
    answer(summary, as_json, text)
