"""`dsc texture`: parse, call one library function, print."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import click

from dsc.cli import options as console
from dsc.cli.texture_progress import SweepProgress, TextureProgress
from dsc.errors import DscError
from dsc.texture.config import METHODS, TextureConfig
from dsc.texture.dataset import Labelled, read_inputs
from dsc.texture.outex import is_suite, read_suite
from dsc.texture.sweep.results import CAUTION, SWEPT, SweepGrid

Command = Callable[..., Any]


@click.group()
def texture() -> None:
    """Tell textures apart: a dictionary per class, labelled patches, nearest neighbours."""


def data_options(command: Command) -> Command:
    """Which part of the data: `--problem`, `--classes`."""
    command = click.option(
        "--classes", multiple=True, metavar="NAME", help="Only this class; may be repeated."
    )(command)
    return click.option(
        "--problem", default="000", show_default=True, help="Which problem of an Outex suite."
    )(command)


def run_options(command: Command) -> Command:
    """`--out`, `--resume`, `--overwrite`."""
    command = console.overwrite_option(command)
    command = click.option("--resume", is_flag=True, help="Continue what is unfinished in RUN.")(
        command
    )
    return click.option("--out", "-o", required=True, help="Run folder to make.", metavar="RUN")(
        command
    )


@texture.command()
@click.argument("pictures")
@run_options
@console.options_of(TextureConfig)
@data_options
@console.engine_options
@console.config_option
@console.json_option
def fit(
    pictures: str,
    out: str,
    resume: bool,
    overwrite: bool,
    problem: str,
    classes: tuple[str, ...],
    where: dict[str, Any],
    as_json: bool,
    **options: Any,
) -> None:
    """Learn to tell the classes of PICTURES apart: one folder per class, or an Outex suite."""
    from dsc.texture.fit import fit_texture

    begin = time.perf_counter()
    config = TextureConfig.from_options(options)
    data = _training_data(pictures, problem, classes)
    with console.resumable(out):
        model = fit_texture(
            data,
            config,
            run=out,
            resume=resume,
            overwrite=overwrite,
            options=_named(pictures, problem, classes),
            progress=TextureProgress(),
            **where,
        )
    summary = {
        "n_pictures": len(data),
        "classes": list(model.label_names),
        "mse": float(model.history[:, -1].mean()),
        "atoms_sha256": model.sha256,
        "seconds": time.perf_counter() - begin,
        "out": out,
    }
    if as_json:
        console.print_json(summary)
    else:
        console.say(f"{len(model.label_names)} classes from {len(data)} pictures in {out}")
        console.say(f"next: dsc texture predict {out} PICTURES...")


@texture.command()
@click.argument("model", metavar="RUN_OR_MODEL")
@click.argument("pictures", nargs=-1, required=True)
@click.option("--maps", metavar="FOLDER", help="Write the class map of every picture as PNG there.")
@click.option(
    "--features",
    metavar="FILE.jsonl",
    help="Note counted pictures there; those that are in it are not counted again.",
)
@console.engine_options
@console.json_option
def predict(
    model: str,
    pictures: tuple[str, ...],
    maps: str | None,
    features: str | None,
    where: dict[str, Any],
    as_json: bool,
) -> None:
    """Say which class each of PICTURES (files, folders, globs) belongs to."""
    from dsc.engine import open_engine
    from dsc.patches import open_pictures
    from dsc.texture.histograms import FeatureLog, count_labels
    from dsc.texture.maps import write_maps
    from dsc.texture.model import TextureModel

    begin = time.perf_counter()
    learned = TextureModel.load(model)
    found = open_pictures(list(pictures))
    log = FeatureLog(Path(features), learned.labeller.identity) if features else None
    with open_engine(**where) as engine:
        counted = count_labels(found, learned.labeller, engine, log, TextureProgress())
    names = [picture.name for picture in found]
    predicted, distances, neighbour = learned.classify(learned.describe(counted, names))
    if maps is not None:
        write_maps(learned, found, Path(maps))
    rows = [
        {
            "picture": name,
            "label": learned.label_names[p],
            "distance": float(row[p]),
            "nearest": learned.picture_names[n],
        }
        for name, p, row, n in zip(names, predicted, distances, neighbour, strict=True)
    ]
    if as_json:
        seconds = time.perf_counter() - begin
        console.print_json({"predictions": rows, "n_pictures": len(rows), "seconds": seconds})
        return
    width = max(len(name) for name in names)
    for row in rows:
        console.say(f"{row['picture']:<{width}}  {row['label']}  (χ² {row['distance']:.4f})")


@texture.command()
@click.argument("pictures")
@run_options
@click.option(
    "--test", metavar="FOLDER", help="Test pictures, one folder per class; a suite has its own."
)
@click.option("--lbp/--no-lbp", default=True, show_default=True, help="Compare with LBP.")
@click.option(
    "--compare",
    multiple=True,
    metavar="RUN",
    help="Another evaluation of the same data, for the table of methods; may be repeated.",
)
@console.options_of(TextureConfig)
@data_options
@console.engine_options
@console.config_option
@console.json_option
def evaluate(
    pictures: str,
    out: str,
    resume: bool,
    overwrite: bool,
    test: str | None,
    lbp: bool,
    compare: tuple[str, ...],
    problem: str,
    classes: tuple[str, ...],
    where: dict[str, Any],
    as_json: bool,
    **options: Any,
) -> None:
    """Learn from the training pictures of PICTURES, classify its test pictures, and report."""
    from dsc.texture.evaluate import evaluate_texture

    config = TextureConfig.from_options(options)
    data = _training_data(pictures, problem, classes)
    with console.resumable(out):
        facts = evaluate_texture(
            data,
            _test_data(pictures, test, problem, classes),
            config,
            out,
            name=Path(pictures).resolve().name,
            resume=resume,
            overwrite=overwrite,
            options={**_named(pictures, problem, classes), "test": test, "lbp": lbp},
            lbp=lbp,
            compare=compare,
            progress=TextureProgress(),
            **where,
        )
    if as_json:
        keys = ("accuracy", "accuracy_by_angle", "n_test", "n_train", "patches_per_second")
        more = ("pruned", "atoms_sha256", "confused_pairs", "methods")
        summary = {key: facts[key] for key in (*keys, *more)}
        console.print_json({**summary, "seconds": facts["seconds"]["total"], "out": out})
        return
    right = round(facts["accuracy"] * facts["n_test"])
    console.say(f"accuracy {facts['accuracy']:.4f} ({right:,} of {facts['n_test']:,} pictures)")
    for row in facts["accuracy_by_angle"]:
        console.say(f"  {row['angle']:>5g}°     {row['accuracy']:.4f}")
    for row in facts["methods"][1:]:
        named = ", ".join(filter(None, (row["method"], row["setting"])))
        accuracy = "not given" if row["accuracy"] is None else f"{row['accuracy']:.4f}"
        console.say(f"  {accuracy:<9}  {named} ({row['source']})")
    pruned = "" if facts["pruned"] is None else f", {100 * facts['pruned']:.1f} % of pairs pruned"
    console.say(
        f"{facts['seconds']['total']:.0f} s, {facts['patches_per_second']:,.0f} patches/s labelled"
        f"{pruned}; see {out}/report/index.html"
    )


def grid_options(command: Command) -> Command:
    """The options whose values are swept: each may be repeated, by default the paper's."""
    grid, about = SweepGrid(), {f.name: f for f in fields(TextureConfig)}
    for name in reversed(SWEPT):
        values = getattr(grid, name)
        command = click.option(
            "--" + name.replace("_", "-"),
            multiple=True,
            type=click.Choice(METHODS) if name == "method" else int,
            default=values,
            show_default=True,
            help=f"{about[name].metadata['help']} May be repeated.",
        )(command)
    return command


