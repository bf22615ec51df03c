"""Histograms of classes, of atoms, or both: which tells unseen training pictures apart better.

Nothing but training pictures is used: the dictionaries are learned from half of them, and the other
half is classified, as it is and turned by a spline.
"""

from __future__ import annotations

import os
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from dsc.engine import Engine, open_engine
from dsc.experiments.data import SPLINE_ORDER, check_paper
from dsc.experiments.draw import line_plot
from dsc.experiments.result import Experiment, Finding, Options, Result
from dsc.patches import open_pictures
from dsc.texture.config import HISTOGRAMS, TextureConfig
from dsc.texture.features import (
    count_labels,
    histograms,
    joined_counts,
    patches_per_picture,
)
from dsc.texture.fit import fit_texture
from dsc.texture.inputs import Labelled, label_places, read_inputs
from dsc.texture.model import TextureModel
from dsc.texture.neighbours import chi_square
from dsc.texture.suite import is_suite
from dsc.texture.synthetic import write_suite

SUITE = "Outex_tl84"
ANGLES = (20.0, 50.0, 80.0)  # degrees
REPEATS = 30  # draws of a few neighbours
THINNED = 16  # of so many patches one is kept, for small pictures

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Size:
    """How large the experiment is."""

    config: TextureConfig
    n_classes: int | None
    n_seeds: int
    neighbours: tuple[int, ...]


FULL = Size(TextureConfig(patches_per_image=2000), None, 2, (2, 5))
SMALL = TextureConfig(n_atoms=4, diameter=7, patches_per_image=200, stride=3, n_iterations=3)
QUICK = Size(SMALL, 4, 1, (1, 3))

Wrong = dict[str, int]
Errors = dict[str, list[float]]


def run(options: Options) -> Result:
    """Learn from each half for every seed, and count the wrong pictures of the other half."""
    size = QUICK if options.quick else FULL
    wrong: dict[str, Wrong] = {kind: Counter() for kind in HISTOGRAMS}
    errors: dict[str, Errors] = {kind: defaultdict(list) for kind in HISTOGRAMS}
    with _textures(options.data, size.n_classes) as (label, data), open_engine() as engine:
        for seed in range(size.n_seeds):
            for half in (0, 1):
                trial = _trial(data, half, replace(size.config, seed=seed), engine)
                for kind in HISTOGRAMS:
                    _judge(trial, kind, size.neighbours, wrong[kind], errors[kind])
    n_pictures = size.n_seeds * len(data)
    means = {
        kind: {name: float(np.mean(values)) for name, values in found.items()}
        for kind, found in errors.items()
    }
    columns = {"turned": len(ANGLES), "upright": 1, "thinned": len(ANGLES)}
    return Result(
        name=EXPERIMENT.name,
        title=EXPERIMENT.title,
        data=label,
        quick=options.quick,
        header=(
            "histogram",
            *(f"{name}, wrong of {n * n_pictures:,}" for name, n in columns.items()),
            *(f"turned, {n} neighbours a class" for n in size.neighbours),
        ),
        rows=tuple(
            (
                kind,
                *(str(wrong[kind][name]) for name in columns),
                *(f"{means[kind][str(n)]:.4f}" for n in size.neighbours),
            )
            for kind in HISTOGRAMS
        ),
        drawings={
            "neighbours": line_plot(
                {
                    kind: ([int(n) for n in found], list(found.values()))
                    for kind, found in means.items()
                },
                "error on turned pictures that were not learned from",
                xlabel="neighbours of a class",
                ylabel="share of wrong pictures",
            )
        },
        numbers={"wrong": {kind: dict(found) for kind, found in wrong.items()}, "error": means},
        findings=_findings(means, wrong, size),
        notes=(
            "One half of the training pictures, learned from, is the neighbours of the other; both "
            f"in turn, number of seeds: {size.n_seeds}. Turned: the middle of a picture, by "
            f"{', '.join(f'{angle:g}°' for angle in ANGLES)}, by a spline. Thinned: the same with "
            f"1 of {THINNED} patches, of the neighbours too. Errors with some neighbours are means "
            f"of {REPEATS} draws.",
        ),
    )


@dataclass(frozen=True, eq=False)
class _Trial:
    """Counts of the pictures that a model was not learned from: upright, then at every angle."""

    model: TextureModel
    truth: Integers
    queries: dict[str, Integers]


