"""Histograms, told apart by their nearest neighbour in the chi-square distance."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dsc.errors import DscError
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
    known = check_labels(labels)
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
    return known[table.argmin(axis=1)], class_distances(table, known, n_labels)


def class_distances(distances: Floats, labels: Ints, n_labels: int, n_near: int = 1) -> Floats:
    """(image, label) the mean distance of the nearest training images of each class.

    Of at most `n_near`; infinite for a class without any.

    Examples
    --------
    >>> class_distances(np.array([[0.5, 0.25, 1.0]]), np.array([0, 0, 1]), 3, n_near=2)
    array([[0.375, 1.   ,   inf]])
    """
    by_class = np.full((len(distances), n_labels), np.inf)
    for label in np.unique(labels):
        near = np.sort(distances[:, labels == label], axis=1)[:, :n_near]
        by_class[:, label] = near.mean(axis=1)
    return by_class


def own_distance(histograms: Floats, labels: ArrayLike, n_near: int = 1) -> float:
    """The mean distance of training images to the nearest other ones of their class.

    Of at most `n_near`. Images that are alone in their class do not count. Where all are, it is the
    mean distance to the nearest of all others.

    Examples
    --------
    >>> own_distance(np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), [0, 0, 1])
    0.0
    >>> own_distance(np.array([[1.0, 0.0], [0.0, 1.0]]), [0, 1])
    2.0
    """
    known = check_labels(labels)
    distances = chi_square(histograms, histograms)
    np.fill_diagonal(distances, np.inf)
    own = np.sort(np.where(known[:, None] == known, distances, np.inf), axis=1)[:, :n_near]
    own = own[np.isfinite(own[:, 0])]
    found = np.nanmean(np.where(np.isfinite(own), own, np.nan), axis=1)
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


def check_labels(labels: ArrayLike) -> Ints:
    """Labels as whole numbers from 0, (image,), or an error."""
    found = np.asarray(labels)
    if found.ndim != 1 or (found.size and found.dtype.kind not in "iu"):
        raise DscError(
            f"labels: found {found.dtype} of shape {found.shape}, need whole numbers (image,)"
        )
    if found.size and found.min() < 0:
        raise DscError(f"labels: found {found.min()}, need numbers from 0")
    return found.astype(np.int64)
