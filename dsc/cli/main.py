"""`dsc`: all commands, each imported when it is asked for."""

from __future__ import annotations

import importlib
from typing import Any

import click

from dsc.errors import DscError
from dsc.version import __version__

COMMANDS = {  # name → module, and what the help says
    "bench": ("bench", "Time rotational coding and learning against other implementations."),
    "demo": ("demo", "Show what it does, on pictures that come with scikit-image."),
    "encode": ("dictionary", "Code the patch set PATCHES with a learned dictionary."),
    "experiment": ("experiment", "Reproduce a figure or table of the paper."),
    "info": ("dictionary", "Say what is in a patch set, a model, codes, or a run folder."),
    "learn": ("dictionary", "Learn a dictionary from the patch set PATCHES."),
    "patches": ("patches", "Cut patches out of PICTURES (files, folders, globs)."),
    "reconstruct": ("dictionary", "Rebuild PICTURE from its coded patches."),
    "report": ("report", "Make a page about the finished run RUN."),
    "texture": ("texture", "Tell textures apart: fit, predict, evaluate, sweep."),
    "watch": ("watch", "Serve a live page of the run folder RUN."),
}


class Program(click.Group):
    """The group of all commands; a `DscError` becomes one message and exit code 2."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Names of all commands."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The command of this name."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"dsc.cli.{COMMANDS[cmd_name][0]}")
        command: click.Command = getattr(module, cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except DscError as error:
            click.echo(f"dsc: {error}", err=True)
            ctx.exit(2)


@click.group(
    cls=Program,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="dsc")
def main() -> None:
    """Learn dictionaries of image atoms that may appear in any orientation."""
