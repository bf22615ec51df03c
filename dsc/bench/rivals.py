"""Other ways to code with rotated atoms: all need the explicit dictionary of every rotation."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dsc.basis import SteerableBasis

Floats = NDArray[np.float32]
Encoder = Callable[[Floats, Floats, int], Floats]  # coords, augmented, sparsity → residuals

CHUNK = 1024


def augmented_dictionary(atoms: Floats, basis: SteerableBasis, n_angles: int) -> Floats:
    """All atoms at all angles: (atom · angle, coord)."""
    theta = np.tile(2 * np.pi * np.arange(n_angles) / n_angles, len(atoms))
    return basis.steer(np.repeat(atoms, n_angles, axis=0), theta)


def explicit_omp(coords: Floats, augmented: Floats, sparsity: int) -> Floats:
    """Plain OMP by a matrix product and an argmax per step; returns the residuals."""
    residuals = np.empty_like(coords)
    for begin in range(0, len(coords), CHUNK):
        x = coords[begin : begin + CHUNK]
        chosen = np.empty((len(x), 0), np.int64)
        residual = x
        for _ in range(sparsity):
            best = np.abs(residual @ augmented.T).argmax(axis=1)
            chosen = np.column_stack([chosen, best])
            columns = augmented[chosen]  # (patch, slot, coord)
            gram = columns @ columns.transpose(0, 2, 1)
            gram += 1e-6 * np.eye(gram.shape[1], dtype=np.float32)  # a repeated atom is singular
            coefs = np.linalg.solve(gram, columns @ x[:, :, None])
            residual = x - (coefs.transpose(0, 2, 1) @ columns)[:, 0]
        residuals[begin : begin + CHUNK] = residual
    return residuals


def spams_omp(coords: Floats, augmented: Floats, sparsity: int) -> Floats:
    """SPAMS, whose `omp` scores by the orthogonalised atom (so its error is lower)."""
    import spams  # an extra: only its own row needs it

    x, d = np.asfortranarray(coords.T), np.asfortranarray(augmented.T)
    codes = spams.omp(x, d, L=sparsity, eps=0.0, numThreads=1)
    return np.asarray(coords - (d @ codes).T, np.float32)


def sklearn_omp(coords: Floats, augmented: Floats, sparsity: int) -> Floats:
    """scikit-learn's sparse coder with OMP."""
    from sklearn.decomposition import sparse_encode

    codes = sparse_encode(
        coords, augmented, algorithm="omp", n_nonzero_coefs=sparsity, check_input=False
    )
    return np.asarray(coords - codes @ augmented, np.float32)


RIVALS: dict[str, tuple[str, Encoder]] = {  # the package that each needs
    "explicit rotations, BLAS + argmax": ("numpy", explicit_omp),
    "SPAMS omp": ("spams", spams_omp),
    "scikit-learn OMP (a slice, scaled)": ("sklearn", sklearn_omp),
}
