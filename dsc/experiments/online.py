"""SPAMS online dictionary learning: what the paper's "K-SVD" rows really are."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

BATCH, N_BATCHES = 400, 1000  # as in the paper
OMP_MODE = 3  # the paper says mode 1, which in SPAMS is an ℓ1 problem


def has_spams() -> bool:
    """Whether SPAMS is installed (an extra: `pip install dsc[bench]`)."""
    return find_spec("spams") is not None


def online_error(pixels: NDArray[np.float32], n_atoms: int, sparsity: int, n_batches: int) -> float:
    """Learn online and code (patch, pixel) by SPAMS's own OMP: mean squared error per pixel."""
    import spams

    signals = np.asfortranarray(pixels.T)
    learning = {"mode": OMP_MODE, "lambda1": sparsity, "batchsize": BATCH, "iter": n_batches}
    atoms = spams.trainDL(signals, K=n_atoms, **learning, numThreads=1, verbose=False)
    codes = spams.omp(signals, np.asfortranarray(atoms), L=sparsity, eps=0.0, numThreads=1)
    return float(np.mean((signals - atoms @ codes).astype(np.float64) ** 2))
