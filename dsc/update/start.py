"""Where learning starts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dsc.basis import SteerableBasis
from dsc.errors import DscError


def random_atoms(basis: SteerableBasis, n_atoms: int, seed: int = 0) -> NDArray[np.float32]:
    """Random unit vectors of the basis, evenly spread: (atom, coord)."""
    if n_atoms < 1:
        raise DscError(f"n_atoms: found {n_atoms}, need at least 1")
    atoms = np.random.default_rng(seed).standard_normal((n_atoms, basis.n_coords))
    atoms /= np.linalg.norm(atoms, axis=1, keepdims=True)
    return atoms.astype(np.float32)
