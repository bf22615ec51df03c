"""What one pass over the patches leaves for the dictionary update: values that merge.

All atoms are updated from the same codes, so each update needs only sums over patches:

- `ksvd`: G_m = Σ_p y yᵀ with y = R(−θ) residual + a d_m, over the patches that use atom m;
- `mod`: the normal equations of the joint least-squares problem, which fall apart by frequency.

Sums are float64.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dsc.basis import SteerableBasis
from dsc.errors import DscError, unknown_choice
from dsc.pursuit import Coder, Codes, back_tables
from dsc.update import kernels
from dsc.update.worst import SPARE, WorstPatches

Floats = NDArray[np.float32]
Sums = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Usage:
    """What both updates keep: how often each atom is used, and how well patches are coded."""

    count: NDArray[np.int64]  # (atom,) how many slots hold the atom
    n_patches: int  # patches seen
    sse: float  # sum of their residual energies, in coordinates
    pixel_sse: float  # the same in pixels, without what lies outside the span
    worst: WorstPatches  # the worst-coded ones, `SPARE` for each atom
    # sums over the patches, where they were asked for: of their energies outside the span of the
    # basis, of all of their energies in pixels, and of those about the mean of each patch
    rest: float = 0.0
    energy: float = 0.0
    variation: float = 0.0

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
            self.rest + other.rest,
            self.energy + other.energy,
            self.variation + other.variation,
        )


@dataclass(frozen=True, eq=False)
class MeasureStatistics:
    """Nothing but the usage: of a pass that updates no atom."""

    usage: Usage

    @classmethod
    def zero(cls, usage: Usage, coder: Coder) -> Self:  # noqa: ARG003 (the updates use it)
        """Sums over no patch."""
        return cls(usage)

    def add(self, residual: Floats, codes: Codes, coder: Coder) -> None:
        """Add coded patches to the sums: there are none."""

    def merge(self, other: Self) -> Self:
        """Statistics of the patches of both."""
        return type(self)(self.usage.merge(other.usage))


@dataclass(frozen=True, eq=False)
class KsvdStatistics:
    """Per-atom scatter matrices: `scatter` (atom, coord · (coord + 1) / 2), lower triangles."""

    usage: Usage
    scatter: Sums

    @classmethod
    def zero(cls, usage: Usage, coder: Coder) -> Self:
        """Sums over no patch."""
        return cls(usage, np.zeros((len(coder.atoms), triangle_size(coder.basis.n_coords))))

    def add(self, residual: Floats, codes: Codes, coder: Coder) -> None:
        """Add coded patches to the sums, in place."""
        kernels.scatter_sums(
            residual, codes.atom, codes.angle, codes.coef, coder.atoms,
            *back_tables(coder.basis, codes.n_angles), self.scatter,
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
    def zero(cls, usage: Usage, coder: Coder) -> Self:
        """Sums over no patch."""
        n_atoms, n_coords = coder.atoms.shape
        normal = np.zeros((coder.basis.max_frequency + 1, n_atoms, n_atoms), np.complex128)
        return cls(usage, normal, np.zeros((n_atoms, n_coords)))

    def add(self, residual: Floats, codes: Codes, coder: Coder) -> None:
        """Add coded patches to the sums, in place; waves are cos tθ and sin tθ (angle, T + 1)."""
        n_angles = codes.n_angles
        frequencies = np.arange(coder.basis.max_frequency + 1)
        theta = 2 * np.pi * (np.outer(np.arange(n_angles), frequencies) % n_angles) / n_angles
        kernels.joint_sums(
            residual, codes.atom, codes.angle, codes.coef, *back_tables(coder.basis, n_angles),
            np.cos(theta), np.sin(theta), self.normal, self.right,
        )  # fmt: skip

    def merge(self, other: Self) -> Self:
        """Statistics of the patches of both."""
        return type(self)(
            self.usage.merge(other.usage), self.normal + other.normal, self.right + other.right
        )


Statistics = KsvdStatistics | ModStatistics
AnyStatistics = Statistics | MeasureStatistics

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
    """
    if update not in UPDATES:
        raise unknown_choice("update", update, UPDATES)
    coder = Coder(np.asarray(atoms), basis, 1, codes.n_angles)
    usage, residual = measure(coder, coords, codes, first_patch)
    statistics = UPDATES[update].zero(usage, coder)
    statistics.add(residual, codes, coder)
    return statistics


def measure(
    coder: Coder, coords: ArrayLike, codes: Codes, first_patch: int = 0, rest: float = 0.0
) -> tuple[Usage, Floats]:
    """How well patches are coded, and their residuals (patch, coord)."""
    residual, pixel_sse = coder.measure(coords, codes)
    n_atoms = len(coder.atoms)
    usage = Usage(
        count=np.bincount(codes.atom[codes.used], minlength=n_atoms),
        n_patches=len(codes),
        sse=float(codes.error.sum(dtype=np.float64)),
        pixel_sse=pixel_sse,
        worst=WorstPatches.of(codes.error, residual, first_patch, SPARE * n_atoms),
        rest=rest,
    )
    return usage, residual


def patch_energy(coords: Floats, rest: float, basis: SteerableBasis) -> tuple[float, float]:
    """Energy in pixels of patches (patch, coord), and that about the mean of each channel.

    Σ xᵀ(ΦᵀΦ)x + rest, and the same less Σ (1ᵀΦx)² / pixels of each channel. The sum of a block has
    the same bits whatever is around it.
    """
    mapped = coords if basis.is_orthonormal else coords @ basis.gram
    energy = float(np.einsum("pc,pc->", mapped, coords, dtype=np.float64)) + rest
    about = energy
    for sums in basis.sums:
        totals = np.einsum("pc,c->p", coords, sums, dtype=np.float64)
        about -= float(np.einsum("p,p->", totals, totals)) / len(basis.matrix)
    return energy, max(0.0, about)


def statistics_bytes(update: str, n_atoms: int, basis: SteerableBasis) -> int:
    """Memory of one statistics value."""
    worst = SPARE * n_atoms * (4 * basis.n_coords + 12)
    if update == "ksvd":
        return worst + 8 * n_atoms * triangle_size(basis.n_coords)
    return worst + 16 * n_atoms**2 * (basis.max_frequency + 1) + 8 * n_atoms * basis.n_coords


def solve_bytes(update: str, n_atoms: int, basis: SteerableBasis, with_twins: bool) -> int:
    """Work space of `solve`, besides the statistics; more where twins are replaced.

    A scatter matrix, where its triangle goes, and what `eigh` copies of it; the spectrum of all
    pairs of atoms, and what `pinv` makes of one of its matrices; some copies of the atoms; how much
    one of them is like all others, at all angles.
    """
    pairs = 8 * (update == "mod") + (basis.max_frequency + 4) * with_twins
    squares = 40 * basis.n_coords**2 * (update == "ksvd")
    likeness = 160 * n_atoms * (basis.max_frequency + 1)
    return squares + 16 * n_atoms**2 * pairs + 64 * n_atoms * basis.n_coords + likeness


def triangle_size(n_coords: int) -> int:
    """Entries of the lower triangle of a matrix, its diagonal included."""
    return n_coords * (n_coords + 1) // 2


def merge_patches(n_atoms: int, sparsity: int) -> int:
    """Patches whose statistics take about as long to sum as to merge: 64 uses of each atom."""
    return -(-64 * n_atoms // sparsity)
