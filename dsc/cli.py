"""The `dsc` command: parse, call one library function, print."""

from __future__ import annotations

import json

import click

import dsc


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(dsc.__version__, prog_name="dsc")
def main() -> None:
    """Learn dictionaries of image atoms that may appear in any orientation."""


@main.command()
@click.option("--quick", is_flag=True, help="Fewer patches: under 20 seconds.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def bench(quick: bool, as_json: bool) -> None:
    """Time rotational coding and learning against other implementations."""
    from dsc.bench.coding import bench_coding, format_summary

    summary = bench_coding(quick=quick)
    click.echo(json.dumps(summary, indent=2) if as_json else format_summary(summary))
