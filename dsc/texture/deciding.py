"""The last step: from distances to training images to classes, and how likely each is."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from dsc.errors import DscError, count_problem
from dsc.texture.config import CLASS_NEAREST, NEAREST, SVM
from dsc.texture.machine import Machine, import_svc, learn_machine
from dsc.texture.neighbours import (
    Floats,
    Ints,
    check_labels,
    chi_square,
    class_distances,
    nearest,
    own_distance,
    probabilities,
)

N_NEAR = 3  # images of a class whose mean distance counts, with "class-nearest"


@dataclass(frozen=True, eq=False)
class Decision:
    """What images are taken for."""

    labels: Ints  # (image,)
    distances: Floats  # (image, label) χ² to each class
    scores: Floats  # (image, label) more is more likely: −distances, or those of a machine


@dataclass(frozen=True, eq=False)
class LastStep:
    """A classifier of histograms, which does not depend on the order of the training images.

    With equal distances, "nearest" takes the class of the first image, the others the first class.
    """

    classifier: str  # one of `CLASSIFIERS`
    histograms: Floats  # (image, bin) of the training images
    labels: Ints  # (image,) their classes, from 0
    n_labels: int

    def decide(self, distances: Floats) -> Decision:
        """The classes of images, from χ² (image, training image)."""
        if self.classifier == CLASS_NEAREST:
            by_class = class_distances(distances, self.labels, self.n_labels, N_NEAR)
            return Decision(by_class.argmin(axis=1), by_class, -by_class)
        first, by_class = nearest(distances, self.labels, self.n_labels)
        if self.classifier == NEAREST:
            return Decision(first, by_class, -by_class)
        known = np.unique(self.labels)
        scores = np.full(by_class.shape, -np.inf)
        scores[:, known] = self.machine.scores(distances)
        return Decision(scores.argmax(axis=1), by_class, scores)

    def probabilities(self, scores: Floats) -> Floats:
        """(image, label) exp(score / scale), each row divided by its sum."""
        return probabilities(-scores, self.scale)

    @cached_property
    def scale(self) -> float:
        """Of scores: how far training images are from others of their class; of a machine, fitted.

        See `own_distance` and `best_temperature`.
        """
        if self.classifier == SVM:
            return self.machine.temperature
        n_near = N_NEAR if self.classifier == CLASS_NEAREST else 1
        return own_distance(self.histograms, self.labels, n_near)

    @cached_property
    def machine(self) -> Machine:
        """The support vector machine; made anew wherever the training images are."""
        order = np.lexsort((*self.histograms.T, self.labels))
        return learn_machine(chi_square(self.histograms, self.histograms), order, self.labels)


def check_classifier(classifier: str) -> None:
    """Refuse, before anything is learned, a classifier whose library is not there."""
    if classifier == SVM:
        import_svc()


def cross_validate(
    histograms: Floats,
    labels: ArrayLike,
    held_out: float = 0.88,
    repeats: int = 100,
    seed: int = 0,
    classifier: str = NEAREST,
) -> Floats:
    """Hold out most of the training images at random and classify them by the others.

    `held_out` is the fraction of each class, of which at least one image stays. Gives the
    fraction of the held-out images that the classifier gives their label: (repeat,).
    """
    known = check_labels(labels)
    problems = []
    if len(known) != len(histograms):
        problems.append(f"labels: found {len(known)}, need one per histogram ({len(histograms)})")
    if not 0 < held_out < 1:
        problems.append(f"held_out: found {held_out}, need a fraction between 0 and 1")
    problems += filter(None, [count_problem("repeats", repeats, 1), count_problem("seed", seed, 0)])
    if problems:
        raise DscError("; ".join(problems))
    members = [np.flatnonzero(known == label) for label in np.unique(known)]
    n_kept = [max(1, round(len(some) * (1 - held_out))) for some in members]
    if sum(n_kept) == len(known):
        raise DscError(
            f"held_out: {held_out} of {len(known)} images in {len(members)} classes holds out "
            "none, need a larger fraction, or more images per class"
        )
    distances = chi_square(histograms, histograms)
    accuracy = np.empty(repeats)
    for repeat in range(repeats):
        rng = np.random.default_rng([seed, repeat])
        kept = np.zeros(len(known), bool)
        for some, n in zip(members, n_kept, strict=True):
            kept[rng.permutation(some)[:n]] = True
        step = LastStep(classifier, histograms[kept], known[kept], int(known.max()) + 1)
        found = step.decide(distances[np.ix_(~kept, kept)])
        accuracy[repeat] = np.mean(found.labels == known[~kept])
    return accuracy
