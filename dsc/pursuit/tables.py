"""What the pursuit kernels look up: waves of the angle grid, and atoms in the order of the loops.

The kernels work in a *packed* order: frequencies 0, 2, 4, …, then 1, 3, 5, …; within a frequency
each cosine coordinate is followed by its sine.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dsc.basis import SteerableBasis
from dsc.pursuit import rotating, still
from dsc.pursuit.kernels import ANGLES
from dsc.pursuit.refining import FINER
from dsc.simd import LANES

# Bytes of products of pairs of atoms; beyond, they are made when needed. The table halves the time
# of coding whatever its size (50 to 800 atoms tried, N = 11, K = 4): memory alone limits it.
MOST_PAIRS = 2**25
MOST_STILL = 2048  # atoms whose Gram matrix is kept, 16 MB of it

Floats = NDArray[np.float32]
Integers = NDArray[np.int64]


class Rotations(NamedTuple):
    """What rotates an atom by a grid angle: R(θ) d = d · cos + swapped · sin.

    atoms and swapped (atom, packed coord padded), the latter with each (cos, sin) pair exchanged;
    order (packed coord) the coordinate that stands there; cos and sin (angle, packed coord padded).
    """

    atoms: Floats
    swapped: Floats
    order: NDArray[np.uint32]
    cos: Floats
    sin: Floats


class Still(NamedTuple):
    """What codes with atoms that do not rotate.

    order (coord) the coordinates as they are; atoms (atom, coord padded); columns (coord, atom
    padded) their transpose; squares (atom, atom padded) their Gram matrix.
    """

    order: NDArray[np.uint32]
    atoms: Floats
    columns: Floats
    squares: Floats


class Search(NamedTuple):
    """What finds the best (atom, angle) of a residual.

    packed (atom pair · packed coord · 2) the atoms two by two; rows_of (frequency) the number of
    coordinates of each; n_even how many frequencies count as even: all, where the number of angles
    is no multiple of four; table (round · frequency · 2 · ANGLES) cosines and sines of the folded
    angles; n_rounds of them.
    """

    packed: Floats
    rows_of: Integers
    n_even: int
    table: Floats
    n_rounds: int


class Choice(NamedTuple):
    """What chooses one (atom, angle) of a patch after the other.

    columns (group · packed coord · LANES) the atoms, eight side by side; rows_of and n_even as in
    `Search`; table as there, with more angles instead of nothing after the folded ones; pair (atom
    · atom · angle) the products of pairs of atoms from −2π on, empty where they are made when
    needed.
    """

    columns: Floats
    rows_of: Integers
    n_even: int
    table: Floats
    pair: Floats


def rotation_tables(atoms: Floats, basis: SteerableBasis, n_angles: int) -> Rotations:
    """The rotations of these atoms on a grid of `n_angles`."""
    order, partner, cos, sin = _coordinate_waves(basis.frequency.tobytes(), n_angles)
    packed = atoms[:, order]
    return Rotations(_pad(packed, LANES), _pad(packed[:, partner], LANES), order, cos, sin)


def still_tables(atoms: Floats) -> Still:
    """The tables of these atoms at one angle."""
    n_atoms, n_coords = atoms.shape
    rows = _pad(atoms, LANES)
    squares = np.zeros((n_atoms, -(-n_atoms // LANES) * LANES), np.float32)
    still.gram(rows, squares)
    return Still(np.arange(n_coords, dtype=np.uint32), rows, _pad(atoms.T, LANES), squares)


def back_tables(
    basis: SteerableBasis, n_angles: int
) -> tuple[NDArray[np.uint32], Floats, Floats, Floats]:
    """What rotates coordinates back: packed order, cos, and sin on cosines and on sines apart.

    R(−θ): c' = c cos + s sin and s' = s cos − c sin, with s the next and c the previous neighbour.
    """
    return _back_waves(basis.frequency.tobytes(), n_angles)


@lru_cache(maxsize=8)
def _back_waves(
    frequency_bytes: bytes, n_angles: int
) -> tuple[NDArray[np.uint32], Floats, Floats, Floats]:
    order, partner, cos, sin = _coordinate_waves(frequency_bytes, n_angles)
    is_cosine = np.zeros(cos.shape[1], bool)
    is_cosine[: order.size] = partner > np.arange(order.size)
    return order, cos, np.where(is_cosine, -sin, 0), np.where(is_cosine, 0, -sin)


def search_tables(atoms: Floats, basis: SteerableBasis, n_angles: int) -> Search:
    """The search for these atoms on a grid of `n_angles`."""
    even_number = np.zeros((len(atoms) + len(atoms) % 2, basis.n_coords), np.float32)
    even_number[: len(atoms)] = atoms[:, _packed_order(basis.frequency)]
    frequencies = _packed_frequencies(basis.max_frequency)
    waves = _folded_waves(basis.max_frequency, n_angles)
    place = np.arange(waves.size // waves[0, ..., 0].size).reshape(-1, 1, 1, ANGLES)
    table = np.where(place < _n_folded(n_angles), waves, np.float32(0))
    return Search(
        packed=even_number.reshape(-1, 2, basis.n_coords).swapaxes(1, 2).ravel(),
        rows_of=np.diff(basis.start)[frequencies],
        n_even=int((frequencies % _fold(n_angles) == 0).sum()),
        table=table.ravel(),
        n_rounds=len(table),
    )


def choice_tables(
    atoms: Floats, basis: SteerableBasis, n_angles: int, paired: bool = True
) -> Choice:
    """The choice among these atoms on a grid of `n_angles`, with pairs of atoms where they fit."""
    order = _packed_order(basis.frequency)
    frequencies = _packed_frequencies(basis.max_frequency)
    rows_of = np.diff(basis.start)[frequencies]
    by_lane = _pad(atoms.T[order], LANES).reshape(len(order), -1, LANES)
    columns = by_lane.swapaxes(0, 1).ravel()
    n_even = int((frequencies % _fold(n_angles) == 0).sum())
    table = _folded_waves(basis.max_frequency, n_angles).ravel()
    n_paired = len(atoms) if paired and pair_bytes(len(atoms), n_angles) else 0
    pair = np.zeros((n_paired, len(atoms), n_angles + rotating.width_of(n_angles)), np.float32)
    if n_paired:
        packed = _pad(atoms[:, order], LANES)
        rotating.pairs(packed, columns, rows_of, n_even, table, n_angles, pair)
    return Choice(columns, rows_of, n_even, table, pair.ravel())


def fine_cosines(n_angles: int) -> NDArray[np.float64]:
    """cos θ at all angles of a grid."""
    return np.cos(2 * np.pi * np.arange(n_angles) / max(1, n_angles))


class CoderBytes(NamedTuple):
    """Memory of coding with some atoms: of all dictionaries alike, of each one, and of a thread."""

    shared: int
    own: int
    thread: int


def coder_bytes(
    n_atoms: int, basis: SteerableBasis, n_angles: int, sparsity: int, refine: bool = False
) -> CoderBytes:
    """What a `Coder` of so many atoms takes.

    Shared are four waves per angle and coordinate with their indices, two per angle and frequency
    in float64. Own are the atoms of this pass and of the one before, four times each, and products
    of pairs of atoms, of both passes. A thread has what a patch has in common with all atoms at all
    angles, and so for every slot.
    """
    n_fine = n_angles * (FINER if refine else 1)
    shared = 48 * n_fine * basis.n_coords + 64 * n_angles * (basis.max_frequency + 1)
    kept = 32 * n_atoms * (basis.n_coords + LANES)
    if n_angles == 1 and n_atoms <= MOST_STILL:
        return CoderBytes(shared, kept + 8 * n_atoms**2, 4 * (sparsity + 20) * n_atoms)
    if sparsity == 1 and not refine:
        return CoderBytes(shared, kept, 128 * n_atoms * (basis.max_frequency + 2))
    pairs = 0 if refine else 2 * pair_bytes(n_atoms, n_angles)
    a_patch = 4 * (sparsity + 4) * n_atoms * int(rotating.width_of(n_angles))
    return CoderBytes(shared, kept + pairs, a_patch + 64 * n_atoms * (basis.max_frequency + 1))


def pair_bytes(n_atoms: int, n_angles: int) -> int:
    """Memory of the products of all pairs of atoms at all angles; 0 where it would be too much."""
    wanted = 4 * n_atoms**2 * (n_angles + int(rotating.width_of(n_angles)))
    return wanted if wanted <= MOST_PAIRS else 0


def packed_order(basis: SteerableBasis) -> NDArray[np.uint32]:
    """(packed coord) the coordinate that stands at each packed place."""
    return _packed_order(basis.frequency).astype(np.uint32)


def _fold(n_angles: int) -> int:
    """2 where θ, −θ, π + θ and π − θ are all on the grid, else 1."""
    return 2 if n_angles % 4 == 0 else 1


def _n_folded(n_angles: int) -> int:
    """Folded angles: those from 0 to π/2, or to π."""
    return n_angles // (2 * _fold(n_angles)) + 1


def _packed_frequencies(highest: int) -> Integers:
    return np.concatenate([np.arange(0, highest + 1, 2), np.arange(1, highest + 1, 2)])


def _packed_order(frequency: Integers) -> Integers:
    """The coordinate that stands at each packed place."""
    parts = [np.flatnonzero(frequency == 0)]
    for t in _packed_frequencies(int(frequency.max()))[1:]:
        parts.append(np.flatnonzero(frequency == t).reshape(2, -1).T.ravel())
    return np.concatenate(parts)


@lru_cache(maxsize=8)
def _coordinate_waves(
    frequency_bytes: bytes, n_angles: int
) -> tuple[NDArray[np.uint32], Integers, Floats, Floats]:
    """Packed order, the packed place of each coordinate's partner, cosines and signed sines."""
    frequency = np.frombuffer(frequency_bytes, np.int64)
    order = _packed_order(frequency)
    t = frequency[order]
    n_still = int((t == 0).sum())
    place = np.arange(t.size)
    is_cosine = (place >= n_still) & ((place - n_still) % 2 == 0)
    partner = np.where(t == 0, place, np.where(is_cosine, place + 1, place - 1))
    cos, sin = _grid_waves(np.arange(n_angles)[:, None] * t, n_angles)
    # c' = c cos − s sin, s' = s cos + c sin; unsigned, since Numba checks signed indices for < 0
    return (
        order.astype(np.uint32),
        partner,
        _pad(cos, LANES),
        _pad(np.where(is_cosine, -sin, sin), LANES),
    )


