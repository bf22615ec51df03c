"""A support vector machine with the exponential χ² kernel, by scikit-learn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

from dsc.errors import DscError
from dsc.texture.neighbours import Floats, Ints

COSTS = (1.0, 10.0, 100.0, 1000.0)  # that are tried
UNTUNED = 100.0  # where no class has an image to spare
FOLDS = 5  # of the cross-validation, at most
TEMPERATURES = (-4.0, 4.0)  # natural logarithms of the least and the largest


def import_svc() -> Any:
    """scikit-learn's `SVC`, or an error that says how to get it."""
    try:
        from sklearn.svm import SVC
    except ModuleNotFoundError as error:
        raise DscError(
            "classifier 'svm' needs scikit-learn: pip install 'dsc[sklearn]', or use another one"
        ) from error
    return SVC


@dataclass(frozen=True, eq=False)
class Machine:
    """A fitted machine.

    The kernel of two images is exp(−χ² / scale), with the mean χ² of two training images. The cost
    C and the temperature of the probabilities are chosen by cross-validation on training images.
    """

    estimator: Any  # the `SVC`
    order: Ints  # (image,) the training images, in the order in which it has them
    scale: float  # of the distances
    cost: float  # C
    temperature: float  # of the scores

    def scores(self, distances: Floats) -> Floats:
        """(image, label) of χ² (image, training image): the largest is the class."""
        return _scores(self.estimator, np.exp(-distances[:, self.order] / self.scale))


def learn_machine(distances: Floats, order: Ints, labels: Ints) -> Machine:
    """Fit a machine to training images, from the χ² (image, image) between them.

    `order` is one that does not depend on how the images were given: then neither does the machine.
    Of the costs with the most images right in cross-validation, the smallest is taken.
    """
    svc = import_svc()
    sorted_distances, known = distances[np.ix_(order, order)], labels[order]
    pairs = sorted_distances[~np.eye(len(known), dtype=bool)]
    scale = float(pairs.mean()) if pairs.size and pairs.any() else 1.0
    kernel = np.exp(-sorted_distances / scale)
    fold = folds(known)
    held_out = fold >= 0
    cost, temperature = UNTUNED, 1.0
    if held_out.any():
        found = {c: _held_out_scores(svc, kernel, known, fold, c) for c in COSTS}
        classes = np.unique(known)
        right = {c: int((classes[s.argmax(1)] == known)[held_out].sum()) for c, s in found.items()}
        cost = max(COSTS, key=lambda c: (right[c], -c))
        truth = np.searchsorted(classes, known)[held_out]
        temperature = best_temperature(found[cost][held_out], truth)
    return Machine(_fit(svc, kernel, known, cost), order, scale, cost, temperature)


def folds(labels: Ints) -> Ints:
    """(image,) the part in which an image is held out; −1 for one that is alone in its class.

    Classes are spread evenly; of each some images stay, whichever part is held out.
    """
    rng = np.random.default_rng(0)
    found = np.full(len(labels), -1)
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        if len(members) > 1:
            found[rng.permutation(members)] = np.arange(len(members)) % min(FOLDS, len(members))
    return found


def best_temperature(scores: Floats, truth: Ints) -> float:
    """The temperature by which softmax(scores / temperature) has the least mean log loss.

    Of n images the true class is given the weight (n + 1) / (n + 2), the others share what is left,
    as Platt does: where all images are right, the temperature would go to zero.
    """
    n_images, n_labels = scores.shape
    weights = np.full(scores.shape, 1 / (n_images + 2) / (n_labels - 1))
    weights[np.arange(n_images), truth] = (n_images + 1) / (n_images + 2)

    def loss(logarithm: float) -> float:
        return float(-(weights * log_softmax(scores / np.exp(logarithm), axis=1)).sum(1).mean())

    found = minimize_scalar(loss, bounds=TEMPERATURES, method="bounded")
    return float(np.exp(found.x))


def _held_out_scores(svc: Any, kernel: Floats, labels: Ints, fold: Ints, cost: float) -> Floats:
    """(image, label) scores of images by machines that have not seen them; 0 if all have."""
    scores = np.zeros((len(labels), len(np.unique(labels))))
    for number in np.unique(fold[fold >= 0]):
        out = fold == number
        machine = _fit(svc, kernel[np.ix_(~out, ~out)], labels[~out], cost)
        scores[out] = _scores(machine, kernel[np.ix_(out, ~out)])
    return scores


def _fit(svc: Any, kernel: Floats, labels: Ints, cost: float) -> Any:
    return svc(kernel="precomputed", C=cost).fit(kernel, labels)


def _scores(machine: Any, kernel: NDArray[np.float64]) -> Floats:
    found = np.asarray(machine.decision_function(kernel), np.float64)
    return np.stack([-found, found], 1) if found.ndim == 1 else found  # two classes have one
