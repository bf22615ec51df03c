"""Histograms, told apart by their nearest neighbour in the chi-square distance."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dsc.errors import DscError, count_problem
from dsc.texture import kernels

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def chi_square(a: ArrayLike, b: ArrayLike) -> Floats:
    """Distances Σ (a − b)² / (a + b) of all pairs of histograms, with 0/0 = 0.

    Parameters
    ----------
    a, b
        Histograms, not negative: (image, bin).

    Returns
    -------
    (image of `a`, image of `b`). A distance depends on its two histograms only, to the last
    bit, and is the same if they change places.

    Examples
    --------
    >>> chi_square([[0.5, 0.5, 0]], [[0.5, 0.5, 0], [0, 0, 1]])
    array([[0., 2.]])
    """
    rows, columns = np.asarray(a, np.float64), np.asarray(b, np.float64)
    problems = []
    for name, table in (("a", rows), ("b", columns)):
        if table.ndim != 2:
            problems.append(f"{name}: found shape {table.shape}, need (image, bin)")
        elif not (np.isfinite(table).all() and (table >= 0).all()):
            problems.append(f"{name}: found negative or infinite values or NaN, need histograms")
    if problems:
        raise DscError("; ".join(problems))
    if rows.shape[1] != columns.shape[1]:
        raise DscError(
            f"histograms: found {rows.shape[1]} and {columns.shape[1]} bins, need as many in both"
        )
    distances = np.zeros((len(rows), len(columns)))
    kernels.add_chi_square(
        np.require(rows, requirements=["C", "W"]), np.array(columns.T, order="C"), distances
    )
    return distances


def nearest(distances: ArrayLike, labels: ArrayLike, n_labels: int) -> tuple[Ints, Floats]:
    """The label of the nearest training image, and how far each class is.

    From distances (image, training image) and the class of each training image, from 0: the
    predicted labels (image,), equal distances going to the first training image; and the
    smallest distance to each class (image, label), infinite for one without training images.

    Examples
    --------
    >>> nearest([[0.3, 0.1, 0.2]], [0, 1, 1], 3)
    (array([1]), array([[0.3, 0.1, inf]]))
    """
    table = np.asarray(distances, np.float64)
    known = _check_labels(labels)
    problems = []
    if table.ndim != 2 or table.shape[1] == 0:
        problems.append(f"distances: found shape {table.shape}, need (image, training image)")
    elif len(known) != table.shape[1]:
        problems.append(f"labels: found {len(known)}, need one per column ({table.shape[1]})")
    if np.isnan(table).any():
        problems.append("distances: found NaN")
    if len(known) and not known.max() < n_labels:
        problems.append(f"labels: found {known.max()}, need less than n_labels ({n_labels})")
    if problems:
        raise DscError("; ".join(problems))
    by_class = np.full((len(table), n_labels), np.inf)
    for label in np.unique(known):
        by_class[:, label] = table[:, known == label].min(axis=1)
    return known[table.argmin(axis=1)], by_class


def own_distance(histograms: Floats, labels: ArrayLike) -> float:
    """The mean distance of training images to the nearest other one of their class.

    Images that are alone in their class do not count. Where all are, it is the mean distance to
    the nearest of all others.

    Examples
    --------
    >>> own_distance(np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), [0, 0, 1])
    0.0
    >>> own_distance(np.array([[1.0, 0.0], [0.0, 1.0]]), [0, 1])
    2.0
    """
    known = _check_labels(labels)
    distances = chi_square(histograms, histograms)
    np.fill_diagonal(distances, np.inf)
    own = np.where(known[:, None] == known, distances, np.inf).min(axis=1)
    found = own[np.isfinite(own)]
    return float((found if found.size else distances.min(axis=1)).mean())


def probabilities(distances: Floats, scale: float) -> Floats:
    """(image, label) exp(−distance / scale), each row divided by its sum.

    From distances (image, label). Where the scale is zero, the nearest classes share the row.

    Examples
    --------
    >>> probabilities(np.array([[0.0, np.log(3)]]), 1).round(9)
    array([[0.75, 0.25]])
    """
    farther = distances - distances.min(axis=1, keepdims=True)
    with np.errstate(over="ignore"):  # an infinite one has no weight
        weights = np.exp(-farther / max(scale, np.finfo(np.float64).tiny))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def cross_validate(
    histograms: Floats, labels: ArrayLike, held_out: float = 0.88, repeats: int = 100, seed: int = 0
) -> Floats:
    """Hold out most of the training images at random and classify them by the others.

    `held_out` is the fraction of each class, of which at least one image stays. Gives the
    fraction of the held-out images whose nearest neighbour has their label: (repeat,).
    """
    known = _check_labels(labels)
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
        found = known[kept][distances[np.ix_(~kept, kept)].argmin(axis=1)]
        accuracy[repeat] = np.mean(found == known[~kept])
    return accuracy


def _check_labels(labels: ArrayLike) -> Ints:
    found = np.asarray(labels)
    if found.ndim != 1 or (found.size and found.dtype.kind not in "iu"):
        raise DscError(
            f"labels: found {found.dtype} of shape {found.shape}, need whole numbers (image,)"
        )
    if found.size and found.min() < 0:
        raise DscError(f"labels: found {found.min()}, need numbers from 0")
    return found.astype(np.int64)
