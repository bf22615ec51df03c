"""What the labelling kernel looks up besides the `Search` of the pursuit.

A rotation multiplies the complex coordinates c + js of a frequency by one factor, so a unitary mix
of them changes no score. `Outline` mixes them such that a few hold most of the atoms' energy
(principal components of the atoms, frequency by frequency): these alone give a bound that is
nearly as good as that of all. `Details` holds all coordinates, frequencies as lanes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dsc.basis import SteerableBasis
from dsc.pursuit import Search, packed_order
from dsc.simd import LANES

ENERGY = 0.985  # of the atoms, in the components of an outline
ROUNDING = 2.0**-21  # of a float32 sum, for each of its terms; eight times what is needed

Floats = NDArray[np.float32]
Integers = NDArray[np.int64]


class Outline(NamedTuple):
    """The strongest components of atoms.

    mixes (value) what makes the components of a patch, in order: of frequency 0 real ones, a weight
    per coordinate; of the others complex ones, real and imaginary part of each weight. kept
    (packed frequency) components of each. parts (atom pair · (1 + values) · 2) the norm of what is
    left out, then the components, of two atoms side by side. slack: rounding of a bound, relative
    to the norm of the patch. strong (strong frequency) `kept` of frequency 0 and of those that have
    any, strong_even how many of them count as even, strong_table their part of the `table` of a
    `Search`, its last round twice if their number is odd.
    """

    mixes: Floats
    kept: Integers
    parts: Floats
    slack: float
    strong: Integers
    strong_even: int
    strong_table: Floats


class Details(NamedTuple):
    """All coordinates of atoms, eight frequencies at a time.

    atoms (atom, place): for each group of eight frequencies and radial index, eight cosines, then
    eight sines; place (packed coord) where each stands; radials (group) radial indices of each.
    """

    atoms: Floats
    place: Integers
    radials: Integers


def outline_of(atoms: Floats, basis: SteerableBasis, search: Search) -> Outline:
    """The outline of (atom, coord)."""
    frequencies = [*range(0, basis.max_frequency + 1, 2), *range(1, basis.max_frequency + 1, 2)]
    coords = [_complex(atoms, basis, t) for t in frequencies]
    mixes = [_components(z) for z in coords]
    mixed = [z @ mix.conj() for z, mix in zip(coords, mixes, strict=True)]
    kept = _strongest([(np.abs(y) ** 2).sum(0) for y in mixed])
    left_out = np.zeros(len(atoms))
    values, weights = [left_out[:, None]], []
    for t, n, y, mix in zip(frequencies, kept, mixed, mixes, strict=True):
        left_out += (np.abs(y[:, n:]) ** 2).sum(1)
        values.append(_interleaved(y[:, :n]) if t else y[:, :n].real)
        weights.append((_interleaved(mix[:, :n].T) if t else mix[:, :n].T.real).ravel())
    np.sqrt(left_out, out=left_out)
    table = np.concatenate(values, axis=1)
    pairs = np.zeros((len(table) + len(table) % 2, table.shape[1]), np.float32)
    pairs[: len(table)] = table
    n_terms = int(np.diff(basis.start).max()) + LANES
    strong = np.union1d([0], np.flatnonzero(kept))
    waves = search.table.reshape(search.n_rounds, len(frequencies), -1)
    if search.n_rounds % 2:
        waves = np.concatenate([waves, waves[-1:]])
    return Outline(
        mixes=np.concatenate(weights).astype(np.float32),
        kept=kept,
        parts=pairs.reshape(-1, 2, table.shape[1]).swapaxes(1, 2).ravel(),
        slack=ROUNDING * n_terms * max(1.0, float(np.linalg.norm(atoms, axis=1).max())),
        strong=kept[strong],
        strong_even=int((strong < search.n_even).sum()),
        strong_table=waves[:, strong].ravel(),
    )


def details_of(atoms: Floats, basis: SteerableBasis) -> Details:
    """The details of (atom, coord)."""
    n_radial = np.diff(basis.start) // np.where(np.arange(len(basis.start) - 1) == 0, 1, 2)
    groups = [n_radial[t : t + LANES] for t in range(0, len(n_radial), LANES)]
    radials = np.array([group.max() for group in groups])
    first = 2 * LANES * np.concatenate([[0], np.cumsum(radials)])
    place = np.empty(basis.n_coords, np.int64)
    for t, n in enumerate(n_radial):
        at = first[t // LANES] + 2 * LANES * np.arange(n) + t % LANES
        place[basis.start[t] : basis.start[t] + n] = at
        if t > 0:
            place[basis.start[t] + n : basis.start[t + 1]] = at + LANES
    table = np.zeros((len(atoms), first[-1]), np.float32)
    table[:, place] = atoms
    return Details(table, place[packed_order(basis)], radials)


def _complex(atoms: Floats, basis: SteerableBasis, t: int) -> NDArray[np.complex128]:
    """(atom, radial index) the coordinates c + js of one frequency."""
    values = atoms[:, basis.start[t] : basis.start[t + 1]].astype(np.float64)
    half = values.shape[1] // 2
    return np.asarray(values if t == 0 else values[:, :half] + 1j * values[:, half:], complex)


def _components(coords: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """(radial index, component) orthonormal, those that hold most of the energy first."""
    _, vectors = np.linalg.eigh(coords.T @ coords.conj())
    return vectors[:, ::-1].astype(np.complex128)


def _strongest(energies: list[NDArray[np.float64]]) -> Integers:
    """(frequency) the components that hold `ENERGY` at the least cost, frequency 0 first.

    A component of frequency 0 costs one multiplication, one of the others four.
    """
    of = np.repeat(np.arange(len(energies)), [some.size for some in energies])
    energy = np.concatenate(energies)
    order = np.lexsort((of, -energy * np.where(of == 0, 4, 1)))
    before = np.concatenate([[0], np.cumsum(energy[order])[:-1]])
    return np.bincount(of[order[before < ENERGY * energy.sum()]], minlength=len(energies))


def _interleaved(values: NDArray[np.complex128]) -> NDArray[np.float64]:
    """Real and imaginary parts side by side, along the last axis."""
    return np.stack([values.real, values.imag], axis=-1).reshape(len(values), 2 * values.shape[1])
