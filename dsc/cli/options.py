"""What the commands share: options made from configuration classes, progress, errors, TOML."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import json
import sys
import time
import typing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from dsc.dictionary.run import from_toml
from dsc.engine.plan import readable
from dsc.errors import DscError, unknown_choice

Command = Callable[..., Any]


class Program(click.Group):
    """A group whose commands turn a `DscError` into one message and exit code 2.

    The commands in `elsewhere` (name: module:function) are imported when they are asked for.
    """

    def __init__(self, *args: Any, elsewhere: dict[str, str] | None = None, **options: Any) -> None:
        super().__init__(*args, **options)
        self.elsewhere = elsewhere or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of all commands."""
        return sorted([*super().list_commands(ctx), *self.elsewhere])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name."""
        if cmd_name not in self.elsewhere:
            return super().get_command(ctx, cmd_name)
        module, _, function = self.elsewhere[cmd_name].partition(":")
        command: click.Command = getattr(importlib.import_module(module), function)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except DscError as error:
            click.echo(f"dsc: {error}", err=True)
            ctx.exit(2)


def options_of(config: type, skip: tuple[str, ...] = ()) -> Callable[[Command], Command]:
    """One option per field of a configuration dataclass, with its default, help and choices."""
    hints = typing.get_type_hints(config)

    def decorate(command: Command) -> Command:
        for field in reversed(dataclasses.fields(config)):
            if field.name not in skip:
                command = _option(field, hints[field.name])(command)
        return command

    return decorate


def _option(field: dataclasses.Field[Any], hint: Any) -> Callable[[Command], Command]:
    kinds = [kind for kind in typing.get_args(hint) if kind is not type(None)] or [hint]
    kind = kinds[0]
    name = "--" + field.name.replace("_", "-")
    text = field.metadata.get("help", "")
    choices = field.metadata.get("choices") or ()
    if hint is bool:
        return click.option(name, is_flag=True, default=field.default, help=text)
    if typing.get_origin(hint) is tuple:
        return click.option(name, multiple=True, type=kind, default=field.default, help=text)
    return click.option(
        name,
        type=click.Choice(choices) if choices else kind,
        default=field.default,
        show_default=field.default is not None,
        help=text,
    )


def config_option(command: Command) -> Command:
    """`--config FILE`: options from a TOML file, which those on the command line override."""

    def load(ctx: click.Context, _: click.Parameter, value: str | None) -> None:
        if value is None:
            return
        options = from_toml(Path(value))
        known = [name for p in ctx.command.params if (name := p.name) and name != "config"]
        wrong = [name for name in options if name not in known]
        if wrong:
            raise DscError("\n".join(str(unknown_choice(value, name, known)) for name in wrong))
        ctx.default_map = {**(ctx.default_map or {}), **options}

    return click.option(
        "--config",
        type=click.Path(exists=True, dir_okay=False),
        is_eager=True,
        expose_value=False,
        callback=load,
        help="A TOML file with options, such as the run.toml of a run folder.",
    )(command)


def json_option(command: Command) -> Command:
    """`--json`: one machine-readable object on stdout and nothing else there."""
    return click.option(
        "--json", "as_json", is_flag=True, help="Print one JSON object on stdout, nothing else."
    )(command)


def overwrite_option(command: Command) -> Command:
    """`--overwrite`: start over in a folder that holds another run."""
    return click.option(
        "--overwrite", is_flag=True, help="Start over in RUN, removing what an earlier run wrote."
    )(command)


def engine_options(command: Command) -> Command:
    """Where to run: `--scheduler`, `--n-workers`, `--memory-limit`, which come as one `where`."""

    @functools.wraps(command)
    def run(
        *, scheduler: str, n_workers: int | None, memory_limit: str | None, **options: Any
    ) -> Any:
        where = {"scheduler": scheduler, "n_workers": n_workers, "memory_limit": memory_limit}
        return command(where=where, **options)

    run = click.option(
        "--memory-limit", help="Memory that may be used, such as 1GB; by default the machine's."
    )(run)
    run = click.option(
        "--n-workers", type=click.IntRange(1), help="Threads or processes; by default the cores."
    )(run)
    return click.option(
        "--scheduler",
        default="threads",
        show_default=True,
        help="threads, processes, synchronous, tcp://HOST:PORT, or a scheduler file.",
    )(run)


@contextmanager
def resumable(out: str) -> Iterator[None]:
    """Turn Ctrl-C into a message that says how to continue."""
    try:
        yield
    except KeyboardInterrupt:
        click.echo(f"\ninterrupted: repeat the command with --resume to continue {out}", err=True)
        raise SystemExit(1) from None


def say(text: str, as_json: bool = False) -> None:
    """Print for people: on stdout, or on stderr where stdout is for JSON."""
    click.echo(text, err=as_json)


def print_json(summary: dict[str, Any]) -> None:
    """Print the machine-readable summary."""
    click.echo(json.dumps(summary))


def describe_plan(plan: dict[str, Any]) -> str:
    """The plan of `dsc learn --plan` for people."""
    coords = readable(plan["coords_bytes"])
    kept = "kept in memory" if plan["keep_coords"] else "streamed anew in every iteration"
    lines = {
        "patches": f"{plan['n_patches']:,}, in blocks of {plan['block']:,}",
        "leaves": f"{plan['n_leaves']:,} of {plan['leaf_size']:,} patches",
        "tasks": f"{plan['n_tasks']} over the patches, {plan['graph_size']} in the graph of one "
        f"iteration, on {plan['n_threads']} threads",
        "statistics": readable(plan["statistics_bytes"]),
        "memory of a task": f"{readable(plan['task_bytes'])} of {readable(plan['memory'])} for all",
        "coordinates": f"{coords}, {kept}",
        "estimated time": f"{plan['seconds']:.1f} s",
    }
    return "\n".join(f"{name:<18} {text}" for name, text in lines.items())


class IterationProgress:
    """Reports iterations on stderr: one line that is rewritten on a terminal, else a line each."""

    def __init__(self) -> None:
        self.terminal = sys.stderr.isatty()
        self.began = time.perf_counter()
        self.n_seen = 0

    def __call__(self, event: dict[str, Any]) -> None:
        """Show one event of `dsc.learn`."""
        self.n_seen += 1
        n_passes = event["n_iterations"] + 1
        done = n_passes if event["finished"] else event["iteration"]
        left = max(0, n_passes - done) * (time.perf_counter() - self.began) / self.n_seen
        what = "final pass" if event["finished"] else f"iteration {event['iteration']}"
        text = (
            f"{what} of {event['n_iterations']}: mse {event['mse']:.6g}, "
            f"{event['patches_per_second']:,.0f} patches/s, {left:.0f} s left"
        )
        show_progress(done / n_passes, text, event["finished"])


def show_progress(fraction: float, text: str, finished: bool) -> None:
    """One line on stderr: with a bar and rewritten on a terminal, else a line each."""
    if not sys.stderr.isatty():
        click.echo(text, err=True)
        return
    width = 24
    filled = round(width * fraction)
    bar = "█" * filled + "░" * (width - filled)
    end = "\n" if finished else ""
    click.echo(f"\r\x1b[2K{bar} {text}{end}", nl=False, err=True)
