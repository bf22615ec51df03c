"""`dsc`: all commands, each imported when it is asked for."""

from __future__ import annotations

import errno
import importlib
import shutil
from pathlib import Path
from typing import Any

import click

from dsc.cli.signals import left_at_once, own_process, raised_signals, tell
from dsc.errors import DscError, printable, readable
from dsc.version import __version__

COMMANDS = {  # name → module, and what the help says
    "bench": ("bench", "Time rotational coding and learning against other implementations."),
    "check": ("check", "Read a store or a run folder whole, and list all that is bad."),
    "demo": ("demo", "Show what it does, on images that come with scikit-image."),
    "denoise": ("images", "Remove white noise from IMAGE."),
    "encode": ("dictionary", "Code the patch set PATCHES with a learned dictionary."),
    "experiment": ("experiment", "Reproduce a figure or table of the paper."),
    "features": ("images", "Map which atoms are at work around each pixel of IMAGE."),
    "info": ("dictionary", "Say what is in a patch set, a model, codes, or a run folder."),
    "inpaint": ("images", "Fill the missing pixels of IMAGE."),
    "learn": ("dictionary", "Learn a dictionary from PATCHES, or from images."),
    "orientation": ("images", "Map which way structures run at each pixel of IMAGE."),
    "patches": ("patches", "Cut patches out of IMAGES (files, folders, globs)."),
    "reconstruct": ("images", "Rebuild IMAGE from its coded patches."),
    "report": ("report", "Make a page about the finished run RUN."),
    "texture": ("texture", "Tell textures apart: fit, predict, map, evaluate, sweep."),
    "watch": ("watch", "Serve a live page of the run folder RUN."),
}


class Program(click.Group):
    """The group of all commands; what goes wrong becomes one message and an exit code.

    2 for a `DscError` and for what a file system refuses, 130 for Ctrl-C, 143 for SIGTERM.
    """

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Run the program, which this process is for."""
        own_process()
        return super().__call__(*args, **options)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Names of all commands."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The command of this name."""
        if cmd_name not in COMMANDS:
            return None
        with left_at_once():
            module = importlib.import_module(f"dsc.cli.{COMMANDS[cmd_name][0]}")
        command: click.Command = getattr(module, cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; SIGTERM ends it as Ctrl-C does, with another code."""
        try:
            with raised_signals():
                return super().invoke(ctx)
        except DscError as error:
            click.echo(printable(f"dsc: {error}"), err=True)
            ctx.exit(2)
        except BrokenPipeError:
            raise
        except OSError as error:
            click.echo(printable(f"dsc: {os_problem(error)}"), err=True)
            ctx.exit(2)
        except KeyboardInterrupt as interrupt:
            raise SystemExit(tell(interrupt)) from None


def os_problem(error: OSError) -> str:
    """What a file system refused, in one line, and what to do about it."""
    place = Path(str(error.filename or "."))
    name = f"{place}: " if error.filename else ""
    notes = "".join(f" ({note})" for note in getattr(error, "__notes__", ()))
    text = " ".join((error.strerror or str(error) or type(error).__name__).split())
    if error.errno not in (errno.ENOSPC, errno.EDQUOT):
        return f"{name}{text}{notes}"
    while not place.exists():
        place = place.parent
    free = readable(shutil.disk_usage(place).free)
    return (
        f"{name}{text}{notes}: {free} are free there: make room, then repeat the command, with "
        "--resume if it has it"
    )


@click.group(
    cls=Program,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="dsc")
def main() -> None:
    """Learn dictionaries of image atoms that may appear in any orientation."""
