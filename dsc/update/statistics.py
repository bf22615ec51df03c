"""What one pass over the patches leaves for the dictionary update: values that merge.

All atoms are updated from the same codes, so each update needs only sums over patches:

- `ksvd`: G_m = Σ_p y yᵀ with y = R(−θ) residual + a d_m, over the patches that use atom m;
- `mod`: the normal equations of the joint least-squares problem, which fall apart by frequency.

Sums are float64.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dsc.basis import SteerableBasis
from dsc.basis.rows import as_rows, check_values, row_chunks
from dsc.errors import DscError, unknown_choice
from dsc.pursuit.omp import Codes, decode, prepare
from dsc.pursuit.tables import back_tables
from dsc.update import kernels
from dsc.update.worst import WorstPatches

Floats = NDArray[np.float32]
Sums = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Usage:
    """What both updates keep: how often each atom is used, and how well patches are coded.

    Attributes
    ----------
    count
        (atom,) how many slots hold the atom.
    n_patches
        Patches seen.
    sse
        Sum of their residual energies, in coordinates.
    pixel_sse
        The same in pixels, without what lies outside the span.
    worst
        The worst-coded ones, as many as there are atoms.
    """

    count: NDArray[np.int64]
    n_patches: int
    sse: float
    pixel_sse: float
    worst: WorstPatches

    def merge(self, other: Usage) -> Usage:
        """Usage over the patches of both."""
        if self.count.size != other.count.size:
            raise DscError(
                f"merge: found statistics of {self.count.size} and of {other.count.size} atoms, "
                "need those of one dictionary"
            )
        return Usage(
            self.count + other.count,
            self.n_patches + other.n_patches,
            self.sse + other.sse,
            self.pixel_sse + other.pixel_sse,
            self.worst.merge(other.worst),
        )


@dataclass(frozen=True, eq=False)
class KsvdStatistics:
    """Per-atom scatter matrices: `scatter` (atom, coord · (coord + 1) / 2), lower triangles."""

    usage: Usage
    scatter: Sums

    @classmethod
    def zero(cls, usage: Usage, n_atoms: int, basis: SteerableBasis) -> Self:
        """Sums over no patch."""
        return cls(usage, np.zeros((n_atoms, triangle_size(basis.n_coords))))

    def add(self, residual: Floats, codes: Codes, atoms: Floats, basis: SteerableBasis) -> None:
        """Add coded patches to the sums, in place."""
        kernels.scatter_sums(
            residual, codes.atom, codes.angle, codes.coef, atoms,
            *back_tables(basis, codes.n_angles), self.scatter,
        )  # fmt: skip

    def merge(self, other: Self) -> Self:
        """Statistics of the patches of both."""
        return type(self)(self.usage.merge(other.usage), self.scatter + other.scatter)


@dataclass(frozen=True, eq=False)
class ModStatistics:
    """Normal equations of all atoms: `normal` (T + 1, atom, atom), `right` (atom, coord)."""

    usage: Usage
    normal: NDArray[np.complex128]
    right: Sums

    @classmethod
    def zero(cls, usage: Usage, n_atoms: int, basis: SteerableBasis) -> Self:
        """Sums over no patch."""
        normal = np.zeros((basis.max_frequency + 1, n_atoms, n_atoms), np.complex128)
        return cls(usage, normal, np.zeros((n_atoms, basis.n_coords)))

    def add(
        self,
        residual: Floats,
        codes: Codes,
        atoms: Floats,  # noqa: ARG002 (the other update needs them)
        basis: SteerableBasis,
    ) -> None:
        """Add coded patches to the sums, in place."""
        kernels.joint_sums(
            residual, codes.atom, codes.angle, codes.coef, *back_tables(basis, codes.n_angles),
            *_waves(codes.n_angles, basis), self.normal, self.right,
        )  # fmt: skip

    def merge(self, other: Self) -> Self:
        """Statistics of the patches of both."""
        return type(self)(
            self.usage.merge(other.usage), self.normal + other.normal, self.right + other.right
        )


Statistics = KsvdStatistics | ModStatistics

UPDATES: dict[str, type[KsvdStatistics] | type[ModStatistics]] = {
    "ksvd": KsvdStatistics,
    "mod": ModStatistics,
}


def accumulate(
    coords: ArrayLike,
    codes: Codes,
    atoms: ArrayLike,
    basis: SteerableBasis,
    update: str = "ksvd",
    first_patch: int = 0,
    onto: Statistics | None = None,
) -> Statistics:
    """Statistics of coded patches for the dictionary update.

    Parameters
    ----------
    coords
        (patch, coord), what was coded.
    codes
        Their codes with `atoms`.
    atoms
        (atom, coord) unit norm.
    basis
        The basis of both.
    update
        "ksvd" or "mod".
    first_patch
        Number of the first patch in the whole set; decides ties among the worst-coded ones.
    onto
        Statistics of the patches before these, of the same update: the result continues them and
        takes over their arrays. Saves a merge.
    """
    if update not in UPDATES:
        raise unknown_choice("update", update, UPDATES)
    usage, residual = measure(coords, codes, atoms, basis, first_patch)
    dictionary = prepare(atoms, basis, codes.n_angles).atoms
    if onto is None:
        statistics: Statistics = UPDATES[update].zero(usage, len(dictionary), basis)
    elif isinstance(onto, UPDATES[update]):
        statistics = replace(onto, usage=onto.usage.merge(usage))
    else:
        raise DscError(f"onto: found {type(onto).__name__}, need statistics of update={update!r}")
    statistics.add(residual, codes, dictionary, basis)
    return statistics


def measure(
    coords: ArrayLike, codes: Codes, atoms: ArrayLike, basis: SteerableBasis, first_patch: int = 0
) -> tuple[Usage, Floats]:
    """How well patches are coded, and their residuals (patch, coord)."""
    rows = as_rows(coords, basis.n_coords, "coords", "the coordinates of this basis")
    if len(rows) != len(codes):
        raise DscError(f"codes: found {len(codes)} patches, need {len(rows)}, one per row")
    residual = decode(codes, atoms, basis)
    for part, chunk in row_chunks(rows):
        check_values(chunk, "coords", part.start)
        np.subtract(chunk, residual[part], out=residual[part])
    n_atoms = len(np.asarray(atoms))
    sse = float(codes.error.sum(dtype=np.float64))
    usage = Usage(
        count=np.bincount(codes.atom[codes.used], minlength=n_atoms),
        n_patches=len(rows),
        sse=sse,
        pixel_sse=sse if basis.is_orthonormal else _pixel_energy(residual, basis),
        worst=WorstPatches.of(codes.error, residual, first_patch, n_atoms),
    )
    return usage, residual


def statistics_bytes(update: str, n_atoms: int, basis: SteerableBasis) -> int:
    """Memory of one statistics value."""
    worst = n_atoms * (4 * basis.n_coords + 12)
    if update == "ksvd":
        return worst + 8 * n_atoms * triangle_size(basis.n_coords)
    return worst + 16 * n_atoms**2 * (basis.max_frequency + 1) + 8 * n_atoms * basis.n_coords


def triangle_size(n_coords: int) -> int:
    """Entries of the lower triangle of a matrix, its diagonal included."""
    return n_coords * (n_coords + 1) // 2


def worth_merging(n_atoms: int, sparsity: int) -> int:
    """Patches whose statistics take about as long to sum as to merge: 64 uses of each atom."""
    return -(-64 * n_atoms // sparsity)


def _pixel_energy(residual: Floats, basis: SteerableBasis) -> float:
    """Σ rᵀ(ΦᵀΦ)r over patches."""
    return float(np.einsum("pc,pc->", residual @ basis.gram, residual, dtype=np.float64))


def _waves(n_angles: int, basis: SteerableBasis) -> tuple[Sums, Sums]:
    """cos tθ and sin tθ: (angle, T + 1)."""
    steps = np.outer(np.arange(n_angles), np.arange(basis.max_frequency + 1)) % n_angles
    theta = 2 * np.pi * steps / n_angles
    return np.cos(theta), np.sin(theta)
