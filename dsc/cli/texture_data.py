"""What the commands of `dsc texture` read, and the table they write."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from dsc.cli import options as shared
from dsc.dictionary import RunTarget
from dsc.errors import DscError
from dsc.files import local_path, write_whole
from dsc.texture import (
    NEIGHBOURS,
    Benchmark,
    Dataset,
    TextureModel,
    is_suite,
    read_inputs,
    read_suite,
    split_dataset,
)

DATA = ("problem", "classes")
RUN = ("out", "resume", "overwrite")
EVALUATED = ("model", "test", "split", "lbp", "curve")  # what is evaluated; it stands in run.toml
LAST_STEP = ("histogram", "classifier")  # options that a fitted model may have others of

data_options = shared.stacked(
    click.option(
        "--problem", default="000", show_default=True, help="Which problem of an Outex suite."
    ),
    click.option(
        "--classes", multiple=True, metavar="NAME", help="Only this class; may be repeated."
    ),
)


def fitted_model(
    images: str | None, chosen: dict[str, Any], options: dict[str, Any]
) -> TextureModel:
    """The model of --model, with the last step as the options say; others have no effect."""
    if images is not None or chosen["split"] is not None:
        raise DscError(
            "model: found images to learn from, too: give a fitted model and --test, or IMAGES"
        )
    if chosen["test"] is None:
        raise DscError("model: found no test images: give them by --test FOLDER, or a suite")
    if chosen["curve"] not in (None, NEIGHBOURS):
        raise DscError(f"curve: found a fitted model, need {NEIGHBOURS!r}, which learns nothing")
    sources = {name: click.get_current_context().get_parameter_source(name) for name in options}
    said = {n: options[n] for n in LAST_STEP if sources[n] is not ParameterSource.DEFAULT}
    idle = [name for name, source in sources.items() if source is ParameterSource.COMMANDLINE]
    if idle := [name for name in idle if name not in LAST_STEP]:
        words = ", ".join(f"--{name.replace('_', '-')}" for name in idle)
        raise DscError(f"model: it is fitted, {words} would have no effect: leave it out")
    model = TextureModel.load(chosen["model"])
    return replace(model, config=replace(model.config, **said))


def benchmark(
    images: str | None, chosen: dict[str, Any], part: dict[str, Any], seed: int
) -> Benchmark:
    """The training and test images of an evaluation."""
    test, split = chosen["test"], chosen["split"]
    if chosen["model"] is not None:
        return Benchmark(Path(test).resolve().name, None, _test_data(test, test, part))
    if images is None:
        raise DscError(
            "evaluate: found no images: give IMAGES to learn from, or --model and --test"
        )
    train = training_data(images, part)
    if split is None:
        tested = _test_data(images, test, part)
    elif test is None and not is_suite(images):
        train, tested = split_dataset(train, split, seed)
    else:
        raise DscError("split: found test images (--test, or a suite's own), need a folder alone")
    return Benchmark(Path(images).resolve().name, train, tested)


def run_target(
    images: str | None, run: dict[str, Any], part: dict[str, Any], **others: Any
) -> RunTarget:
    """The run folder; its run.toml says of the data what repeats the run."""
    named = {"problem": part["problem"], "classes": list(part["classes"])}
    if images is not None:
        named["images"] = images if "://" in images else str(Path(images).resolve())
    return RunTarget(run["out"], run["resume"], run["overwrite"], {**named, **others})


def training_data(images: str, part: dict[str, Any]) -> Dataset:
    """The training images; those that a suite does not name are listed, not used."""
    data = read_inputs(images, **part)
    if is_suite(images) and (extra := read_suite(images, **part).extra):
        listed = ", ".join(extra[:5]) + (", …" if len(extra) > 5 else "")
        shared.say(f"{len(extra)} images that no split names are left out: {listed}", as_json=True)
    return data


def _test_data(images: str, test: str | None, part: dict[str, Any]) -> Dataset:
    if test is None and not is_suite(images):
        raise DscError(
            f"{images}: is no suite with test images of its own: give them by --test FOLDER, or "
            "keep some of each class for the test by --split 0.5"
        )
    return read_inputs(images if test is None else test, **part, part="test")


def check_table(out: str, overwrite: bool) -> None:
    """Refuse, before any work, a table that could not be written."""
    path = local_path(out)
    if path.suffix.lower() != ".csv":
        raise DscError(f"predictions: found {out!r}, need a name that ends in .csv")
    if not path.parent.is_dir():
        raise DscError(f"{out}: there is no folder {path.parent}: make it first")
    if path.exists() and not (overwrite and path.is_file()):
        raise DscError(f"{out}: exists already: choose another name, or give --overwrite")


def write_table(out: str, rows: list[dict[str, Any]]) -> None:
    """Write predictions as CSV, the distance to each class in a column of its own."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    plain = [name for name in rows[0] if name != "distances"]
    writer.writerow([*plain, *(f"distance {label}" for label in rows[0]["distances"])])
    for row in rows:
        writer.writerow([*(row[name] for name in plain), *row["distances"].values()])
    write_whole(Path(out), text.getvalue())
