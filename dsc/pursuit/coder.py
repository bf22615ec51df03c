"""Rotational sparse coding: the `Coder`, and the `Codes` that it makes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dsc.basis import SteerableBasis, as_rows, bad_values, check_values, row_chunks
from dsc.errors import DscError, count_problem, unknown_choice
from dsc.pursuit import kernels, rotating, single, still
from dsc.pursuit.refining import FINER
from dsc.pursuit.tables import (
    MOST_STILL,
    Rotations,
    choice_tables,
    fine_cosines,
    rotation_tables,
    search_tables,
    still_tables,
)
from dsc.show import Card

EMPTY = kernels.EMPTY
DEFAULT_ANGLES = 60
PURSUITS = ("ols", "omp")
NORM_ACCURACY = 1e-3

Floats = NDArray[np.float32]
Indices = NDArray[np.uint16]


@dataclass(frozen=True, eq=False)
class Codes:
    """Sparse codes of patches: x_p ≈ Σ_k coef_pk · R(2π angle_pk / n_angles) d_{atom_pk}.

    Attributes
    ----------
    atom, angle
        (patch, slot) uint16, in the order they were chosen. A slot that was not needed has atom
        65535 (`EMPTY`), angle 0 and coefficient 0.
    coef
        (patch, slot) float32.
    error
        (patch,) float32, energy of the residual in coordinates.
    n_angles
        Size of the angle grid.
    """

    atom: Indices
    angle: Indices
    coef: Floats
    error: Floats
    n_angles: int

    def __len__(self) -> int:
        return len(self.atom)

    @staticmethod
    def join(parts: Sequence[Codes]) -> Codes:
        """The codes of consecutive patches as one."""
        return Codes(
            atom=np.concatenate([part.atom for part in parts]),
            angle=np.concatenate([part.angle for part in parts]),
            coef=np.concatenate([part.coef for part in parts]),
            error=np.concatenate([part.error for part in parts]),
            n_angles=parts[0].n_angles,
        )

    @property
    def sparsity(self) -> int:
        """Slots per patch."""
        return int(self.atom.shape[1])

    @property
    def used(self) -> NDArray[np.bool_]:
        """(patch, slot) True where a slot holds an atom."""
        return np.asarray(self.atom != EMPTY)

    def card(self) -> Card:
        """The key numbers, and how often each atom is used."""
        used = self.used
        return Card(
            f"codes of {len(self):,} patches",
            numbers={
                "atoms per patch": f"{used.sum() / max(1, len(self)):.2f} of {self.sparsity}",
                "angles": str(self.n_angles),
                "mean error": f"{self.error.mean() if len(self) else 0.0:.4g}",
            },
            bars=np.bincount(self.atom[used]).tolist(),
        )

    def _repr_html_(self) -> str:
        return self.card().html()

    @property
    def theta(self) -> NDArray[np.float64]:
        """(patch, slot) the angles in radians."""
        return np.asarray(self.angle * (2 * np.pi / self.n_angles))


@dataclass(frozen=True, eq=False)
class Coder:
    """Codes patches by rotated atoms.

    What the kernels look up is made once for an instance; only the fields travel to other
    processes.

    Attributes
    ----------
    atoms
        (atom, coord), unit norm.
    basis
        The basis of atoms and patches.
    sparsity
        Atoms per patch at most; it may exceed the number of atoms, which can repeat at other
        angles.
    n_angles
        Size of the angle grid.
    pursuit
        "ols", orthogonal least squares, takes the (atom, angle) that lowers the error most; "omp",
        orthogonal matching pursuit, that of largest correlation with the residual.
    refine
        Whether angles are refined between those of the grid, on one that is 64 times finer.
    """

    atoms: Floats
    basis: SteerableBasis
    sparsity: int
    n_angles: int
    pursuit: str = "ols"
    refine: bool = False

    def __post_init__(self) -> None:
        if self.pursuit not in PURSUITS:
            raise unknown_choice("pursuit", self.pursuit, PURSUITS)
        n_coords = self.basis.n_coords
        if problem := count_problem("sparsity", self.sparsity, 1, n_coords):
            raise DscError(f"{problem}, the coordinates of this basis")
        object.__setattr__(self, "sparsity", int(self.sparsity))
        object.__setattr__(self, "n_angles", check_angles(self.n_angles, self.basis, self.refine))
        object.__setattr__(self, "refine", bool(self.refine) and self.n_angles > 1)
        object.__setattr__(self, "atoms", check_atoms(self.atoms, self.basis))

    def __getstate__(self) -> dict[str, Any]:
        """The fields: tables are made again where they are needed."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    @property
    def sha256(self) -> str:
        """Hash of the atoms (little-endian float32 coordinates, C order)."""
        return hashlib.sha256(np.ascontiguousarray(self.atoms, "<f4").tobytes()).hexdigest()

    def encode(self, coords: ArrayLike, tolerance: float = 0.0) -> Codes:
        """Codes of patches (patch, coord), as from `basis.project`.

        Each step takes the (atom, angle) of largest score, ties to the lowest, then refits all
        coefficients. A patch keeps empty slots when nothing is left to gain: its residual is zero
        (below 1e-6 of its norm) or the next atom depends on those chosen. Coding stops once the
        residual energy (in coordinates) is at most `tolerance`.
        """
        if not tolerance >= 0:
            raise DscError(f"tolerance: found {tolerance}, need an energy ≥ 0")
        rows = as_rows(coords, self.basis.n_coords, "coords", "the coordinates of this basis")
        codes = Codes(
            atom=np.full((len(rows), self.sparsity), EMPTY, np.uint16),
            angle=np.zeros((len(rows), self.sparsity), np.uint16),
            coef=np.zeros((len(rows), self.sparsity), np.float32),
            error=np.zeros(len(rows), np.float32),
            n_angles=self.code_angles,
        )
        pursue, tables = self._pursuit
        for part, chunk in row_chunks(rows):
            bad = pursue(
                chunk,
                float(tolerance),
                *tables,
                codes.atom[part],
                codes.angle[part],
                codes.coef[part],
                codes.error[part],
            )
            if bad >= 0:
                raise bad_values(chunk, "coords", part.start)
        return codes

    def decode(self, codes: Codes) -> Floats:
        """Coordinates of codes: (patch, coord)."""
        check_codes(codes, len(self.atoms))
        coords = np.empty((len(codes), self.basis.n_coords), np.float32)
        kernels.synthesize(
            np.require(codes.atom, np.uint16, ["C", "W"]),
            np.require(codes.angle, np.uint16, ["C", "W"]),
            np.require(codes.coef, np.float32, ["C", "W"]),
            *self._rotations,
            coords,
        )
        return coords

    def measure(self, coords: ArrayLike, codes: Codes) -> tuple[Floats, float]:
        """What codes leave of patches: (patch, coord), and its energy in pixels.

        The energy is Σ rᵀ(ΦᵀΦ)r over patches: what lies outside the span is not in it.
        """
        rows = as_rows(coords, self.basis.n_coords, "coords", "the coordinates of this basis")
        if len(rows) != len(codes):
            raise DscError(f"codes: found {len(codes)} patches, need {len(rows)}, one per row")
        residual = self.decode(codes)
        for part, chunk in row_chunks(rows):
            check_values(chunk, "coords", part.start)
            np.subtract(chunk, residual[part], out=residual[part])
        if self.basis.is_orthonormal:
            return residual, float(codes.error.sum(dtype=np.float64))
        mapped = residual @ self.basis.gram
        return residual, float(np.einsum("pc,pc->", mapped, residual, dtype=np.float64))

    @property
    def code_angles(self) -> int:
        """Size of the grid on which the angles of codes are."""
        return self.n_angles * (FINER if self.refine else 1)

    @cached_property
    def _rotations(self) -> Rotations:
        """What rotates the atoms."""
        return rotation_tables(self.atoms, self.basis, self.code_angles)

    @cached_property
    def _pursuit(self) -> tuple[Callable[..., int], tuple[Any, ...]]:
        """The kernel that codes with these atoms, and what it looks up."""
        how = (self.sparsity, self.pursuit == "ols")
        if self.n_angles == 1 and len(self.atoms) <= MOST_STILL:
            return still.pursue, (*how, *still_tables(self.atoms))
        if self.sparsity == 1 and not self.refine:
            search = search_tables(self.atoms, self.basis, self.n_angles)
            return single.pursue, (*self._rotations, *search)
        choice = choice_tables(self.atoms, self.basis, self.n_angles, not self.refine)
        fine = fine_cosines(self.code_angles if self.refine else 0)
        return rotating.pursue, (*how, fine, *self._rotations, *choice)


