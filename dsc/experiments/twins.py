"""Atoms of a standard dictionary that are rotations of one another."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage

from dsc import disk_basis

ALIKE = 0.9  # correlation at the best angle from which two atoms count as one
N_TURNS = 120


def rotated_groups(images: NDArray[np.floating]) -> list[list[int]]:
    """Groups of two or more atoms, each of which is a rotation of every other, largest first.

    Compared without their means (a flat part is alike at any angle), in the disk basis, by the
    largest absolute correlation of two atoms over all rotations of one.
    """
    basis = disk_basis(images.shape[-1])
    pixels = np.asarray(images, np.float64)[:, basis.mask]
    coords = basis.project(pixels - pixels.mean(1, keepdims=True))
    coords = coords / np.maximum(np.linalg.norm(coords, axis=1, keepdims=True), 1e-12)
    n_atoms = len(coords)
    if n_atoms < 2:
        return []
    best = np.zeros((n_atoms, n_atoms))
    for theta in 2 * np.pi * np.arange(N_TURNS) / N_TURNS:
        best = np.maximum(best, np.abs(basis.steer(coords, theta) @ coords.T))
    apart = (1 - np.maximum(best, best.T))[np.triu_indices(n_atoms, 1)].clip(0)
    group = fcluster(linkage(apart, "complete"), 1 - ALIKE, "distance")
    groups = [np.flatnonzero(group == g).tolist() for g in np.unique(group)]
    return sorted((g for g in groups if len(g) > 1), key=len, reverse=True)
