"""Which histograms tell unseen training pictures apart best: weights of atoms, powers of shares.

Nothing but training pictures is used: the dictionaries are learned from half of them, and the other
half is classified, as it is, turned by a spline, and turned with a part of the patches, as strides
of 2 and 4 leave. Wrong pictures of all these are counted together. The choice is by one standard
error: of the histograms that the best is not better than by more than that, the one nearest to the
paper's, first in the list.
"""

from __future__ import annotations

import math
import os
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
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
from dsc.experiments.textures import write_suite
from dsc.patches import Picture, open_pictures
from dsc.texture.config import TextureConfig
from dsc.texture.dataset import Labelled, label_places, read_inputs
from dsc.texture.fit import fit_texture
from dsc.texture.histograms import (
    ATOM_WEIGHT,
    by_class_and_atom,
    count_labels,
    joined_counts,
    shares,
)
from dsc.texture.model import TextureModel
from dsc.texture.neighbours import chi_square
from dsc.texture.outex import is_suite

SUITE = "Outex_tl84"
ANGLES = (20.0, 50.0, 80.0)  # degrees
REPEATS = 30  # draws of a few neighbours
STRIDES = (2, 4)  # of stride² patches one is kept

WEIGHTS = {  # (a, c): a n / (n + c b), of n patches a training picture and b atoms of all classes
    "0: classes": (0, 0),
    "1/4": (ATOM_WEIGHT, 0),
    "1/2": (1 / 2, 0),
    "1": (1, 0),
    "2": (2, 0),
    "∞: atoms": (math.inf, 0),
    "n / (n + b/4)": (1, 1 / 4),
    "n / (n + b)": (1, 1),
    "n / (n + 4 b)": (1, 4),
    "2 n / (n + b/4)": (2, 1 / 4),
    "2 n / (n + b)": (2, 1),
    "2 n / (n + 4 b)": (2, 4),
}
POWERS = {"": 1.0, ", square roots": 0.5, ", squares": 2.0}  # of the shares, which then sum to one
HISTOGRAMS = [weight + power for power in POWERS for weight in WEIGHTS]  # the paper's first
CLASSES, ATOMS, DEFAULT = "0: classes", "∞: atoms", "1/4"  # the classifier's

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


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

UPRIGHT, TURNED = "upright", "turned"
PARTS = {TURNED: 1} | {f"turned, 1 of {n**2} patches": n**2 for n in STRIDES}
COLUMNS = (UPRIGHT, *PARTS)

Wrong = dict[str, Integers]  # by histogram: (column, picture) how often it was wrong
Errors = dict[str, dict[str, list[float]]]  # by histogram and number of neighbours


