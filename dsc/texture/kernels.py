"""The compiled loops of texture classification.

`best_atoms` labels patches by the best of many dictionaries, one atom per patch.

With one atom per patch, the dictionary that codes best is the one with the largest |⟨x, R(θ) d⟩|
over its atoms and angles. Only that maximum matters, so the bound Σ_t √(A_t² + B_t²) of
`dsc.pursuit.kernels` is held against the best score of *any* class so far, and most atoms never get
to their angles. Atoms are taken two by two, those that won among the patches just before first; the
order decides the time, not the result: bounds have room for rounding, and ties go to the lowest
atom.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from dsc.pursuit import ANGLES, BLOCK, NO_GAIN, correlate, scores, take_patch, to_columns
from dsc.simd import LANES

_compile = njit(cache=True, nogil=True, error_model="numpy")


@_compile
def add_chi_square(a, b, distances):
    """distances[i, j] += Σ (a_i − b_j)² / (a_i + b_j), with 0/0 = 0, bin after bin.

    a (row, bin), b (bin, column), distances (row, column).
    """
    for i in range(a.shape[0]):
        for k in range(a.shape[1]):
            x = a[i, k]
            for j in range(b.shape[1]):
                difference, total = x - b[k, j], x + b[k, j]
                share = difference / total if total != 0 else 0.0
                distances[i, j] += difference * share  # the square may leave the range of floats


@_compile
def best_atoms(coords, n_atoms, order, packed, rows_of, n_even, table, n_rounds, out):
    """The atom of largest score for every row of `coords` (patch, coord), −1 where nothing is left.

    `order` is the packed order and `packed` to `n_rounds` the `Search` of `dsc.pursuit.tables`, for
    all atoms of all classes → out (patch,). Returns (bad, evaluated): −1 or the first patch whose
    energy is no number that can be coded, and for how many (atom, patch) pairs angles were tried.
    """
    n_patches, n_coords = coords.shape
    n_frequencies = rows_of.size
    size = n_frequencies * 2 * BLOCK
    n_pairs = (n_atoms + 1) // 2
    columns = np.zeros(-(-n_coords // LANES) * LANES * BLOCK, np.float32)
    patches = np.zeros((BLOCK, -(-n_coords // LANES) * LANES), np.float32)
    waves = np.zeros(2 * size, np.float32)
    bound = np.zeros(2 * BLOCK, np.float32)
    first = np.zeros(BLOCK, np.float32)
    trial = np.zeros(n_rounds * ANGLES, np.float32)
    best = np.zeros(BLOCK, np.float32)
    best_atom = np.zeros(BLOCK, np.int64)
    visits = np.arange(n_pairs)
    evaluated = 0
    for begin in range(0, n_patches, BLOCK):
        count = min(BLOCK, n_patches - begin)
        for lane in range(BLOCK):
            best[lane] = NO_GAIN if lane < count else np.inf
            best_atom[lane] = n_atoms
            if lane < count and take_patch(coords, begin + lane, order, patches, lane)[0] < 0:
                return begin + lane, evaluated
        to_columns(patches, columns)
        for v in range(n_pairs):
            pair = visits[v]
            atoms = packed[pair * 2 * n_coords : (pair + 1) * 2 * n_coords]
            correlate(columns, atoms, rows_of, waves, bound, first)
            for i in range(2 * BLOCK):
                lane = i % BLOCK
                if bound[i] < best[lane]:
                    continue
                evaluated += 1
                m = 2 * pair + i // BLOCK
                w = i // BLOCK * size + lane
                score = scores(waves, w, table, n_even, n_frequencies, trial)
                if score > best[lane] or (score == best[lane] and m < best_atom[lane]):
                    best[lane], best_atom[lane] = score, m
        for lane in range(count):
            found = best_atom[lane] < n_atoms
            out[begin + lane] = best_atom[lane] if found else -1
            if found:  # the next patches are likely to be alike: its pair goes to the front
                to_front(visits, best_atom[lane] // 2)
    return -1, evaluated


@_compile
def to_front(visits, pair):
    """Move a value to the front of a list, the ones before it one place back."""
    last = pair
    for v in range(visits.size):
        last, visits[v] = visits[v], last
        if last == pair:
            break
