"""`dsc experiment`: parse, run, write, print."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from dsc.cli.options import answer, json_option, say
from dsc.errors import DscError
from dsc.experiments import (
    CHOICES,
    EXPERIMENTS,
    Options,
    Result,
    check_options,
    find_experiment,
    run_experiment,
)
from dsc.files import local_path
from dsc.report import check_free, write_result, write_summary


@click.command()
@click.argument("name", required=False, metavar="[NAME|all]")
@click.option("--list", "listing", is_flag=True, help="Say what each experiment is; run nothing.")
@click.option("--quick", is_flag=True, help="A reduced version that takes seconds.")
@click.option("--dense", is_flag=True, help="Twice the points on the curves of cameraman and net.")
@click.option(
    "--data",
    type=click.Choice(CHOICES),
    default="auto",
    show_default=True,
    help="auto: what each experiment needs; paper: the images in DSC_DATA; cc0, synthetic: free "
    "images in their place.",
)
@click.option("--out", "-o", default="dsc-experiments", show_default=True, help="Folder to fill.")
@json_option
def experiment(name: str | None, listing: bool, out: str, as_json: bool, **options: Any) -> None:
    """Reproduce a figure or table of the paper: data, run, figures, table, page."""
    if listing:
        described = describe_all()
        text = "\n\n".join(_describe(about) for about in described)
        answer({"experiments": described}, as_json, text)
        return
    if name is None:
        known = ", ".join([*EXPERIMENTS, "all"])
        raise DscError(f"experiment: found no name, need one of {known}; --list describes them")
    results = run_and_write(name, Options(**options), local_path(out), as_json)
    if as_json:
        answer({"out": out, "experiments": [r.to_dict() for r in results]}, as_json)


def describe_all() -> list[dict[str, Any]]:
    """What each experiment is, in plain values."""
    shown = ("name", "title", "paper", "ours", "needs", "duration")
    return [{key: getattr(about, key) for key in shown} for about in EXPERIMENTS.values()]


def _describe(about: dict[str, Any]) -> str:
    lines = {"paper": "the paper", "ours": "ours", "needs": "data", "duration": "takes"}
    text = "\n".join(f"  {label:<10} {about[key]}" for key, label in lines.items())
    return f"{about['name']}: {about['title']}\n{text}"


def run_and_write(name: str, options: Options, folder: Path, as_json: bool) -> list[Result]:
    """Run one experiment, or all of them with a summary, and write the folder."""
    names = list(EXPERIMENTS) if name == "all" else [find_experiment(name).name]
    check_options(names, options)
    check_free(folder, names)
    results = []
    for one in names:
        say(f"{one}: {EXPERIMENTS[one].title}", as_json)
        result = run_experiment(one, _for(one, options))
        written = write_result(result, folder)
        for finding in result.findings:
            say(f"  {'✓' if finding.holds else '✗'} {finding.sentence}", as_json)
        page = written / "index.html"
        say(f"  data: {result.data}; {result.seconds:.1f} s; look at {page}", as_json)
        results.append(result)
    if name == "all":
        write_summary(results, folder)
        say(f"summary in {folder / 'summary.md'}, pages from {folder / 'index.html'}", as_json)
    return results


def _for(name: str, options: Options) -> Options:
    """Options of one among all: denser curves only where there are any."""
    return Options(**{**asdict(options), "dense": options.dense and EXPERIMENTS[name].has_dense})
