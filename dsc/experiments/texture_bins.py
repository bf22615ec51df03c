"""Which histograms tell unseen training pictures apart best: weights of atoms, powers of shares.

Nothing but training pictures is used: the dictionaries are learned from half of them, and the other
half is classified, as it is and turned by a spline. The best histogram is the one with the fewest
wrong pictures in all columns of such pictures together, of equal ones the first in the list:
upright, turned, and turned with a part of the patches, as strides of 2 and 4 leave.
"""

from __future__ import annotations

import math
import os
import tempfile
from collections import Counter, defaultdict
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
from dsc.patches import Picture, open_pictures
from dsc.texture.config import TextureConfig
from dsc.texture.features import (
    by_class_and_atom,
    count_labels,
    joined_counts,
    patches_per_picture,
    shares,
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
STRIDES = (2, 4)  # of stride² patches one is kept

WEIGHTS = {  # (a, c): a n / (n + c b), of n patches a training picture and b atoms of all classes
    "0: classes": (0, 0),
    "1/4": (1 / 4, 0),
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
HISTOGRAMS = [weight + power for power in POWERS for weight in WEIGHTS]
CLASSES, ATOMS = "0: classes", "∞: atoms, squares"  # the classifier's
DEFAULT = "2 n / (n + b/4), squares"

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
SPARSE = list(PARTS)[-1]
Wrong = Counter[str]
Errors = dict[str, list[float]]


def run(options: Options) -> Result:
    """Learn from each half for every seed, and count the wrong pictures of the other half."""
    size = QUICK if options.quick else FULL
    wrong: dict[str, Wrong] = {name: Counter() for name in HISTOGRAMS}
    errors: dict[str, Errors] = {name: defaultdict(list) for name in HISTOGRAMS}
    with _textures(options.data, size.n_classes) as (label, data), open_engine() as engine:
        for seed in range(size.n_seeds):
            for half in (0, 1):
                trial = _trial(data, half, replace(size.config, seed=seed), engine)
                _judge(trial, size.neighbours, wrong, errors)
    n_pictures = size.n_seeds * len(data)
    means = {
        name: {few: float(np.mean(values)) for few, values in found.items()}
        for name, found in errors.items()
    }
    columns = {UPRIGHT: n_pictures} | dict.fromkeys(PARTS, len(ANGLES) * n_pictures)
    return Result(
        name=EXPERIMENT.name,
        title=EXPERIMENT.title,
        data=label,
        quick=options.quick,
        header=(
            "weight of atoms, power",
            *(f"{column}, wrong of {n:,}" for column, n in columns.items()),
            f"together, wrong of {sum(columns.values()):,}",
            *(f"turned, {n} neighbours a class" for n in size.neighbours),
        ),
        rows=tuple(
            (
                name,
                *(str(wrong[name][column]) for column in columns),
                str(wrong[name].total()),
                *(f"{means[name][str(n)]:.4f}" for n in size.neighbours),
            )
            for name in HISTOGRAMS
        ),
        drawings={
            "patches": line_plot(
                {
                    name: ([1, *STRIDES], [wrong[name][column] for column in PARTS])
                    for name in (CLASSES, DEFAULT, ATOMS)
                },
                "turned pictures not learned from, with as many patches as a stride leaves",
                xlabel="stride",
                ylabel=f"wrong of {columns[TURNED]:,}",
                xticks=[1, *STRIDES],
            )
        },
        numbers={
            "wrong": {name: dict(found) for name, found in wrong.items()},
            "together": {name: found.total() for name, found in wrong.items()},
            "best": _best(wrong),
            "error": means,
        },
        findings=_findings(means, wrong, size),
        notes=(
            "n: patches of a training picture; b: atoms of all classes. One half of the training "
            "pictures, learned from, is the neighbours of the other; both in turn, number of "
            f"seeds: {size.n_seeds}. Turned: the middle of a picture, by "
            f"{', '.join(f'{angle:g}°' for angle in ANGLES)}, by a spline; with a part of the "
            "patches, of the neighbours too. Errors with some neighbours are means of "
            f"{REPEATS} draws.",
        ),
    )


@dataclass(frozen=True, eq=False)
class _Trial:
    """Counts of the pictures that a model was not learned from: upright, then at every angle."""

    model: TextureModel
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


def _judge(
    trial: _Trial, neighbours: tuple[int, ...], wrong: dict[str, Wrong], errors: dict[str, Errors]
) -> None:
    """Add the errors of one trial with every histogram."""
    known = trial.model.image_label
    for column, counts, near in _comparisons(trial):
        for name, distances in all_distances(counts, near).items():
            wrong[name][column] += int((known[distances.argmin(axis=1)] != trial.truth).sum())
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
    n, b = patches_per_picture(known), known[0].size
    found = {}
    for suffix, power in POWERS.items():
        classes, atoms = (
            chi_square(shares(some, power), shares(near, power))
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


def _best(wrong: dict[str, Wrong]) -> str:
    """The histogram with the fewest wrong pictures in all columns together."""
    return min(wrong, key=lambda name: wrong[name].total())


def _findings(
    means: dict[str, dict[str, float]], wrong: dict[str, Wrong], size: Size
) -> tuple[Finding, ...]:
    few = str(min(size.neighbours))
    best, (default, classes, atoms) = _best(wrong), (wrong[k] for k in (DEFAULT, CLASSES, ATOMS))
    return (
        Finding(
            f"of all histograms the default, {DEFAULT}, has the fewest wrong pictures",
            f"{default.total()} are wrong; with {best}, the best, {wrong[best].total()}; with "
            f"classes alone {classes.total()}, with atoms alone {atoms.total()}",
            default.total() == wrong[best].total(),
            by="dsc",
        ),
        Finding(
            f"atoms alone need many patches and many neighbours: {SPARSE}, and with {few} of each "
            "class, they are worse than classes",
            f"{atoms[SPARSE]} are wrong against {classes[SPARSE]} (both: {default[SPARSE]}), and "
            f"the error is {means[ATOMS][few]:.4f} against {means[CLASSES][few]:.4f} (both: "
            f"{means[DEFAULT][few]:.4f})",
            atoms[SPARSE] > classes[SPARSE] and means[ATOMS][few] > means[CLASSES][few],
            by="dsc",
        ),
    )


EXPERIMENT = Experiment(
    name="texture-bins",
    title="Histograms of classes, of atoms, or both",
    paper="histograms of classes; others are not looked at",
    ours="of 9,600 classifications of training pictures not learned from, 111 are wrong with both "
    "(squared shares, the default), 132 with classes, 225 with atoms; many of the 36 histograms "
    "are within noise of the best",
    needs=f"{SUITE} in DSC_DATA (else drawn textures)",
    duration="about 15 minutes",
    run=run,
)
