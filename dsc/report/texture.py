"""`write_texture_report`: a texture evaluation as one page, with plots and numbers beside it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from dsc.errors import DscError
from dsc.report import texture_figures as plots
from dsc.report.figures import draw
from dsc.report.paper import CITED, is_of_the_paper
from dsc.report.render import Page, Place
from dsc.report.texture_images import COLUMNS, Bytes, Gallery
from dsc.show import mosaic
from dsc.texture import (
    BINS,
    Benchmark,
    Curve,
    Evaluation,
    Method,
    TextureModel,
    check_classes,
    class_colours,
)
from dsc.version import __version__

KIND = "dsc texture report"  # by which we know a report.json of ours
PLOTS = ("angles", "curve", "confusion", "pairs", "maps", "atoms", "history")
MOST_WRONG = 200  # images that are not recognised, in the table of the page
DECIDES = {  # whom an image is given the class of
    "nearest": "the class of the training image with the nearest histogram",
    "class-nearest": "the class whose three nearest training images have the nearest histograms on "
    "average",
    "svm": "the class that a support vector machine with the exponential χ² kernel tells from the "
    "histogram",
}


def write_texture_report(
    folder: Path,
    evaluation: Evaluation,
    methods: Sequence[Method] = (),
    curve: Curve | None = None,
) -> dict[str, Any]:
    """Write FOLDER/index.html, report.json and the plots; a report of ours is replaced.

    The evaluation is compared with `methods`, other histograms and the paper's own numbers, and a
    `curve` over training images is drawn.
    Returns the numbers of the page, as in report.json.
    """
    place = Place.folder(folder)
    place.check(KIND, PLOTS)
    facts = texture_facts(evaluation, methods) | {"curve": _curve(curve)}
    gallery = Gallery.of(evaluation)
    figures = {name: draw(figure) for name, figure in _figures(facts, gallery).items()}
    images = _images(facts, evaluation, gallery)
    return place.write(Page("texture.html", facts["title"], facts, figures, images))


def texture_facts(evaluation: Evaluation, methods: Sequence[Method] = ()) -> dict[str, Any]:
    """All numbers of the report."""
    model, data = evaluation.model, evaluation.data
    trained = () if data.train is None else data.train.images
    windows = (model.labellers.n_windows(one.shape) for one in trained)
    n_train, n_classes = len(model.image_label), len(model.label_names)
    others = evaluation.with_other_histograms()
    rows = [
        evaluation.as_method("ours", "this run"),
        *(other.as_method("compared", "the same labels") for other in others),
        *methods,
        *(CITED if is_of_the_paper(data.name, n_classes, n_train, len(data.test)) else ()),
    ]
    pairs = evaluation.confused_pairs
    return {
        "kind": KIND,
        "title": f"Texture classification of {data.name}",
        "data": f"{n_train:,} training and {len(data.test):,} test images of {data.name}"
        if trained
        else f"{len(data.test):,} test images of {data.name}; a model fitted to {n_train:,} images",
        **_images_of(data, model),
        "is_fitted_here": bool(trained),
        "config": {
            **asdict(model.config),
            "diameter": list(model.config.diameter),
            "n_angles": model.labellers.each[0].n_angles,
        },
        "accuracy": evaluation.accuracy,
        "accuracy_by_angle": evaluation.accuracy_by_angle,
        "confusion": evaluation.confusion.tolist(),
        "wrong": _wrong(evaluation),
        "confused_pairs": [{"true": t, "predicted": p, "count": count} for t, p, count in pairs],
        "methods": [asdict(row) for row in rows],
        "seconds": evaluation.seconds,
        "patches_per_second": evaluation.patches_per_second,
        "n_patches_labelled": evaluation.n_patches + sum(windows),
        "pruned": evaluation.pruned,
        "atoms_sha256": model.sha256,
        "numerics": model.numerics,
        "version": __version__,
        "dictionaries": list(model.config.names(model.label_names)),
        "history": model.history.tolist(),
    }


def _curve(curve: Curve | None) -> dict[str, Any] | None:
    """The curve as plain values."""
    if curve is None:
        return None
    lines = [{"method": name, "accuracy": list(found)} for name, found in curve.lines.items()]
    values = {"kind": curve.kind, "counts": list(curve.counts), "n_draws": list(curve.n_draws)}
    return {**values, "lines": lines}


def _wrong(evaluation: Evaluation) -> list[dict[str, Any]]:
    """The test images that are not recognised, and how far they are from both classes."""
    return [
        {
            **{
                name: row[name] for name in ("image", "true", "predicted", "probability", "nearest")
            },
            "distance": row["distances"][row["predicted"]],
            "distance_true": row["distances"][row["true"]],
        }
        for row in evaluation.predictions
        if row["true"] != row["predicted"]
    ]


def compared_method(
    path: str | PathLike[str], data: Benchmark, model: TextureModel | None = None
) -> Method:
    """The row of another evaluation, from its run folder; refused if it is of other images.

    `model` is the one that was fitted before.
    """
    file = Path(path) / "report" / "report.json"
    try:
        facts = json.loads(file.read_text(encoding="utf-8"))
        row = {name: facts["methods"][0][name] for name in ("method", "setting", "accuracy")}
    except (OSError, ValueError, KeyError, IndexError, TypeError) as error:
        raise DscError(f"compare: found no report of an evaluation at {file}") from error
    expected = _images_of(data, model)
    found = {key: facts.get(key) for key in expected}
    if found != expected:
        raise DscError(
            f"compare: {path} is of other images ({found}), need those of this run ({expected})"
        )
    name = Path(path).name
    return Method(**row, source=f"the run {name}", group="compared", suite=data.name)


def _images_of(data: Benchmark, model: TextureModel | None) -> dict[str, Any]:
    """What two evaluations share that can be compared."""
    if data.train is not None:
        names, n_train = check_classes(data.train), len(data.train)
    else:
        assert model is not None
        names, n_train = model.label_names, len(model.image_label)
    return {
        "suite": data.name,
        "label_names": list(names),
        "n_train": n_train,
        "n_test": len(data.test),
    }


def _figures(facts: dict[str, Any], gallery: Gallery) -> dict[str, Any]:
    """Every plot by the name of its files."""
    names = facts["label_names"]
    figures = {
        "confusion": plots.plot_confusion(facts["confusion"], names),
        "atoms": plots.plot_atoms(gallery.atoms, facts["dictionaries"]),
    }
    if facts["accuracy_by_angle"]:
        figures["angles"] = plots.plot_angles(facts["accuracy_by_angle"], facts["accuracy"])
    if any(facts["history"]):
        figures["history"] = plots.plot_errors(facts["history"], facts["dictionaries"])
    if facts["curve"]:
        figures["curve"] = plots.plot_curve(facts["curve"]["counts"], facts["curve"]["lines"])
    if gallery.maps:
        figures["maps"] = plots.plot_maps(gallery.maps)
    if gallery.mistakes:
        figures["pairs"] = plots.plot_pairs(gallery.mistakes)
    return figures


def _images(facts: dict[str, Any], evaluation: Evaluation, gallery: Gallery) -> dict[str, Any]:
    """What else the template draws."""
    count = np.concatenate([one.atom_count for one in evaluation.model.scales])
    angles = facts["accuracy_by_angle"]
    colours = class_colours(len(facts["label_names"]))
    return {
        "n_right": int((evaluation.truth == evaluation.prediction.labels).sum()),
        "bins": BINS[evaluation.model.config.histogram],
        "decides": DECIDES[evaluation.model.config.classifier],
        "lowest": plots.accuracy_axis(angles) if angles else 0.0,
        "strengths": plots.cell_strengths(facts["confusion"]).tolist(),
        "most_wrong": MOST_WRONG,
        "maps": gallery.maps,
        "mistakes": gallery.mistakes,
        "colours": ["#" + bytes(c.tolist()).hex() for c in colours],
        "strips": [list(_strips(disks)) for disks in gallery.atoms],
        "uses": [(int(uses.max()), int(uses.min())) for uses in count],
        "all_atoms": len(gallery.atoms[0]) == count.shape[1],
    }


def _strips(disks: Bytes) -> Iterable[Bytes]:
    """The first row of a class's atoms, and the others if there are more, as wide as it."""
    clear = np.zeros((-len(disks) % COLUMNS, *disks.shape[1:]), np.uint8)
    whole = np.concatenate([disks, clear])
    return (mosaic(part, COLUMNS) for part in (whole[:COLUMNS], whole[COLUMNS:]) if len(part))