def run(options: Options) -> Result:
    """Learn from each half for every seed, and count the wrong pictures of the other half."""
    size = QUICK if options.quick else FULL
    errors: Errors = {name: defaultdict(list) for name in HISTOGRAMS}
    with _textures(options.data, size.n_classes) as (label, data), open_engine() as engine:
        wrong = {name: np.zeros((len(COLUMNS), len(data)), np.int64) for name in HISTOGRAMS}
        for seed in range(size.n_seeds):
            for half in (0, 1):
                trial = _trial(data, half, replace(size.config, seed=seed), engine)
                _judge(trial, size.neighbours, wrong, errors)
    n_upright = size.n_seeds * len(data)
    n_each = [n_upright] + [len(ANGLES) * n_upright] * len(PARTS)
    means = {
        name: {few: float(np.mean(values)) for few, values in found.items()}
        for name, found in errors.items()
    }
    best, chosen, excess = compare(wrong)
    return Result(
        name=EXPERIMENT.name,
        title=EXPERIMENT.title,
        data=label,
        quick=options.quick,
        header=(
            "weight of atoms, power",
            *(f"{column}, wrong of {n:,}" for column, n in zip(COLUMNS, n_each, strict=True)),
            f"together, wrong of {sum(n_each):,}",
            "more than the best",
            *(f"turned, {n} neighbours a class" for n in size.neighbours),
        ),
        rows=tuple(
            (
                name,
                *map(str, wrong[name].sum(axis=1)),
                str(wrong[name].sum()),
                "{:g} ± {:.1f}".format(*excess[name]),
                *(f"{means[name][str(n)]:.4f}" for n in size.neighbours),
            )
            for name in HISTOGRAMS
        ),
        drawings={
            "patches": line_plot(
                {
                    name: ([1, *STRIDES], wrong[name].sum(axis=1)[1:].tolist())
                    for name in (CLASSES, DEFAULT, ATOMS)
                },
                "turned pictures not learned from, with as many patches as a stride leaves",
                xlabel="stride",
                ylabel=f"wrong of {n_each[-1]:,}",
                xticks=[1, *STRIDES],
            )
        },
        numbers={
            "wrong": {
                name: dict(zip(COLUMNS, found.sum(axis=1).tolist(), strict=True))
                for name, found in wrong.items()
            },
            "more_than_best": excess,
            "best": best,
            "chosen": chosen,
            "error": means,
        },
        findings=_findings(means, wrong, size),
        notes=(
            "n: patches of a training picture; b: atoms of all classes. One half of the training "
            "pictures, learned from, is the neighbours of the other; both in turn, number of "
            f"seeds: {size.n_seeds}. Turned: the middle of a picture, by "
            f"{', '.join(f'{angle:g}°' for angle in ANGLES)}, by a spline; with a part of the "
            "patches, of the neighbours too. More than the best: of all columns together, with one "
            "standard error over pictures. Errors with some neighbours are means of "
            f"{REPEATS} draws.",
        ),
    )


@dataclass(frozen=True, eq=False)
class _Trial:
    """Counts of the pictures that a model was not learned from: upright, then at every angle."""

    model: TextureModel
    places: Integers
    truth: Integers
    upright: Integers
    turned: tuple[Integers, ...]


def _trial(data: Labelled, half: int, config: TextureConfig, engine: Engine) -> _Trial:
    places = np.arange(len(data))
    learned, unseen = places[places % 2 == half], places[places % 2 != half]
    model = fit_texture(_some(data, learned), config, scheduler=engine)
    held = _some(data, unseen)

    def counted(pictures: Sequence[Picture]) -> Integers:
        features = count_labels(pictures, model.labeller, engine)
        return joined_counts(features, [p.name for p in pictures], len(model.atoms))

    greys = [picture.whole() for picture in held.pictures]
    turned = (open_pictures([turned_middle(grey, angle) for grey in greys]) for angle in ANGLES)
    return _Trial(
        model,
        unseen,
        label_places(held, model.label_names),
        counted(held.pictures),
        tuple(counted(pictures) for pictures in turned),
    )


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


def _judge(trial: _Trial, neighbours: tuple[int, ...], wrong: Wrong, errors: Errors) -> None:
    """Add the errors of one trial with every histogram."""
    known = trial.model.image_label
    for column, counts, near in _comparisons(trial):
        for name, distances in all_distances(counts, near).items():
            missed = known[distances.argmin(axis=1)] != trial.truth
            wrong[name][COLUMNS.index(column), trial.places] += missed
            if column == TURNED:
                for n in neighbours:
                    errors[name][str(n)] += _few(distances, known, trial.truth, n)


def _comparisons(trial: _Trial) -> Iterator[tuple[str, Integers, Integers]]:
    """The column, the counts of pictures, and those of their neighbours."""
    near, rng = trial.model.image_count, np.random.default_rng(1)
    yield UPRIGHT, trial.upright, near
    for counts in trial.turned:
        for column, part in PARTS.items():
            yield column, _thin(counts, part, rng), _thin(near, part, rng)