def _trial(data: Labelled, half: int, config: TextureConfig, engine: Engine) -> _Trial:
    places = np.arange(len(data))
    learned, unseen = places[places % 2 == half], places[places % 2 != half]
    model = fit_texture(_some(data, learned), config, scheduler=engine)
    held = _some(data, unseen)
    greys = [picture.whole() for picture in held.pictures]
    pictures = {"upright": list(held.pictures)}
    for angle in ANGLES:
        pictures[f"{angle:g}"] = open_pictures([turned_middle(grey, angle) for grey in greys])
    queries = {}
    for name, some in pictures.items():
        features = count_labels(some, model.labeller, engine)
        queries[name] = joined_counts(features, [p.name for p in some], len(model.atoms))
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


def _judge(
    trial: _Trial, kind: str, neighbours: tuple[int, ...], wrong: Wrong, errors: Errors
) -> None:
    """Add the errors of one trial with one kind of histogram."""
    model, rng = trial.model, np.random.default_rng(0)
    known = model.image_label
    thin = _thin(model.image_count)
    near, few = histograms(model.image_count, kind), histograms(thin, kind)
    n_patches, n_thin = patches_per_picture(model.image_count), patches_per_picture(thin)
    for name, counts in trial.queries.items():
        distances = chi_square(histograms(counts, kind, n_patches), near)
        missed = known[distances.argmin(axis=1)] != trial.truth
        wrong["upright" if name == "upright" else "turned"] += int(missed.sum())
        if name == "upright":
            continue
        thinned = chi_square(histograms(_thin(counts), kind, n_thin), few)
        wrong["thinned"] += int((known[thinned.argmin(axis=1)] != trial.truth).sum())
        for n in neighbours:
            for _ in range(REPEATS):
                some = np.concatenate(
                    [rng.permutation(np.flatnonzero(known == k))[:n] for k in np.unique(known)]
                )
                found = known[some][distances[:, some].argmin(axis=1)]
                errors[str(n)].append(float((found != trial.truth).mean()))


def _thin(counts: Integers) -> Integers:
    """What is counted in a random part of the patches; at least one."""
    part = np.random.default_rng(1).binomial(counts, 1 / THINNED)
    part[part.sum(axis=(1, 2)) == 0, 0, 0] = 1
    return part


@contextmanager
def _textures(choice: str, n_classes: int | None) -> Iterator[tuple[str, Labelled]]:
    """The training pictures of the suite, or drawn ones in their place."""
    if choice == "paper":
        check_paper(["textures"])
    place = Path(os.environ.get("DSC_DATA", ".")) / SUITE
    if choice in ("auto", "paper") and is_suite(place):
        data = read_inputs(place)
        names = sorted({str(label) for label in data.labels})[:n_classes]
        keep = np.flatnonzero([label in names for label in data.labels])
        yield f"{SUITE}, {len(keep)} training pictures of {len(names)} classes", _some(data, keep)
        return
    with tempfile.TemporaryDirectory() as folder:
        suite = write_suite(Path(folder) / "suite", n_train=12, n_test=1, angles=(0,), size=48)
        data = read_inputs(suite)
        yield f"synthetic, {len(data)} training pictures of 4 classes", data


def _findings(
    means: dict[str, dict[str, float]], wrong: dict[str, Wrong], size: Size
) -> tuple[Finding, ...]:
    few = str(min(size.neighbours))
    both, classes, atoms = (wrong[kind] for kind in ("both", "classes", "atoms"))
    return (
        Finding(
            "with all patches and half of the training pictures, classes and atoms together tell "
            "turned pictures apart better than classes alone",
            f"{both['turned']} are wrong against {classes['turned']}, upright {both['upright']} "
            f"against {classes['upright']}; with atoms alone {atoms['turned']} and "
            f"{atoms['upright']}",
            both["turned"] < classes["turned"],
            by="dsc",
        ),
        Finding(
            f"atoms alone need many patches and many neighbours: with 1 of {THINNED} patches, and "
            f"with {few} of each class, they are worse than classes",
            f"{atoms['thinned']} are wrong against {classes['thinned']} (both: "
            f"{both['thinned']}), and the error is {means['atoms'][few]:.4f} against "
            f"{means['classes'][few]:.4f} (both: {means['both'][few]:.4f})",
            atoms["thinned"] > classes["thinned"] and means["atoms"][few] > means["classes"][few],
            by="dsc",
        ),
    )


EXPERIMENT = Experiment(
    name="texture-bins",
    title="Histograms of classes, of atoms, or both",
    paper="histograms of classes; others are not looked at",
    ours="of 960 training pictures not learned from, 4 are wrong with both, 10 with classes, 5 "
    "with atoms; turned, of 2,880, 27, 28 and 22; turned with 1 of 16 patches 50, 61 and 164; "
    "with 2 neighbours of a class classes are best",
    needs=f"{SUITE} in DSC_DATA (else drawn textures)",
    duration="about 15 to 20 minutes",
    run=run,
)
