"""Rotational orthogonal matching pursuit: `encode`, `decode` and the `Codes` between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dsc.basis import SteerableBasis
from dsc.basis.rows import as_rows, bad_values, check_values, row_chunks
from dsc.errors import DscError
from dsc.pursuit import kernels, still
from dsc.pursuit.tables import Turns, search_tables, still_tables, turn_tables

EMPTY = kernels.EMPTY
DEFAULT_ANGLES = 60
NORM_ACCURACY = 1e-3
MOST_STILL = 2048  # atoms whose Gram matrix is kept, 16 MB of it

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

    @property
    def theta(self) -> NDArray[np.float64]:
        """(patch, slot) the angles in radians."""
        return np.asarray(self.angle * (2 * np.pi / self.n_angles))


def encode(
    coords: ArrayLike,
    atoms: ArrayLike,
    basis: SteerableBasis,
    sparsity: int,
    n_angles: int | None = None,
    tolerance: float = 0.0,
) -> Codes:
    """Code patches by rotated atoms with orthogonal matching pursuit.

    Each step takes the (atom, angle) of largest absolute correlation with the residual, ties to
    the lowest, then refits all coefficients. A patch keeps empty slots when nothing is left to
    gain: its residual is zero (below 1e-6 of its norm) or the next atom depends on those chosen.

    Parameters
    ----------
    coords
        (patch, coord), as from `basis.project`.
    atoms
        (atom, coord), unit norm.
    basis
        The basis of both.
    sparsity
        Atoms per patch at most; it may exceed the number of atoms, which can repeat at other
        angles.
    n_angles
        Size of the angle grid; None for 60, or 1 if nothing in the basis turns.
    tolerance
        Stop coding a patch once its residual energy (in coordinates) is at most this.

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
    prepared = prepare(atoms, basis, check_angles(n_angles, basis))
    return encode_prepared(coords, prepared, sparsity, tolerance)


def encode_prepared(
    coords: ArrayLike, prepared: Prepared, sparsity: int, tolerance: float = 0.0
) -> Codes:
    """`encode`, by atoms that are prepared already."""
    basis = prepared.basis
    sparsity = _check_count(sparsity, "sparsity", basis.n_coords, "the coordinates of this basis")
    if not tolerance >= 0:
        raise DscError(f"tolerance: found {tolerance}, need an energy ≥ 0")
    rows = as_rows(coords, basis.n_coords, "coords", "the coordinates of this basis")

    codes = Codes(
        atom=np.full((len(rows), sparsity), EMPTY, np.uint16),
        angle=np.zeros((len(rows), sparsity), np.uint16),
        coef=np.zeros((len(rows), sparsity), np.float32),
        error=np.zeros(len(rows), np.float32),
        n_angles=prepared.n_angles,
    )
    for part, chunk in row_chunks(rows):
        bad = prepared.pursue(
            chunk,
            float(tolerance),
            sparsity,
            *prepared.tables,
            codes.atom[part],
            codes.angle[part],
            codes.coef[part],
            codes.error[part],
        )
        if bad >= 0:
            raise bad_values(chunk, "coords", part.start)
    return codes


def decode(codes: Codes, atoms: ArrayLike, basis: SteerableBasis) -> Floats:
    """Coordinates of codes: (patch, coord)."""
    rows = _atom_rows(atoms, basis)
    check_codes(codes, len(rows))
    coords = np.empty((len(codes), basis.n_coords), np.float32)
    kernels.synthesize(
        np.require(codes.atom, np.uint16, ["C", "W"]),
        np.require(codes.angle, np.uint16, ["C", "W"]),
        np.require(codes.coef, np.float32, ["C", "W"]),
        *prepare(rows, basis, codes.n_angles).turns,
        coords,
    )
    return coords


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


class Prepared(NamedTuple):
    """Atoms that were checked, the kernel that codes with them, and what kernels look up."""

    atoms: Floats
    basis: SteerableBasis
    n_angles: int
    turns: Turns
    pursue: Callable[..., int]
    tables: tuple[Any, ...]


def prepare(atoms: ArrayLike, basis: SteerableBasis, n_angles: int) -> Prepared:
    """Check atoms and make their tables, once for all the blocks that are coded with them."""
    return _prepare(_atom_rows(atoms, basis).tobytes(), basis, n_angles)


@lru_cache(maxsize=4)  # blocks of a task come with the same atoms; some tasks run side by side
def _prepare(atoms: bytes, basis: SteerableBasis, n_angles: int) -> Prepared:
    rows = np.frombuffer(atoms, np.float32).reshape(-1, basis.n_coords)
    dictionary = check_atoms(rows, basis)
    turns = turn_tables(dictionary, basis, n_angles)
    if n_angles == 1 and len(dictionary) <= MOST_STILL:
        tables = still_tables(dictionary)
        return Prepared(dictionary, basis, n_angles, turns, still.pursue, tables)
    search = search_tables(dictionary, basis, n_angles)
    return Prepared(dictionary, basis, n_angles, turns, kernels.pursue, (*turns, *search))


def check_atoms(atoms: ArrayLike, basis: SteerableBasis) -> Floats:
    """Atoms as float32, refused if they are not unit vectors of this basis."""
    dictionary = _atom_rows(atoms, basis)
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


def _atom_rows(atoms: ArrayLike, basis: SteerableBasis) -> Floats:
    """A copy of atoms as float32."""
    rows = as_rows(atoms, basis.n_coords, "atoms", f"coordinates of the {basis.name} basis")
    if not 1 <= len(rows) < EMPTY:
        raise DscError(f"atoms: found {len(rows)}, need 1 to {EMPTY - 1}")
    with np.errstate(over="ignore"):
        return np.array(rows, np.float32, order="C")


def check_angles(n_angles: int | None, basis: SteerableBasis) -> int:
    """The size of the angle grid, by default 60, or 1 where nothing turns."""
    if n_angles is None:
        return DEFAULT_ANGLES if basis.max_frequency else 1
    return _check_count(n_angles, "n_angles", EMPTY, "what a stored code can hold")


def _check_count(value: int, name: str, most: int, why: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise DscError(f"{name}: found {value!r}, need a whole number")
    if not 1 <= value <= most:
        raise DscError(f"{name}: found {value}, need 1 to {most} ({why})")
    return int(value)