@lru_cache(maxsize=8)
def _folded_waves(highest: int, n_angles: int) -> Floats:
    """(round, frequency, 2, ANGLES) cosines and sines of the folded angles and some more."""
    folded = np.arange(-(-_n_folded(n_angles) // ANGLES) * ANGLES)
    frequencies = _packed_frequencies(highest)
    waves = np.stack(_grid_waves(frequencies[:, None] * folded, n_angles), axis=1)
    rounds = waves.reshape(len(frequencies), 2, -1, ANGLES)
    return np.ascontiguousarray(rounds.transpose(2, 0, 1, 3))


def _grid_waves(steps: Integers, n_angles: int) -> tuple[Floats, Floats]:
    """cos and sin of 2π · steps / n_angles, by exact reduction to the first rotation."""
    grid = 2 * np.pi * np.arange(n_angles) / n_angles
    index = steps % n_angles
    return np.cos(grid).astype(np.float32)[index], np.sin(grid).astype(np.float32)[index]


def _pad(array: NDArray[np.floating], multiple: int) -> Floats:
    """`array` in float32, its last axis filled with zeros to a multiple."""
    width = array.shape[-1]
    padded = np.zeros((*array.shape[:-1], -(-width // multiple) * multiple), np.float32)
    padded[..., :width] = array
    return padded