@texture.command()
@click.argument("pictures")
@click.option("--out", "-o", required=True, help="Folder to make.", metavar="SWEEP")
@click.option("--resume", is_flag=True, help="Continue SWEEP: finished settings stay.")
@grid_options
@console.options_of(TextureConfig, skip=SWEPT)
@click.option(
    "--held-out",
    default=0.88,
    show_default=True,
    help="Share of the training pictures that are classified by the others.",
)
@click.option("--repeats", default=100, show_default=True, help="How often they are drawn anew.")
@data_options
@console.engine_options
@console.json_option
def sweep(
    pictures: str,
    out: str,
    resume: bool,
    held_out: float,
    repeats: int,
    problem: str,
    classes: tuple[str, ...],
    where: dict[str, Any],
    as_json: bool,
    **options: Any,
) -> None:
    """Find good settings on the training pictures of PICTURES by cross-validation."""
    from dsc.texture.sweep import run_sweep

    grid = SweepGrid(**{name: tuple(options.pop(name)) for name in SWEPT})
    with console.resumable(out):
        result = run_sweep(
            _training_data(pictures, problem, classes),
            TextureConfig.from_options(options),
            grid,
            folder=out,
            resume=resume,
            held_out=held_out,
            repeats=repeats,
            options=_named(pictures, problem, classes),
            progress=SweepProgress(),
            **where,
        )
    if as_json:
        console.print_json({**result.to_dict(), "out": out})
        return
    for method, best in result.winners.items():
        mark = "  <- the winner" if best is result.winner else ""
        config = best.config
        console.say(
            f"{method:<10}  {best.mean:.4f} ± {best.std:.4f}  M = {config.n_atoms}, "
            f"N = {config.diameter}, K = {config.sparsity}{mark}"
        )
    if len(result.winners) > 1:
        console.say(CAUTION)
    console.say(f"the whole table is in {out}/table.md, see {out}/index.html")


def _training_data(pictures: str, problem: str, classes: tuple[str, ...]) -> Labelled:
    """The training pictures; those that a suite does not name are listed, not used."""
    data = read_inputs(pictures, problem=problem, classes=classes)
    if is_suite(pictures) and (extra := read_suite(pictures, problem, classes).extra):
        listed = ", ".join(extra[:5]) + (", …" if len(extra) > 5 else "")
        click.echo(f"{len(extra)} pictures that no split names are left out: {listed}", err=True)
    return data


def _test_data(pictures: str, test: str | None, problem: str, classes: tuple[str, ...]) -> Labelled:
    if test is not None:
        return read_inputs(test, problem=problem, classes=classes, part="test")
    if not is_suite(pictures):
        raise DscError(
            f"{pictures}: is no suite with test pictures of its own: give them by --test FOLDER"
        )
    return read_inputs(pictures, problem=problem, classes=classes, part="test")


def _named(pictures: str, problem: str, classes: tuple[str, ...]) -> dict[str, Any]:
    """What run.toml says of the data, so that it repeats the run."""
    place = pictures if "://" in pictures else str(Path(pictures).resolve())
    return {"pictures": place, "problem": problem, "classes": list(classes)}
