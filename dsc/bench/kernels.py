"""The search of the first version of dsc, to measure others by."""

from __future__ import annotations

import numpy as np
from numba import njit

from dsc.pursuit import ANGLES, BLOCK, NO_GAIN, correlate, scores, take_patch, to_columns
from dsc.simd import LANES

_compile = njit(cache=True, nogil=True, error_model="numpy")


@_compile
def plain_best_atoms(coords, n_atoms, order, packed, rows_of, n_even, table, n_rounds, out):
    """All A_t and B_t, then the bound of all frequencies, then the angles; most likely atoms first.

    Arguments as of the labelling kernel; returns for how many pairs angles were tried.
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
            if lane < count:
                take_patch(coords, begin + lane, order, patches, lane)
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
            out[begin + lane] = best_atom[lane] if best_atom[lane] < n_atoms else -1
            if best_atom[lane] < n_atoms:
                last = best_atom[lane] // 2
                for v in range(n_pairs):  # to the front
                    last, visits[v] = visits[v], last
                    if last == best_atom[lane] // 2:
                        break
    return evaluated
