"""The compiled loop of the pursuit for one atom per patch.

The bound Σ_t √(A_t² + B_t²) of `dsc.pursuit.kernels` is held against the patch's best score so far:
only atoms that reach it get to their angles. Every patch goes through the same operations in the
same order whatever its neighbours: results do not depend on how rows are split into calls, to the
bit.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from dsc.pursuit.kernels import (
    ANGLES,
    BLOCK,
    NO_GAIN,
    ZERO_RESIDUAL,
    correlate,
    refit,
    rotate,
    scores,
    take_patch,
    to_columns,
)
from dsc.simd import LANES, fma, load, store

_compile = njit(cache=True, nogil=True, error_model="numpy")
_inline = njit(cache=True, nogil=True, error_model="numpy", forceinline=True)


@_inline
def lowest_angle(waves, w, table, n_even, n_frequencies, n_angles, score, best):
    """The lowest angle whose score is `best`: unfolds what `scores` found."""
    fold = 2 if n_angles % 4 == 0 else 1
    half = n_angles // 2
    lowest = n_angles
    for j in range(n_angles // (2 * fold) + 1):
        if score[j] != best:
            continue
        ce, se, co, so = np.float32(0), np.float32(0), np.float32(0), np.float32(0)
        i, c = w, (j // ANGLES * n_frequencies) * 2 * ANGLES + j % ANGLES
        for _ in range(n_even):
            ce = fma(waves[i], table[c], ce)
            se = fma(waves[i + BLOCK], table[c + ANGLES], se)
            i += 2 * BLOCK
            c += 2 * ANGLES
        for _ in range(n_even, n_frequencies):
            co = fma(waves[i], table[c], co)
            so = fma(waves[i + BLOCK], table[c + ANGLES], so)
            i += 2 * BLOCK
            c += 2 * ANGLES
        # c(θ) = a + b, c(π + θ) = a − b; c(−θ) = p + q, c(π − θ) = p − q
        a, b, p, q = ce + se, co + so, ce - se, co - so
        if abs(a) + abs(b) == best:
            lowest = min(lowest, j if a * b >= 0 else half + j)
        if abs(p) + abs(q) == best:
            opposite = fold == 2 and p * q <= 0
            lowest = min(lowest, half - j if opposite else (n_angles - j) % n_angles)
    return lowest


@_inline
def select(
    waves, bound, n_atoms, first, lane, table, n_even, n_frequencies, n_angles, trial, winner, left
):
    """The (atom, angle) of largest score for one patch, ties to the lowest: (atom, angle, score).

    `trial` and `winner` are scratch of the size of the folded angles, `left` of the atoms.
    """
    size = n_frequencies * 2 * BLOCK
    best_atom = first
    best = scores(waves, first * size + lane, table, n_even, n_frequencies, winner)
    n_left = 0
    for m in range(n_atoms):  # list them without a branch, which could not be predicted
        left[n_left] = m
        n_left += (bound[m * BLOCK + lane] >= best) & (m != first)
    for i in range(n_left):
        m = left[i]
        score = scores(waves, m * size + lane, table, n_even, n_frequencies, trial)
        if score > best or (score == best and m < best_atom):
            best, best_atom = score, m
            for j in range(0, trial.size, LANES):
                store(winner, j, load(trial, j))
    w = best_atom * size + lane
    angle = lowest_angle(waves, w, table, n_even, n_frequencies, n_angles, winner, best)
    return best_atom, angle, best


@_compile
def pursue(
    coords,
    tolerance,
    atoms,
    swapped,
    order,
    coord_cos,
    coord_sin,
    packed,
    rows_of,
    n_even,
    table,
    n_rounds,
    out_atom,
    out_angle,
    out_coef,
    out_error,
):
    """The best rotated atom of all rows of `coords` (patch, coord), a block at a time.

    `atoms` to `coord_sin` are the `Rotations` and `packed` to `n_rounds` the `Search` of `tables`.
    out_* (patch, 1) and out_error (patch,) come in as empty codes. Returns −1, or the number of the
    first patch whose energy is no number that can be coded.
    """
    n_patches = coords.shape[0]
    n_atoms, padded = atoms.shape
    n_angles = coord_cos.shape[0]
    n_frequencies = rows_of.size
    n_packed = n_atoms + n_atoms % 2
    columns = np.zeros(padded * BLOCK, np.float32)
    patches = np.zeros((BLOCK, padded), np.float32)
    waves = np.zeros(n_packed * n_frequencies * 2 * BLOCK, np.float32)
    bound = np.zeros(n_packed * BLOCK, np.float32)
    first = np.zeros(BLOCK, np.float32)
    chosen = np.zeros((1, padded), np.float32)
    inverse = np.zeros((1, 1))
    projection = np.zeros(1)
    coefs = np.zeros(1)
    lower = np.zeros(1, np.float32)
    energy = np.zeros(BLOCK)
    scale = np.ones(BLOCK)
    trial = np.zeros(n_rounds * ANGLES, np.float32)
    winner = np.zeros(n_rounds * ANGLES, np.float32)
    left = np.zeros(n_atoms, np.int64)
    for begin in range(0, n_patches, BLOCK):
        count = min(BLOCK, n_patches - begin)
        for lane in range(count):
            raw, scale[lane] = take_patch(coords, begin + lane, order, patches, lane)
            if raw < 0:
                return begin + lane
            energy[lane] = raw / scale[lane] ** 2
        to_columns(patches, columns)
        correlate(columns, packed, rows_of, waves, bound, first)
        for lane in range(count):
            p = begin + lane
            out_error[p] = energy[lane] * scale[lane] ** 2
            if energy[lane] <= max(ZERO_RESIDUAL * energy[lane], tolerance / scale[lane] ** 2):
                continue
            m, angle, score = select(
                waves, bound, n_atoms, int(first[lane]), lane, table, n_even, n_frequencies,
                n_angles, trial, winner, left,
            )  # fmt: skip
            if not score > NO_GAIN:
                continue
            rotate(atoms, swapped, m, coord_cos, coord_sin, angle, chosen, 0)
            gain = refit(patches, lane, chosen, 0, inverse, projection, coefs, lower)
            if gain < 0:
                continue
            out_atom[p, 0] = m
            out_angle[p, 0] = angle
            out_coef[p, 0] = coefs[0] * scale[lane]
            out_error[p] = max(energy[lane] - gain, 0.0) * scale[lane] ** 2
    return -1
