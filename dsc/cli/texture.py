"""`dsc texture`: parse, call one library function, render, print."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import fields
from pathlib import Path
from typing import Any

import click

from dsc.cli import options as shared
from dsc.dictionary import RunTarget
from dsc.engine import Engine, open_engine
from dsc.errors import DscError
from dsc.files import local_path
from dsc.images import open_images
from dsc.show import Event, Place, Terminal
from dsc.texture import (
    CAUTION,
    METHODS,
    SWEPT,
    Benchmark,
    Dataset,
    Setting,
    Sweep,
    SweepGrid,
    TextureConfig,
    TextureModel,
    Validation,
    evaluate_texture,
    fit_texture,
    is_suite,
    lbp_methods,
    read_inputs,
    read_suite,
    run_sweep,
)

DATA = ("problem", "classes")
RUN = ("out", "resume", "overwrite")

data_options = shared.stacked(
    click.option(
        "--problem", default="000", show_default=True, help="Which problem of an Outex suite."
    ),
    click.option(
        "--classes", multiple=True, metavar="NAME", help="Only this class; may be repeated."
    ),
)


@click.group()
def texture() -> None:
    """Tell textures apart: a dictionary per class, labelled patches, nearest neighbours."""


@texture.command()
@click.argument("images")
@shared.run_options
@shared.options_of(TextureConfig)
@data_options
@shared.engine_options
@shared.config_option
@shared.json_option
def fit(images: str, as_json: bool, **options: Any) -> None:
    """Learn to tell the classes of IMAGES apart: one folder per class, or an Outex suite."""
    begin = time.perf_counter()
    part, engine_choice = shared.take(options, DATA), shared.take(options, shared.ENGINE)
    target = _target(images, shared.take(options, RUN), part)
    config = TextureConfig.from_options(options)
    data = _training_data(images, part)
    with shared.resumable(str(target.path)), _engine(engine_choice) as engine:
        model = fit_texture(data, config, engine, target)
    summary = {
        "n_images": len(data),
        "classes": list(model.label_names),
        "mse": float(model.history[:, -1].mean()),
        "atoms_sha256": model.sha256,
        "seconds": time.perf_counter() - begin,
        "out": target.path,
    }
    learned = f"{len(model.label_names)} classes from {len(data)} images in {target.path}"
    shared.answer(summary, as_json, learned, f"next: dsc texture predict {target.path} IMAGES...")


@texture.command()
@click.argument("model", metavar="RUN_OR_MODEL")
@click.argument("images", nargs=-1, required=True)
@click.option("--maps", metavar="FOLDER", help="Write the class map of every image as PNG there.")
@click.option(
    "--features",
    metavar="FILE.jsonl",
    help="Note counted images there; those that are in it are not counted again.",
)
@shared.engine_options
@shared.json_option
def predict(model: str, images: tuple[str, ...], as_json: bool, **options: Any) -> None:
    """Say which class each of IMAGES (files, folders, globs) belongs to."""
    from dsc.report import map_files, write_maps

    begin = time.perf_counter()
    maps, features = options.pop("maps"), options.pop("features")
    learned = TextureModel.load(model)
    found = open_images(list(images))
    if maps is not None:
        map_files(found, local_path(maps))  # refuses before anything is labelled
    log = local_path(features) if features else None
    with _engine(options) as engine:
        made = learned.predict(found, engine, log)
    if maps is not None:
        write_maps(learned, found, Path(maps))
    rows = [
        {
            "image": image.name,
            "label": learned.label_names[label],
            "distance": float(distances[label]),
            "nearest": learned.image_names[neighbour],
        }
        for image, label, distances, neighbour in zip(
            found, made.labels, made.distances, made.neighbours, strict=True
        )
    ]
    seconds = time.perf_counter() - begin
    width = max(len(row["image"]) for row in rows)
    shared.answer(
        {"predictions": rows, "n_images": len(rows), "seconds": seconds},
        as_json,
        *(f"{r['image']:<{width}}  {r['label']}  (χ² {r['distance']:.4f})" for r in rows),
    )


@texture.command()
@click.argument("images")
@shared.run_options
@click.option(
    "--test", metavar="FOLDER", help="Test images, one folder per class; a suite has its own."
)
@click.option("--lbp/--no-lbp", default=True, show_default=True, help="Compare with LBP.")
@click.option(
    "--compare",
    multiple=True,
    metavar="RUN",
    help="Another evaluation of the same data, for the table of methods; may be repeated.",
)
@shared.options_of(TextureConfig)
@data_options
@shared.engine_options
@shared.config_option
@shared.json_option
def evaluate(images: str, test: str | None, lbp: bool, as_json: bool, **options: Any) -> None:
    """Learn from the training images of IMAGES, classify its test images, and report."""
    from dsc.report import compared_method, write_texture_report

    part, engine_choice = shared.take(options, DATA), shared.take(options, shared.ENGINE)
    target = _target(images, shared.take(options, RUN), part, test=test, lbp=lbp)
    compare = options.pop("compare")
    config = TextureConfig.from_options(options)
    data = Benchmark(
        Path(images).resolve().name,
        _training_data(images, part),
        _test_data(images, test, part),
    )
    methods = [compared_method(path, data) for path in compare]
    with shared.resumable(str(target.path)), _engine(engine_choice) as engine:
        evaluation = evaluate_texture(data, config, engine, target)
        methods += lbp_methods(data, engine) if lbp else []
    facts = write_texture_report(Path(target.path) / "report", evaluation, methods)
    keys = ("accuracy", "accuracy_by_angle", "n_test", "n_train", "patches_per_second")
    more = ("pruned", "atoms_sha256", "confused_pairs", "methods")
    summary = {key: facts[key] for key in (*keys, *more)}
    summary |= {"seconds": facts["seconds"]["total"], "out": target.path}
    shared.answer(summary, as_json, *_evaluation_lines(summary))


def _evaluation_lines(found: dict[str, Any]) -> Iterator[str]:
    right = round(found["accuracy"] * found["n_test"])
    yield f"accuracy {found['accuracy']:.4f} ({right:,} of {found['n_test']:,} images)"
    for row in found["accuracy_by_angle"]:
        yield f"  {row['angle']:>5g}°     {row['accuracy']:.4f}"
    for row in found["methods"][1:]:
        named = ", ".join(filter(None, (row["method"], row["setting"])))
        accuracy = "not given" if row["accuracy"] is None else f"{row['accuracy']:.4f}"
        yield f"  {accuracy:<9}  {named} ({row['source']})"
    pruned = "" if found["pruned"] is None else f", {100 * found['pruned']:.1f} % of pairs pruned"
    yield (
        f"{found['seconds']:.0f} s, {found['patches_per_second']:,.0f} patches/s labelled"
        f"{pruned}; see {found['out']}/report/index.html"
    )


grid_options = shared.stacked(  # what is swept: each may be repeated, by default the paper's values
    *(
        click.option(
            "--" + field.name.replace("_", "-"),
            multiple=True,
            type=click.Choice(METHODS) if field.name == "method" else int,
            default=getattr(SweepGrid(), field.name),
            show_default=True,
            help=f"{field.metadata['help']} May be repeated.",
        )
        for field in fields(TextureConfig)
        if field.name in SWEPT
    )
)


@texture.command()
@click.argument("images")
@shared.run_options
@grid_options
@shared.options_of(TextureConfig, skip=SWEPT)
@click.option(
    "--held-out",
    default=0.88,
    show_default=True,
    help="Share of the training images that are classified by the others.",
)
@click.option("--repeats", default=100, show_default=True, help="How often they are drawn anew.")
@data_options
@shared.engine_options
@shared.json_option
def sweep(images: str, as_json: bool, **options: Any) -> None:
    """Find good settings on the training images of IMAGES by cross-validation."""
    from dsc.report import write_sweep_report

    part, engine_choice = shared.take(options, DATA), shared.take(options, shared.ENGINE)
    target = _target(images, shared.take(options, RUN), part)
    grid = SweepGrid(**shared.take(options, SWEPT))
    validation = Validation(**shared.take(options, ("held_out", "repeats")))
    swept = Sweep(TextureConfig.from_options(options), grid, validation)
    data = _training_data(images, part)
    with shared.resumable(str(target.path)), _engine(engine_choice, Place, Setting) as engine:
        result = run_sweep(data, swept, engine, target)
    report = Path(target.path) / "report"
    write_sweep_report(report, result)
    lines = []
    for method, best in result.winners.items():
        mark = "  <- the winner" if best is result.winner else ""
        lines.append(
            f"{method:<10}  {best.mean:.4f} ± {best.std:.4f}  M = {best.config.n_atoms}, "
            f"N = {best.config.diameter}, K = {best.config.sparsity}{mark}"
        )
    if len(lines) > 1:
        lines.append(CAUTION)
    lines.append(f"the whole table is in {report}/table.md, see {report}/index.html")
    shared.answer({**result.to_dict(), "out": target.path}, as_json, *lines)


def _engine(options: dict[str, Any], *lines_of: type[Event]) -> AbstractContextManager[Engine]:
    """An engine whose progress is shown; a log has lines of some kinds of events, or of all."""
    return open_engine(**options, progress=Terminal(lines_of or (Event,)))


def _target(images: str, run: dict[str, Any], part: dict[str, Any], **others: Any) -> RunTarget:
    """The run folder; its run.toml says of the data what repeats the run."""
    path = images if "://" in images else str(Path(images).resolve())
    named = {"images": path, "problem": part["problem"], "classes": list(part["classes"])}
    return RunTarget(run["out"], run["resume"], run["overwrite"], {**named, **others})


def _training_data(images: str, part: dict[str, Any]) -> Dataset:
    """The training images; those that a suite does not name are listed, not used."""
    data = read_inputs(images, **part)
    if is_suite(images) and (extra := read_suite(images, **part).extra):
        listed = ", ".join(extra[:5]) + (", …" if len(extra) > 5 else "")
        shared.say(f"{len(extra)} images that no split names are left out: {listed}", as_json=True)
    return data


def _test_data(images: str, test: str | None, part: dict[str, Any]) -> Dataset:
    if test is None and not is_suite(images):
        raise DscError(
            f"{images}: is no suite with test images of its own: give them by --test FOLDER"
        )
    return read_inputs(images if test is None else test, **part, part="test")
