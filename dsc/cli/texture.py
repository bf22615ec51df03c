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
from dsc.cli.texture_data import (
    DATA,
    EVALUATED,
    RUN,
    benchmark,
    check_table,
    data_options,
    fitted_model,
    run_target,
    training_data,
    write_table,
)
from dsc.dictionary import Run
from dsc.engine import Engine, open_engine
from dsc.files import local_path
from dsc.images import open_images
from dsc.show import Event, Place, Terminal
from dsc.texture import (
    CAUTION,
    CURVES,
    METHODS,
    NEIGHBOURS,
    SWEPT,
    Setting,
    Sweep,
    SweepGrid,
    TextureConfig,
    TextureModel,
    Validation,
    class_map,
    evaluate_model,
    evaluate_texture,
    fit_texture,
    lbp_methods,
    lbp_patterns,
    learned_curve,
    neighbour_curve,
    run_sweep,
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
    target = run_target(images, shared.take(options, RUN), part)
    config = TextureConfig.from_options(options)
    data = training_data(images, part)
    with shared.resumable(str(target.path)), _engine(engine_choice) as engine:
        model = fit_texture(data, config, engine, target)
    summary = {
        "n_images": len(data),
        "classes": list(model.label_names),
        "share": Run(Path(target.path)).share,
        "mse": model.mse,
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
    likely = learned.probabilities(made)
    rows = [
        {
            "image": image.name,
            "label": learned.label_names[label],
            "probability": float(chances[label]),
            "distance": float(distances[label]),
            "nearest": learned.image_names[neighbour],
        }
        for image, label, chances, distances, neighbour in zip(
            found, made.labels, likely, made.distances, made.neighbours, strict=True
        )
    ]
    seconds = time.perf_counter() - begin
    width = max(len(row["image"]) for row in rows)
    shared.answer(
        {"predictions": rows, "n_images": len(rows), "seconds": seconds},
        as_json,
        *(f"{r['image']:<{width}}  {r['label']}  (χ² {r['distance']:.4f})" for r in rows),
    )


@texture.command("map")
@click.argument("model", metavar="RUN_OR_MODEL")
@click.argument("image")
@click.option(
    "--out",
    "-o",
    required=True,
    metavar="PATH",
    help="A .png of colors to write, or an OME-Zarr (.zarr, a URL) of classes, tile by tile.",
)
@click.option("--overwrite", is_flag=True, help="Replace a finished one that is at PATH.")
@click.option("--resume", is_flag=True, help="Keep the tiles of an unfinished OME-Zarr at PATH.")
@click.option(
    "--window",
    default=1,
    show_default=True,
    help="Pixels across a square that votes on the class of its middle; an odd number, 1 is none.",
)
@shared.engine_options
@shared.json_option
def map_image(model: str, image: str, out: str, as_json: bool, **options: Any) -> None:
    """Map which class each pixel of IMAGE belongs to."""
    from dsc.report import painted_file

    begin = time.perf_counter()
    learned = TextureModel.load(model)
    options["progress"] = Terminal()
    if "://" in out or Path(out).suffix == ".zarr":
        found = class_map(image, learned, out, **options)
    else:
        again = shared.take(options, ("overwrite", "resume"))
        with painted_file(out, image, **again) as write:
            found = class_map(image, learned, **options)
            write(found)
    facts = found.attrs
    total = max(1, sum(facts["n_pixels"]))
    rows = [
        {"value": value, "label": name, "color": color, "share": n / total}
        for value, (name, color, n) in enumerate(
            zip(facts["label_names"], facts["colors"], facts["n_pixels"], strict=True), 1
        )
    ]
    seconds = time.perf_counter() - begin
    width = max(len(row["label"]) for row in rows)
    shared.answer(
        {"classes": rows, "n_pixels": total, "seconds": seconds, "out": out},
        as_json,
        f"{out}: classes of {image}",
        *(
            f"  {r['value']:>3}  {r['color']}  {r['label']:<{width}}  {100 * r['share']:.1f} %"
            for r in rows
        ),
    )


@texture.command()
@click.argument("images", required=False)
@shared.run_options
@click.option(
    "--model",
    metavar="RUN_OR_MODEL",
    help="Learn nothing, but classify the images of --test with this fitted model.",
)
@click.option(
    "--test", metavar="FOLDER", help="Test images, one folder per class; a suite has its own."
)
@click.option(
    "--split",
    type=float,
    metavar="SHARE",
    help="Learn from this share of each class of a folder, drawn by --seed; test with the others.",
)
@click.option("--lbp/--no-lbp", default=True, show_default=True, help="Compare with LBP.")
@click.option(
    "--compare",
    multiple=True,
    metavar="RUN",
    help="Another evaluation of the same data, for the table of methods; may be repeated.",
)
@click.option(
    "--curve",
    type=click.Choice(CURVES),
    help="Accuracy against the number of training images of each class. neighbours: of those that "
    "are compared with, the dictionaries being those of all; learned: of those that are learned "
    "from, too, which learns anew for every point.",
)
@click.option(
    "--predictions",
    metavar="FILE.csv",
    help="Write a line per test image there: true and predicted class, nearest training image, "
    "distances; --json has them, too.",
)
@shared.options_of(TextureConfig)
@data_options
@shared.engine_options
@shared.config_option
@shared.json_option
def evaluate(images: str | None, as_json: bool, **options: Any) -> None:
    """Learn from the training images of IMAGES, classify its test images, and report."""
    from dsc.report import compared_method, write_texture_report

    part, engine_choice = shared.take(options, DATA), shared.take(options, shared.ENGINE)
    run, chosen = shared.take(options, RUN), shared.take(options, EVALUATED)
    compare, table = options.pop("compare"), options.pop("predictions")
    if table is not None:
        check_table(table, run["overwrite"])
    model = None if chosen["model"] is None else fitted_model(images, chosen, options)
    config = TextureConfig.from_options(options) if model is None else model.config
    target = run_target(images, run, part, **chosen)
    data = benchmark(images, chosen, part, config.seed)
    methods = [compared_method(path, data, model) for path in compare]
    with shared.resumable(str(target.path)), _engine(engine_choice) as engine:
        if model is None:
            evaluation = evaluate_texture(data, config, engine, target)
        else:
            evaluation = evaluate_model(model, data, engine, target)
        patterns = lbp_patterns(data, engine) if chosen["lbp"] else []
        methods += lbp_methods(data, patterns)
        curve = None
        if chosen["curve"] == NEIGHBOURS:
            curve = neighbour_curve(evaluation, patterns)
        elif chosen["curve"]:
            curve = learned_curve(evaluation, engine, target, patterns)
    facts = write_texture_report(Path(target.path) / "report", evaluation, methods, curve)
    keys = ("accuracy", "accuracy_by_angle", "n_test", "n_train", "patches_per_second")
    more = ("pruned", "atoms_sha256", "confused_pairs", "methods", "curve")
    summary = {key: facts[key] for key in (*keys, *more)}
    summary |= {"seconds": facts["seconds"]["total"], "out": target.path}
    if table is not None:
        summary["predictions"] = evaluation.predictions
        write_table(table, summary["predictions"])
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
    if curve := found["curve"]:
        counts = ", ".join(map(str, curve["counts"]))
        yield f"accuracy with {counts} training images of each class ({curve['kind']})"
        for line in curve["lines"]:
            yield f"  {'  '.join(f'{a:.4f}' for a in line['accuracy'])}  {line['method']}"
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
    target = run_target(images, shared.take(options, RUN), part)
    grid = SweepGrid(**shared.take(options, SWEPT))
    validation = Validation(**shared.take(options, ("held_out", "repeats")))
    swept = Sweep(TextureConfig.from_options(options), grid, validation)
    data = training_data(images, part)
    with shared.resumable(str(target.path)), _engine(engine_choice, Place, Setting) as engine:
        result = run_sweep(data, swept, engine, target)
    report = Path(target.path) / "report"
    write_sweep_report(report, result)
    lines = []
    for method, best in result.winners.items():
        mark = "  <- the winner" if best is result.winner else ""
        lines.append(
            f"{method:<10}  {best.mean:.4f} ± {best.std:.4f}  M = {best.config.n_atoms}, "
            f"N = {best.config.sizes}, K = {best.config.sparsity}{mark}"
        )
    if len(lines) > 1:
        lines.append(CAUTION)
    lines.append(f"the whole table is in {report}/table.md, see {report}/index.html")
    shared.answer({**result.to_dict(), "out": target.path}, as_json, *lines)


def _engine(options: dict[str, Any], *lines_of: type[Event]) -> AbstractContextManager[Engine]:
    """An engine whose progress is shown; a log has lines of some kinds of events, or of all."""
    return open_engine(**options, progress=Terminal(lines_of or (Event,)))