class HowToCode(TypedDict, total=False):
    """Options of `encode`; see `Coder`."""

    pursuit: str
    refine: bool


def encode(
    coords: ArrayLike,
    atoms: ArrayLike,
    basis: SteerableBasis,
    sparsity: int,
    n_angles: int | None = None,
    tolerance: float = 0.0,
    **how: Unpack[HowToCode],
) -> Codes:
    """Code patches by rotated atoms; see `Coder.encode`.

    Parameters
    ----------
    coords
        (patch, coord), as from `basis.project`.
    atoms
        (atom, coord), unit norm.
    basis
        The basis of both.
    sparsity
        Atoms per patch at most.
    n_angles
        Size of the angle grid; None for 60, or 1 if nothing in the basis rotates.
    tolerance
        Stop coding a patch once its residual energy (in coordinates) is at most this; 0 by default.
    pursuit
        "ols" (the default) takes the (atom, angle) that lowers the error most, "omp" that of
        largest correlation with what is left.
    refine
        Whether angles are refined between those of the grid; False by default.

    Examples
    --------
    >>> import numpy as np
    >>> import dsc
    >>> basis = dsc.disk_basis(11)
    >>> atoms = dsc.random_atoms(basis, n_atoms=3, seed=0)
    >>> patch = 2 * basis.steer(atoms[1:2], np.pi / 3)
    >>> codes = dsc.encode(patch, atoms, basis, sparsity=2)
    >>> codes.atom.tolist(), codes.angle.tolist()
    ([[1, 65535]], [[10, 0]])
    """
    coder = Coder(np.asarray(atoms), basis, sparsity, check_angles(n_angles, basis), **how)
    return coder.encode(coords, tolerance)


