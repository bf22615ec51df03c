"""What the commands share: options made from configuration classes, messages, TOML."""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import shlex
import typing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from dsc.errors import DscError, printable, unknown_choice
from dsc.files import from_toml, local_path

Command = Callable[..., Any]
Decorator = Callable[[Command], Command]
ENGINE = ("scheduler", "n_workers", "memory_limit", "patience", "tls")
TOML_TYPES: dict[str, Any] = {"integer": int, "float": (int, float), "boolean": bool, "choice": str}
TOML_TYPES["text"] = (str, int, float)
LONGEST = 60  # characters of a value in an error


def stacked(*options: Decorator) -> Decorator:
    """Options as one decorator, in the order in which the help shows them."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object on stdout, nothing else."
)
out_option = click.option(
    "--out", "-o", required=True, help="The path to write; must not exist yet.", metavar="PATH"
)
run_options = stacked(
    click.option("--out", "-o", required=True, help="Run folder to make.", metavar="RUN"),
    click.option("--resume", is_flag=True, help="Continue what is unfinished in RUN."),
    click.option(
        "--overwrite", is_flag=True, help="Start over in RUN, removing what an earlier run wrote."
    ),
)


def _tls_option(name: str, text: str) -> Decorator:
    """One of the files that together are the option `tls` of an engine."""

    def gather(ctx: click.Context, _: click.Parameter, value: str | None) -> None:
        files = ctx.params.get("tls") or {}
        ctx.params["tls"] = {**files, **({name: value} if value else {})} or None

    return click.option(
        f"--tls-{name}", metavar="FILE", expose_value=False, callback=gather, help=text
    )


engine_options = stacked(
    click.option(
        "--scheduler",
        default="threads",
        show_default=True,
        help="threads, processes, synchronous, tcp:// or tls://HOST:PORT, or a scheduler file.",
    ),
    click.option(
        "--n-workers", type=click.IntRange(1), help="Threads or processes; by default the cores."
    ),
    click.option(
        "--memory-limit", help="Memory that may be used, such as 1GB; by default the machine's."
    ),
    click.option(
        "--patience",
        type=click.FloatRange(0, min_open=True),
        default=300.0,
        show_default=True,
        help="Seconds to wait for the workers of a cluster when none answers.",
    ),
    _tls_option("ca", "Authority of the cluster's certificates (PEM), for tls://."),
    _tls_option("cert", "Our certificate (PEM)."),
    _tls_option("key", "The key of our certificate (PEM)."),
)


def options_of(config: type, skip: tuple[str, ...] = (), given: bool = False) -> Decorator:
    """One option per field of a configuration dataclass, with its default, help and choices.

    With `given`, those that are not given are None.
    """
    hints = typing.get_type_hints(config)
    fields = [field for field in dataclasses.fields(config) if field.name not in skip]
    return stacked(
        *(_option(one, hints[one.name], None if given else one.default) for one in fields)
    )


def _option(field: dataclasses.Field[Any], hint: Any, default: Any) -> Decorator:
    kinds = [kind for kind in typing.get_args(hint) if kind is not type(None)] or [hint]
    kind = kinds[0]
    name = "--" + field.name.replace("_", "-")
    text = field.metadata.get("help", "")
    choices = field.metadata.get("choices") or ()
    if hint is bool:
        both = f"{name}/--no-{name[2:]}" if field.default else name
        return click.option(both, is_flag=True, default=default, show_default=True, help=text)
    if typing.get_origin(kind) is tuple:
        one = typing.get_args(kind)[0]
        return click.option(name, type=one, nargs=2, metavar="LOW HIGH", default=default, help=text)
    if typing.get_origin(hint) is tuple:
        shown = bool(default)
        return click.option(
            name, multiple=True, type=kind, default=default, show_default=shown, help=text
        )
    return click.option(
        name,
        type=click.Choice(choices) if choices else kind,
        default=default,
        show_default=default is not None,
        help=text,
    )


def page_option(command: Command) -> Command:
    """`--report PAGE.html`: a page with the images of a command, which returns its summary."""

    @functools.wraps(command)
    def run(report: str | None, **options: Any) -> None:
        if report is None:
            command(**options)
            return
        from dsc.report import Application, check_application, write_application

        ctx = click.get_current_context()
        name, given = ctx.info_name or "", dict(ctx.params)
        page = str(local_path(report))
        check_application(page, name, bool(given["overwrite"]))
        summary = command(**options)
        write_application(page, Application(name, given, summary, command_line(ctx)))
        say(f"look at {page}", as_json=True)

    return click.option(
        "--report",
        metavar="PAGE.html",
        help="Write a page with the images; --overwrite replaces one of ours.",
    )(run)


def command_line(ctx: click.Context) -> str:
    """The command that is running, with the options that are not as they are by default."""
    words = ["dsc", ctx.info_name or ""]
    for parameter in ctx.command.params:
        value = ctx.params.get(parameter.name or "")
        if isinstance(parameter, click.Argument):
            words += [str(value)]
        elif parameter.name != "as_json" and value not in (None, parameter.get_default(ctx)):
            is_flag = isinstance(parameter, click.Option) and parameter.is_flag
            names = parameter.secondary_opts if value is False else parameter.opts
            words += [names[0]] if is_flag else [names[0], str(value)]
    return shlex.join(words)


def config_option(command: Command) -> Command:
    """`--config FILE`: options from a TOML file, which those on the command line override."""

    def load(ctx: click.Context, _: click.Parameter, value: str | None) -> None:
        if value is None:
            return
        options = from_toml(Path(value))
        known = [name for p in ctx.command.params if (name := p.name) and name != "config"]
        wrong = [str(unknown_choice(value, name, known)) for name in options if name not in known]
        wrong += [
            f"{value}: {problem}"
            for parameter in ctx.command.params
            if (problem := _type_problem(parameter, options.get(parameter.name or "")))
        ]
        if wrong:
            raise DscError("\n".join(wrong))
        lists = [p.name for p in ctx.command.params if p.nargs < 0 or getattr(p, "multiple", False)]
        single = {n: options[n] for n in lists if n and not isinstance(options.get(n, []), list)}
        options |= {n: [value] for n, value in single.items()}
        ctx.default_map = {**(ctx.default_map or {}), **options}

    return click.option(
        "--config",
        type=click.Path(exists=True, dir_okay=False),
        is_eager=True,
        expose_value=False,
        callback=load,
        help="A TOML file with options, such as the run.toml of a run folder.",
    )(command)


def _type_problem(parameter: click.Parameter, given: Any) -> str:
    """What is wrong with the type of a value in a TOML file; empty if nothing is."""
    kind = parameter.type.name.split()[0]
    many = parameter.nargs != 1 or (isinstance(parameter, click.Option) and parameter.multiple)
    if (
        parameter.nargs > 1
        and given is not None
        and (not isinstance(given, list) or len(given) != parameter.nargs)
    ):
        found = json.dumps(given, default=str)[:LONGEST]
        return f"{parameter.name}: found {found}, need a list of {parameter.nargs} values"
    entries = given if isinstance(given, list) and many else [] if given is None else [given]
    for one in entries if kind in TOML_TYPES else ():
        if not isinstance(one, TOML_TYPES[kind]) or isinstance(one, bool) != (kind == "boolean"):
            found = json.dumps(one, default=str)[:LONGEST]
            return f"{parameter.name}: found {found}, need a value of type {kind}"
    return ""


def take(options: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """Some of the options, which are no longer among the others then."""
    return {name: options.pop(name) for name in names}


@contextmanager
def resumable(out: str) -> Iterator[None]:
    """Let the message of Ctrl-C say how to continue."""
    try:
        yield
    except KeyboardInterrupt as interrupt:
        interrupt.add_note(f"interrupted: repeat the command with --resume to continue {out}")
        raise


def say(text: str, as_json: bool = False) -> None:
    """Print for people: on stdout, or on stderr if stdout is for JSON."""
    click.echo(printable(text), err=as_json)


def answer(summary: dict[str, Any], as_json: bool, *lines: str) -> None:
    """Print what a command found: the summary as one JSON object, or lines for people.

    Numbers that are not finite are null: JSON has none.
    """
    if as_json:
        values = {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in summary.items()
        }
        click.echo(json.dumps(values))
    else:
        click.echo(printable("\n".join(lines)))
