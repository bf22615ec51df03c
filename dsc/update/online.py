"""Updates from batches: running normal equations of all atoms, in which earlier batches fade.

With w_m = Σ a e^{jtθ} the code of a patch, frequency by frequency, N = Σ γ^age w* w and
B = Σ γ^age w* x over all patches so far, the atoms d minimise the surrogate

    F(d) = Σ γ^age ‖x − w d‖² = d* N d − 2 Re d* B + constant.

Kept is not B but what is left of it with the present atoms, ρ = B − N d: the same sum over the
residuals as in a pass of `mod`, so the statistics of a batch coded with d are simply added, and the
solution is the same correction, d + N⁺ρ. When atoms become d′, ρ becomes ρ − N (d′ − d).

A solution s u of norm s is the atom u with all codes so far multiplied by s: N[m, m′] becomes
s_m N[m, m′] s_m′, and ρ[m] becomes s_m ρ[m]. F at the new atoms and codes is F at the solution, so
it cannot rise. A lost atom starts again with no statistics; to the others, what it gave to earlier
patches stays as it was.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dsc.basis import SteerableBasis
from dsc.pursuit import Coder
from dsc.update.atoms import Floats, Sums, joint_least_squares, restart
from dsc.update.statistics import ModStatistics, merge_patches


@dataclass(frozen=True, eq=False)
class Running:
    """What an online update keeps of all batches so far."""

    normal: NDArray[np.complex128]  # N (T + 1, atom, atom)
    right: Sums  # ρ (atom, coord), with respect to the present atoms
    idle: NDArray[np.int64]  # (atom,) patches since it was last used

    @staticmethod
    def start(n_atoms: int, basis: SteerableBasis) -> Running:
        """Before the first batch."""
        return Running(
            np.zeros((basis.max_frequency + 1, n_atoms, n_atoms), np.complex128),
            np.zeros((n_atoms, basis.n_coords)),
            np.zeros(n_atoms, np.int64),
        )


def update_online(
    running: Running, batch: ModStatistics, coder: Coder, forget: float
) -> tuple[Floats, Running]:
    """New unit-norm atoms (atom, coord) after a batch, and what is kept for the next one.

    Parameters
    ----------
    running
        What the batches before have left.
    batch
        Statistics of patches that `coder` has coded.
    coder
        Codes with the present atoms.
    forget
        Share of the earlier statistics that is forgotten: γ = 1 − forget.
    """
    old, basis, usage = coder.atoms.astype(np.float64), coder.basis, batch.usage
    fade = 1.0 - forget
    normal, right = fade * running.normal + batch.normal, fade * running.right + batch.right
    idle = np.where(usage.count > 0, 0, running.idle + usage.n_patches)
    lost = idle >= merge_patches(len(old), coder.sparsity)

    solution = joint_least_squares(ModStatistics(usage, normal, right), old, basis)
    norms = np.linalg.norm(solution, axis=1, keepdims=True)
    unit = np.divide(solution, norms, out=old.copy(), where=norms > 0).astype(np.float32)
    change = np.where(lost[:, None], 0.0, norms * unit - old)
    right = norms * (right - times(normal, change, basis))
    normal = norms * normal * norms.T
    if lost.any():
        unit = restart(unit.astype(np.float64), lost, usage.worst, basis).astype(np.float32)
        normal[:, lost], normal[:, :, lost], right[lost], idle[lost] = 0, 0, 0, 0
    return unit, Running(normal, right, idle)


def times(normal: NDArray[np.complex128], change: Sums, basis: SteerableBasis) -> Sums:
    """N d, frequency by frequency: (atom, coord)."""
    product = np.zeros_like(change)
    for t, (begin, end) in enumerate(pairwise(basis.start)):
        if t == 0:
            product[:, begin:end] = normal[0].real @ change[:, begin:end]
        elif end > begin:
            cos, sin = np.split(change[:, begin:end], 2, axis=1)
            complex_product = normal[t] @ (cos + 1j * sin)
            product[:, begin:end] = np.hstack([complex_product.real, complex_product.imag])
    return product
