"""Atoms of a standard dictionary that are rotations of one another."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage

from dsc import disk_basis

ALIKE = 0.9  # correlation at the best angle from which two atoms count as one
N_TURNS = 120


def likeness_over_turns(
    images: NDArray[np.floating], n_turns: int = N_TURNS
) -> NDArray[np.float64]:
    """(atom, atom) largest absolute correlation of two atoms over all rotations of one.

    Compared without their means (a flat part is alike at any angle), in the disk basis.

    Parameters
    ----------
    images
        (atom, y, x), anything outside the disk is ignored.
    n_turns
        Angles tried.
    """
    basis = disk_basis(images.shape[-1])
    pixels = np.asarray(images, np.float64)[:, basis.mask]
    coords = basis.project(pixels - pixels.mean(1, keepdims=True))
    norms = np.linalg.norm(coords, axis=1, keepdims=True)
    coords = coords / np.maximum(norms, 1e-12)
    best = np.zeros((len(coords), len(coords)))
    for theta in 2 * np.pi * np.arange(n_turns) / n_turns:
        best = np.maximum(best, np.abs(basis.steer(coords, theta) @ coords.T))
    return np.maximum(best, best.T)


def rotated_groups(images: NDArray[np.floating], alike: float = ALIKE) -> list[list[int]]:
    """Groups of two or more atoms, each of which is a rotation of every other, largest first."""
    apart = 1 - likeness_over_turns(images)
    if len(apart) < 2:
        return []
    pairs = apart[np.triu_indices(len(apart), 1)].clip(0)
    group = fcluster(linkage(pairs, "complete"), 1 - alike, "distance")
    groups = [np.flatnonzero(group == g).tolist() for g in np.unique(group)]
    return sorted((g for g in groups if len(g) > 1), key=len, reverse=True)
