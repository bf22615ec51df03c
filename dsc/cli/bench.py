"""`dsc bench`."""

from __future__ import annotations

import click

from dsc.bench import run_bench
from dsc.cli.options import answer, json_option, say


@click.command()
@click.option("--quick", is_flag=True, help="Fewer patches: under 20 seconds.")
@click.option(
    "--extraction", is_flag=True, help="Patches of a large image, by one and two threads."
)
@click.option("--labelling", is_flag=True, help="Labels of patches, against a plain search.")
@click.option("--overhead", is_flag=True, help="What limits a cluster of many workers.")
@click.option("--system", is_flag=True, help="Threads, Dask overhead, and the whole of *net*.")
@click.option("--scale", is_flag=True, help="Memory at 1 and 20 million patches (minutes).")
@json_option
def bench(quick: bool, as_json: bool, **asked: bool) -> None:
    """Time rotational coding and learning against other implementations."""
    which = next((name for name, is_asked in asked.items() if is_asked), "coding")
    summary = run_bench(which, quick, lambda text: say(text, as_json))
    if as_json:
        answer(summary, as_json)
