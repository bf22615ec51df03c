"""Histograms of classes or of atoms: which tells unseen training pictures apart better.

Nothing but training pictures is used: the dictionaries are learned from half of them, and the other
half is classified, as it is and turned by a spline.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from dsc.engine import Engine, open_engine
from dsc.experiments.data import SPLINE_ORDER, check_paper
from dsc.experiments.draw import line_plot
from dsc.experiments.result import Experiment, Finding, Options, Result
from dsc.patches import open_pictures
from dsc.texture.config import HISTOGRAMS, TextureConfig
from dsc.texture.features import count_labels, histograms
from dsc.texture.fit import fit_texture
from dsc.texture.inputs import Labelled, label_places, read_inputs
from dsc.texture.model import TextureModel
from dsc.texture.neighbours import chi_square
from dsc.texture.synthetic import write_suite

SUITE = "Outex_tl84"
ANGLES = (20.0, 50.0, 80.0)  # degrees
REPEATS = 30  # draws of a few neighbours

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Size:
    """How large the experiment is."""

    config: TextureConfig
    n_classes: int | None
    n_seeds: int
    neighbours: tuple[int, ...]


FULL = Size(TextureConfig(patches_per_image=2000, stride=2), None, 3, (2, 5, 10))
QUICK = Size(
    TextureConfig(n_atoms=4, diameter=7, patches_per_image=200, stride=3, n_iterations=3),
    4,
    1,
    (1, 3),
)


def run(options: Options) -> Result:
    """Learn from each half for every seed, and count the wrong pictures of the other half."""
    size = QUICK if options.quick else FULL
    errors: dict[str, dict[int, list[float]]] = {
        bins: {n: [] for n in size.neighbours} for bins in HISTOGRAMS
    }
    wrong = {bins: {"upright": 0, "turned": 0} for bins in HISTOGRAMS}
    with _textures(options.data, size.n_classes) as (label, data), open_engine() as engine:
        for seed in range(size.n_seeds):
            for half in (0, 1):
                trial = _trial(data, half, replace(size.config, seed=seed), engine)
                for bins in HISTOGRAMS:
                    _count(trial, bins, size.neighbours, errors[bins], wrong[bins])
    n_upright = size.n_seeds * len(data)
    means = {
        bins: {n: float(np.mean(values)) for n, values in found.items()}
        for bins, found in errors.items()
    }
    return Result(
        name=EXPERIMENT.name,
        title=EXPERIMENT.title,
        data=label,
        quick=options.quick,
        header=(
            "histograms of", *(f"error with {n} a class" for n in size.neighbours),
            "wrong upright", "wrong turned",
        ),
        rows=tuple(
            (
                bins, *(f"{means[bins][n]:.4f}" for n in size.neighbours),
                f"{wrong[bins]['upright']} of {n_upright:,}",
                f"{wrong[bins]['turned']} of {len(ANGLES) * n_upright:,}",
            )
            for bins in HISTOGRAMS
        ),
        drawings={
            "neighbours": line_plot(
                {bins: (list(found), list(found.values())) for bins, found in means.items()},
                "error on turned pictures that were not learned from",
                xlabel="training pictures of a class",
                ylabel="share of wrong pictures",
            )
        },
        numbers={
            "error": {b: {str(n): e for n, e in found.items()} for b, found in means.items()},
            "wrong": wrong,
        },
        findings=_findings(means, wrong, size),
        notes=(
            "One half of the training pictures, learned from, is the neighbours of the other; both "
            f"in turn, {size.n_seeds} seeds. Turned: the middle of a picture, by "
            f"{', '.join(f'{angle:g}°' for angle in ANGLES)}, by a spline. Errors with some "
            f"neighbours are means of {REPEATS} draws, on turned pictures.",
        ),
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Trial:
    """Counts of the pictures that a model was not learned from: upright, then at every angle."""

    model: TextureModel
    truth: Integers
    queries: dict[str, Any]


def _trial(data: Labelled, half: int, config: TextureConfig, engine: Engine) -> _Trial:
    places = np.arange(len(data))
    learned, unseen = places[places % 2 == half], places[places % 2 != half]
    model = fit_texture(_some(data, learned), config, scheduler=engine)
    held = _some(data, unseen)
    greys = [picture.whole() for picture in held.pictures]
    pictures = {"upright": list(held.pictures)}
    for angle in ANGLES:
        pictures[f"{angle:g}"] = open_pictures([turned_middle(grey, angle) for grey in greys])
    queries = {name: count_labels(some, model.labeller, engine) for name, some in pictures.items()}
    return _Trial(model, label_places(held, model.label_names), queries)


def _some(data: Labelled, places: Integers) -> Labelled:
    return Labelled(
        tuple(data.pictures[i] for i in places),
        tuple(data.labels[i] for i in places),
        tuple(data.angles[i] for i in places),
    )


def turned_middle(grey: NDArray[np.floating], angle: float) -> NDArray[np.float32]:
    """The largest square that stays inside a picture at any angle, turned about its middle."""
    side = int(min(grey.shape) / np.sqrt(2))
    step = np.arange(side) - (side - 1) / 2
    y, x = np.meshgrid(step, step, indexing="ij")
    cos, sin = np.cos(np.deg2rad(angle)), np.sin(np.deg2rad(angle))
    middle = [(n - 1) / 2 for n in grey.shape]
    places = [middle[0] + y * cos + x * sin, middle[1] - y * sin + x * cos]
    turned = ndimage.map_coordinates(
        grey.astype(np.float64), places, order=SPLINE_ORDER, mode="mirror"
    )
    return np.asarray(turned, np.float32)


def _count(
    trial: _Trial,
    bins: str,
    neighbours: tuple[int, ...],
    errors: dict[int, list[float]],
    wrong: dict[str, int],
) -> None:
    """Add the errors of one trial."""
    model = replace(trial.model, config=replace(trial.model.config, histogram=bins))
    known = model.image_label
    for name, features in trial.queries.items():
        shares = histograms(features, [""] * len(features), model.n_bins)
        distances = chi_square(shares, model.histograms)
        missed = known[distances.argmin(axis=1)] != trial.truth
        wrong["upright" if name == "upright" else "turned"] += int(missed.sum())
        if name == "upright":
            continue
        rng = np.random.default_rng(0)
        for n in neighbours:
            for _ in range(REPEATS):
                some = np.concatenate(
                    [rng.permutation(np.flatnonzero(known == k))[:n] for k in np.unique(known)]
                )
                found = known[some][distances[:, some].argmin(axis=1)]
                errors[n].append(float((found != trial.truth).mean()))


@contextmanager
def _textures(choice: str, n_classes: int | None) -> Iterator[tuple[str, Labelled]]:
    """The training pictures of the suite, or drawn ones in their place."""
    if choice in ("auto", "paper"):
        check_paper(["textures"])
        data = read_inputs(Path(os.environ["DSC_DATA"]) / SUITE)
        names = sorted({str(label) for label in data.labels})[:n_classes]
        keep = np.flatnonzero([label in names for label in data.labels])
        yield f"{SUITE}, {len(keep)} training pictures of {len(names)} classes", _some(data, keep)
        return
    with tempfile.TemporaryDirectory() as folder:
        suite = write_suite(Path(folder) / "suite", n_train=12, n_test=1, angles=(0,), size=48)
        data = read_inputs(suite)
        yield f"synthetic, {len(data)} training pictures of 4 classes", data


def _findings(
    means: dict[str, dict[int, float]], wrong: dict[str, dict[str, int]], size: Size
) -> tuple[Finding, ...]:
    few = min(size.neighbours)
    atoms, classes = means["atoms"], means["classes"]
    return (
        Finding(
            "with half of the training pictures as neighbours, histograms of atoms are better than "
            "those of classes",
            f"{wrong['atoms']['turned']} against {wrong['classes']['turned']} turned and "
            f"{wrong['atoms']['upright']} against {wrong['classes']['upright']} upright pictures "
            "are wrong",
            wrong["atoms"]["turned"] < wrong["classes"]["turned"],
            by="dsc",
        ),
        Finding(
            f"with {few} of each class as neighbours they are not",
            f"error {atoms[few]:.4f} against {classes[few]:.4f}",
            atoms[few] >= classes[few],
            by="dsc",
        ),
    )


EXPERIMENT = Experiment(
    name="texture-bins",
    title="Histograms of atoms or of classes",
    paper="histograms of classes; others are not looked at",
    ours="",
    needs=f"{SUITE} in DSC_DATA (or --data synthetic: drawn textures)",
    duration="about 9 minutes",
    run=run,
    pictures=("textures",),
)
