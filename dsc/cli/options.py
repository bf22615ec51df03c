"""What the commands share: options made from configuration classes, messages, TOML."""

from __future__ import annotations

import dataclasses
import json
import typing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from dsc.errors import DscError, unknown_choice
from dsc.files import from_toml

Command = Callable[..., Any]
ENGINE = ("scheduler", "n_workers", "memory_limit")

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object on stdout, nothing else."
)
overwrite_option = click.option(
    "--overwrite", is_flag=True, help="Start over in RUN, removing what an earlier run wrote."
)
out_option = click.option(
    "--out", "-o", required=True, help="The path to write; must not exist yet.", metavar="PATH"
)


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


def engine_options(command: Command) -> Command:
    """What to run on: `--scheduler`, `--n-workers`, `--memory-limit`."""
    command = click.option(
        "--memory-limit", help="Memory that may be used, such as 1GB; by default the machine's."
    )(command)
    command = click.option(
        "--n-workers", type=click.IntRange(1), help="Threads or processes; by default the cores."
    )(command)
    return click.option(
        "--scheduler",
        default="threads",
        show_default=True,
        help="threads, processes, synchronous, tcp://HOST:PORT, or a scheduler file.",
    )(command)


def run_options(command: Command) -> Command:
    """`--out`, `--resume`, `--overwrite` of a run folder."""
    command = overwrite_option(command)
    command = click.option("--resume", is_flag=True, help="Continue what is unfinished in RUN.")(
        command
    )
    return click.option("--out", "-o", required=True, help="Run folder to make.", metavar="RUN")(
        command
    )


def take(options: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """Some of the options, which are no longer among the others then."""
    return {name: options.pop(name) for name in names}


@contextmanager
def resumable(out: str) -> Iterator[None]:
    """Turn Ctrl-C into a message that says how to continue."""
    try:
        yield
    except KeyboardInterrupt:
        click.echo(f"\ninterrupted: repeat the command with --resume to continue {out}", err=True)
        raise SystemExit(1) from None


def say(text: str, as_json: bool = False) -> None:
    """Print for people: on stdout, or on stderr if stdout is for JSON."""
    click.echo(text, err=as_json)


def print_json(summary: dict[str, Any]) -> None:
    """Print the machine-readable summary."""
    click.echo(json.dumps(summary))
