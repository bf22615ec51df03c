"""Dictionaries to compare: all learned at once, by SPAMS, and how alike the atoms of one are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any, TypeVar

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage

from dsc import Dictionary, LearnConfig, disk_basis, learn_many
from dsc.experiments.result import Floats

BATCH = 400  # patches in a batch of SPAMS, as in the paper
OMP_MODE = 3  # the paper says mode 1, which in SPAMS is an ℓ1 problem
ALIKE = 0.9  # correlation at the best angle from which two atoms count as one
N_ROTATIONS = 120

Key = TypeVar("Key")


def learn_all(patches: Any, configs: Mapping[Key, LearnConfig]) -> dict[Key, Dictionary]:
    """Learn from the same patches in every way, at once."""
    models = learn_many([(patches, config) for config in configs.values()], progress=False)
    return dict(zip(configs, models, strict=True))


def coded(model: Dictionary, squares: Floats) -> Floats:
    """Patches (patch, y, x) as a dictionary codes them."""
    codes = model.encode(squares, progress=False).codes
    assert codes is not None
    return model.decode(codes)


def online_errors(
    pixels: Floats, settings: Sequence[tuple[int, int]], n_batches: int
) -> dict[tuple[int, int], float]:
    """Learn (patch, pixel) online, what the paper's "K-SVD" rows really are, and code, by SPAMS.

    Returns the mean squared error per pixel by (atoms, sparsity), none where it is not installed.
    """
    if find_spec("spams") is None:
        return {}
    import spams  # an extra: `pip install dsc[bench]`

    signals, found = np.asfortranarray(pixels.T), {}
    for m, k in settings:
        learning = {"mode": OMP_MODE, "lambda1": k, "batchsize": BATCH, "iter": n_batches}
        atoms = spams.trainDL(signals, K=m, **learning, numThreads=1, verbose=False)
        codes = spams.omp(signals, np.asfortranarray(atoms), L=k, eps=0.0, numThreads=1)
        found[m, k] = float(np.mean((signals - atoms @ codes).astype(np.float64) ** 2))
    return found


def rotated_groups(images: Floats) -> list[list[int]]:
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
    for theta in 2 * np.pi * np.arange(N_ROTATIONS) / N_ROTATIONS:
        best = np.maximum(best, np.abs(basis.steer(coords, theta) @ coords.T))
    apart = (1 - np.maximum(best, best.T))[np.triu_indices(n_atoms, 1)].clip(0)
    group = fcluster(linkage(apart, "complete"), 1 - ALIKE, "distance")
    groups = [np.flatnonzero(group == g).tolist() for g in np.unique(group)]
    return sorted((g for g in groups if len(g) > 1), key=len, reverse=True)
