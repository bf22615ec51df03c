"""Which histograms tell unseen training images apart best: weights of atoms, powers of shares.

Nothing but training images is used (see `texture_trials`). Wrong images of all columns are
counted together. The choice is by one standard error: of the histograms that the best is not better
than by more than that, the one nearest to the paper's, first in the list.
"""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np

from dsc.experiments import texture_trials as trials
from dsc.experiments.result import Experiment, Finding, Floats, Lines, Options, Result
from dsc.experiments.texture_trials import Integers, Size, Trial, open_textures, run_trials
from dsc.texture import ATOM_WEIGHT, chi_square

REPEATS = 30  # draws of a few neighbours

WEIGHTS = {  # (a, c): a n / (n + c b), of n patches a training image and b atoms of all classes
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
NOTE = (
    "n: patches of a training image; b: atoms of all classes. One half of the training images, "
    "learned from, is the neighbours of the other; both in turn, number of seeds: {}. Rotated: the "
    f"middle of an image, by {', '.join(f'{angle:g}°' for angle in trials.ANGLES)}, by a spline; "
    "with a part of the patches, of the neighbours too. More than the best: of all columns "
    "together, with one standard error over images. Errors with some neighbours are means of "
    f"{REPEATS} draws."
)

Wrong = dict[str, Integers]  # by histogram: (column, image) how often it was wrong
Errors = dict[str, dict[str, list[float]]]  # by histogram and number of neighbours


def run(options: Options) -> Result:
    """Learn from each half for every seed, and count the wrong images of the other half."""
    size = trials.QUICK if options.quick else trials.FULL
    errors: Errors = {name: defaultdict(list) for name in HISTOGRAMS}
    with open_textures(options.data, size.n_classes) as (label, data):
        wrong = {name: np.zeros((len(trials.COLUMNS), len(data)), int) for name in HISTOGRAMS}
        for trial in run_trials(data, size):
            _judge(trial, size.neighbours, wrong, errors)
    means = {h: {n: float(np.mean(some)) for n, some in errors[h].items()} for h in HISTOGRAMS}
    return _result(label, wrong, means, size)


def _result(label: str, wrong: Wrong, means: dict[str, dict[str, float]], size: Size) -> Result:
    totals = {name: some.sum(axis=1) for name, some in wrong.items()}
    n_upright = size.n_seeds * wrong[CLASSES].shape[1]
    n_each = [n_upright] + [len(trials.ANGLES) * n_upright] * len(trials.PARTS)
    columns = dict(zip(trials.COLUMNS, n_each, strict=True))
    best, chosen, excess = compare(wrong)
    return Result(
        data=label,
        header=(
            "weight of atoms, power",
            *(f"{column}, wrong of {n:,}" for column, n in columns.items()),
            f"together, wrong of {sum(n_each):,}",
            "more than the best",
            *(f"rotated, {n} neighbours a class" for n in size.neighbours),
        ),
        rows=tuple(
            (
                name,
                *map(str, totals[name]),
                str(totals[name].sum()),
                "{:g} ± {:.1f}".format(*excess[name]),
                *(f"{means[name][str(n)]:.4f}" for n in size.neighbours),
            )
            for name in HISTOGRAMS
        ),
        figures={
            "patches": Lines(
                "rotated images not learned from, with as many patches as a stride leaves",
                {name: totals[name][1:].tolist() for name in (CLASSES, DEFAULT, ATOMS)},
                [1, *trials.STRIDES],
                x_name="stride",
                y_name=f"wrong of {n_each[-1]:,}",
                is_log=False,
            )
        },
        numbers={
            "wrong": {n: dict(zip(columns, t.tolist(), strict=True)) for n, t in totals.items()},
            "more_than_best": excess,
            "best": best,
            "chosen": chosen,
            "error": means,
        },
        findings=_findings(means, wrong, size),
        notes=(NOTE.format(size.n_seeds),),
    )


def _judge(trial: Trial, neighbours: tuple[int, ...], wrong: Wrong, errors: Errors) -> None:
    """Add the errors of one trial with every histogram."""
    known = trial.known_label
    for column, counts, near in trial.comparisons():
        for name, distances in all_distances(counts, near).items():
            missed = known[distances.argmin(axis=1)] != trial.truth
            wrong[name][trials.COLUMNS.index(column), trial.places] += missed
            if column == trials.ROTATED:
                for n in neighbours:
                    errors[name][str(n)] += _few(distances, known, trial.truth, n)


def all_distances(counts: Integers, known: Integers) -> dict[str, Floats]:
    """(image, known image) χ² of every histogram.

    With a weight w of atoms it is that of classes plus w times that of atoms: up to a factor the χ²
    of the joined histograms.
    """
    n, b = known.sum(axis=(1, 2)).mean(), known[0].size
    found = {}
    for suffix, power in POWERS.items():
        classes = chi_square(_shares(counts.sum(2), power), _shares(known.sum(2), power))
        atoms = chi_square(_shares(counts, power), _shares(known, power))
        for name, (a, c) in WEIGHTS.items():
            weight = a * n / (n + c * b)
            found[name + suffix] = atoms if weight == math.inf else classes + weight * atoms
    return found


def _shares(counts: Integers, power: float) -> Floats:
    """(image, bin) powers of counts (image, ...), each row scaled to sum to one."""
    powers = counts.reshape(len(counts), -1) ** power
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


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


def compare(wrong: Wrong) -> tuple[str, str, dict[str, tuple[int, float]]]:
    """The histogram with the fewest wrong images, the chosen one, and how many more each has.

    An image x is wrong w(x) times in all columns together. Of a histogram that has Σ d(x) more,
    d = w − w of the best, the standard error is that of a sum over n independent images:
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
    more, error = excess[CLASSES]
    default, classes, atoms = (wrong[name].sum(axis=1) for name in (DEFAULT, CLASSES, ATOMS))
    few = str(min(size.neighbours))
    return (
        Finding.added(
            f"the default, atoms with {DEFAULT} of the weight of classes, is the nearest to the "
            "paper of the histograms within one standard error of the best",
            f"{default.sum()} are wrong; with {best}, the best, {wrong[best].sum()}; with classes "
            f"alone {classes.sum()} ({more} ± {error:.1f} more than the best), with atoms alone "
            f"{atoms.sum()}; nearest is {chosen}",
            chosen == DEFAULT,
        ),
        Finding.added(
            f"atoms alone need many patches and many neighbours: {trials.COLUMNS[-1]}, and with "
            f"{few} of each class, they are worse than classes",
            f"{atoms[-1]} are wrong against {classes[-1]} (both: {default[-1]}), and the error is "
            f"{means[ATOMS][few]:.4f} against {means[CLASSES][few]:.4f} (both: "
            f"{means[DEFAULT][few]:.4f})",
            bool(atoms[-1] > classes[-1]) and means[ATOMS][few] > means[CLASSES][few],
        ),
    )


EXPERIMENT = Experiment(
    name="texture-bins",
    title="Histograms of classes, of atoms, or both",
    paper="histograms of classes; others are not looked at",
    ours="of 9,600 classifications of training images not learned from, 116 are wrong with both "
    "(atoms with a quarter of the weight), 125 with classes, 258 with atoms: 14 ± 16 more with "
    "classes than with the best",
    needs=f"{trials.SUITE} in DSC_DATA (else drawn textures)",
    duration="about 8 minutes",
    run=run,
)
