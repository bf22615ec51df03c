"""`dsc demo`."""

from __future__ import annotations

import click

from dsc.cli.options import answer, json_option, say
from dsc.files import local_path
from dsc.show import Terminal


@click.command()
@click.option("--out", "-o", default="dsc-demo", show_default=True, help="Folder to make.")
@json_option
def demo(out: str, as_json: bool) -> None:
    """Show what it does, on images that come with scikit-image: under a minute, no download."""
    from dsc.experiments import run_demo
    from dsc.report import closing_words, write_demo

    made = run_demo(local_path(out), lambda text: say(text, as_json), Terminal(lines_of=()))
    summary = write_demo(made)
    say(closing_words(made), as_json)
    if as_json:
        answer(summary, as_json)