def decode(codes: Codes, atoms: ArrayLike, basis: SteerableBasis) -> Floats:
    """Coordinates of codes: (patch, coord)."""
    return Coder(np.asarray(atoms), basis, 1, codes.n_angles).decode(codes)


def check_codes(codes: Codes, n_atoms: int) -> None:
    """Refuse codes that do not fit together, or that were made with more atoms."""
    shapes = [codes.atom.shape, codes.angle.shape, codes.coef.shape]
    if codes.atom.ndim != 2 or len(set(shapes)) > 1:
        raise DscError(f"codes: found shapes {shapes}, need (patch, slot) for all")
    highest = int(codes.atom.max(where=codes.used, initial=0))
    if highest >= n_atoms:
        raise DscError(
            f"atoms: found {n_atoms}, need at least {highest + 1}: "
            "these codes were made with another dictionary"
        )
    if codes.n_angles < 1 or int(codes.angle.max(initial=0)) >= codes.n_angles:
        raise DscError(
            f"codes: found angle {int(codes.angle.max(initial=0))}, need less than n_angles = "
            f"{codes.n_angles}"
        )
    if not np.isfinite(codes.coef).all():
        raise DscError("codes: found a coefficient that is no number, need finite ones")


def check_atoms(atoms: ArrayLike, basis: SteerableBasis) -> Floats:
    """A copy of atoms as float32, refused if they are not unit vectors of this basis."""
    rows = as_rows(atoms, basis.n_coords, "atoms", f"coordinates of the {basis.name} basis")
    if not 1 <= len(rows) < EMPTY:
        raise DscError(f"atoms: found {len(rows)}, need 1 to {EMPTY - 1}")
    with np.errstate(over="ignore"):
        dictionary = np.array(rows, np.float32, order="C")
    check_values(dictionary, "atoms")
    norms = np.linalg.norm(dictionary.astype(np.float64), axis=1)
    off = np.abs(norms - 1)
    if off.max() > NORM_ACCURACY:
        worst = int(off.argmax())
        raise DscError(
            f"atoms: found norm {norms[worst]:.4g} in atom {worst}, need unit norm in the "
            f"coordinates of the {basis.name} basis: divide each atom by its norm"
        )
    return dictionary


def check_angles(n_angles: int | None, basis: SteerableBasis, refine: bool = False) -> int:
    """The size of the angle grid, by default 60, or 1 where nothing rotates."""
    if n_angles is None:
        return DEFAULT_ANGLES if basis.max_frequency else 1
    most = EMPTY // FINER if refine else EMPTY
    if problem := count_problem("n_angles", n_angles, 1, most):
        raise DscError(f"{problem}, what a stored code can hold{' refined' if refine else ''}")
    return int(n_angles)
