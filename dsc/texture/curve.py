"""Accuracy against the number of training images of each class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dsc.dictionary import RunTarget
from dsc.engine import Engine
from dsc.errors import DscError
from dsc.texture.baseline import NAME, Patterns
from dsc.texture.config import NEAREST
from dsc.texture.deciding import LastStep
from dsc.texture.evaluate import Evaluation, evaluate_texture
from dsc.texture.neighbours import chi_square
from dsc.texture.parts import part_of

COUNTS = (1, 2, 5, 10, 20)  # training images of each class
DRAWS = 20  # of neighbours
NEIGHBOURS, LEARNED = CURVES = ("neighbours", "learned")
OURS = "dictionaries"

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Curve:
    """Mean accuracy of some methods with so many training images of each class."""

    # "neighbours": images are drawn to be compared with, dictionaries are learned from all of them;
    # "learned": dictionaries are learned from the drawn ones, too
    kind: str
    counts: tuple[int, ...]  # images of each class
    n_draws: tuple[int, ...]  # over which each is a mean
    lines: dict[str, tuple[float, ...]]  # accuracy by method


@dataclass(frozen=True, eq=False)
class _Rival:
    """Histograms of training images, and the distances of test images to them."""

    name: str
    classifier: str
    train: Floats  # (image, bin)
    distances: Floats  # (test image, training image) χ²


def neighbour_curve(evaluation: Evaluation, patterns: Sequence[Patterns] = ()) -> Curve:
    """Draw the training images that test images are compared with; nothing is learned or labelled.

    The dictionaries stay those of all training images, so this says how many neighbours the last
    step needs, not how many images learning needs. Local binary patterns learn nothing.
    """
    model, labels = evaluation.model, evaluation.model.image_label
    distances = chi_square(evaluation.prediction.histograms, model.histograms)
    ours = _Rival(OURS, model.config.classifier, model.histograms, distances)
    rivals = [ours, *_rivals(patterns)]
    counts = curve_counts(labels)
    chosen = [draws(labels, model.image_names, n, model.config.seed) for n in counts]
    lines = {
        rival.name: tuple(
            float(np.mean([_accuracy(rival, some, labels, evaluation.truth) for some in drawn]))
            for drawn in chosen
        )
        for rival in rivals
    }
    return Curve(NEIGHBOURS, counts, tuple(map(len, chosen)), lines)


def learned_curve(
    evaluation: Evaluation, engine: Engine, target: RunTarget, patterns: Sequence[Patterns] = ()
) -> Curve:
    """Draw training images once for every point, and learn and compare with nothing but these.

    The runs are in the folder `curve` of the run of the target, and are resumed with it.
    """
    model, data = evaluation.model, evaluation.data
    if data.train is None:
        raise DscError("curve: found a fitted model, need training images to learn from")
    labels = model.image_label
    counts = curve_counts(labels)
    chosen = [draws(labels, model.image_names, n, model.config.seed)[0] for n in counts]
    folder = Path(target.path) / "curve"
    folder.mkdir(exist_ok=True)
    ours = []
    for n, some in zip(counts, chosen, strict=True):
        if len(some) == len(labels):
            ours.append(evaluation.accuracy)
            continue
        part = replace(data, train=part_of(data.train, some))
        place = replace(target, path=folder / f"{n:03d}")
        ours.append(evaluate_texture(part, model.config, engine, place).accuracy)
    lines = {OURS: tuple(ours)}
    for rival in _rivals(patterns):
        found = (_accuracy(rival, some, labels, evaluation.truth) for some in chosen)
        lines[rival.name] = tuple(found)
    return Curve(LEARNED, counts, (1,) * len(counts), lines)


def curve_counts(labels: Ints) -> tuple[int, ...]:
    """How many images of each class to draw: those of `COUNTS` that every class has.

    Examples
    --------
    >>> curve_counts(np.repeat([0, 1], [5, 9]))
    (1, 2, 5)
    """
    least = int(np.bincount(labels)[np.unique(labels)].min())
    return tuple(n for n in COUNTS if n <= least)


def draws(labels: Ints, names: Sequence[str], n: int, seed: int) -> list[Ints]:
    """Places of n images of each class, drawn anew every time; once if there are no others.

    The draws depend on the names of the images, not on their order.
    """
    by_name = np.array(sorted(range(len(labels)), key=lambda i: names[i]))
    members = [by_name[labels[by_name] == label] for label in np.unique(labels)]
    n_draws = 1 if all(len(some) == n for some in members) else DRAWS
    found = []
    for number in range(n_draws):
        rng = np.random.default_rng([seed, n, number])
        found.append(np.sort(np.concatenate([rng.permutation(some)[:n] for some in members])))
    return found


def _rivals(patterns: Sequence[Patterns]) -> list[_Rival]:
    return [
        _Rival(f"{NAME}, {one.setting}", NEAREST, one.train, chi_square(one.test, one.train))
        for one in patterns
    ]


def _accuracy(rival: _Rival, some: Ints, labels: Ints, truth: Ints) -> float:
    """The share of test images that some training images tell the right class of."""
    n_labels = int(labels.max()) + 1
    step = LastStep(rival.classifier, rival.train[some], labels[some], n_labels)
    found = step.decide(rival.distances[:, some])
    return float((found.labels == truth).mean())