def all_distances(counts: Integers, known: Integers) -> dict[str, Floats]:
    """(picture, known picture) χ² of every histogram.

    With a weight w of atoms it is that of classes plus w times that of atoms: up to a factor the χ²
    of the joined histograms.
    """
    n, b = known.sum(axis=(1, 2)).mean(), known[0].size
    found = {}
    for suffix, power in POWERS.items():
        classes, atoms = (
            chi_square(shares(some**power), shares(near**power))
            for some, near in zip(*map(by_class_and_atom, (counts, known)), strict=True)
        )
        for name, (a, c) in WEIGHTS.items():
            weight = a * n / (n + c * b)
            found[name + suffix] = atoms if weight == math.inf else classes + weight * atoms
    return found


def _few(distances: Floats, known: Integers, truth: Integers, n: int) -> list[float]:
    """The errors with n neighbours of each class, drawn anew every time."""
    rng = np.random.default_rng(n)
    errors = []
    for _ in range(REPEATS):
        some = np.concatenate(
            [rng.permutation(np.flatnonzero(known == k))[:n] for k in np.unique(known)]
        )
        errors.append(float((known[some][distances[:, some].argmin(axis=1)] != truth).mean()))
    return errors


def _thin(counts: Integers, part: int, rng: np.random.Generator) -> Integers:
    """What is counted in a random part of the patches; at least one."""
    if part == 1:
        return counts
    thin = rng.binomial(counts, 1 / part)
    thin[thin.sum(axis=(1, 2)) == 0, 0, 0] = 1
    return thin


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


def compare(wrong: Wrong) -> tuple[str, str, dict[str, tuple[int, float]]]:
    """The histogram with the fewest wrong pictures, the chosen one, and how many more each has.

    A picture x is wrong w(x) times in all columns together. Of a histogram that has Σ d(x) more,
    d = w − w of the best, the standard error is that of a sum over n independent pictures:
    √(n / (n − 1) Σ (d − mean d)²). Chosen is the first with Σ d of one standard error at most.
    """
    totals = {name: found.sum(axis=0) for name, found in wrong.items()}
    best = min(totals, key=lambda name: int(totals[name].sum()))
    excess = {}
    for name, total in totals.items():
        more = total - totals[best]
        excess[name] = int(more.sum()), float(np.sqrt(len(more)) * more.std(ddof=1))
    chosen = next(name for name, (more, error) in excess.items() if more <= error)
    return best, chosen, excess


def _findings(means: dict[str, dict[str, float]], wrong: Wrong, size: Size) -> tuple[Finding, ...]:
    best, chosen, excess = compare(wrong)
    default, classes, atoms = (wrong[name].sum(axis=1) for name in (DEFAULT, CLASSES, ATOMS))
    few = str(min(size.neighbours))
    return (
        Finding(
            f"the default, atoms with {DEFAULT} of the weight of classes, is the nearest to the "
            "paper of the histograms within one standard error of the best",
            f"{default.sum()} are wrong; with {best}, the best, {wrong[best].sum()}; with classes "
            f"alone {classes.sum()} ({excess[CLASSES][0]} ± {excess[CLASSES][1]:.1f} more than the "
            f"best), with atoms alone {atoms.sum()}; nearest is {chosen}",
            chosen == DEFAULT,
            by="dsc",
        ),
        Finding(
            f"atoms alone need many patches and many neighbours: {COLUMNS[-1]}, and with {few} of "
            "each class, they are worse than classes",
            f"{atoms[-1]} are wrong against {classes[-1]} (both: {default[-1]}), and the error is "
            f"{means[ATOMS][few]:.4f} against {means[CLASSES][few]:.4f} (both: "
            f"{means[DEFAULT][few]:.4f})",
            bool(atoms[-1] > classes[-1]) and means[ATOMS][few] > means[CLASSES][few],
            by="dsc",
        ),
    )


EXPERIMENT = Experiment(
    name="texture-bins",
    title="Histograms of classes, of atoms, or both",
    paper="histograms of classes; others are not looked at",
    ours="of 9,600 classifications of training pictures not learned from, 110 are wrong with both "
    "(atoms with a quarter of the weight), 130 with classes, 247 with atoms",
    needs=f"{SUITE} in DSC_DATA (else drawn textures)",
    duration="about 15 minutes",
    run=run,
)
