"""Angles between those of the grid: Newton's steps on the score of the atom that was chosen.

With N(θ) = ⟨r, R(θ) d⟩ and D(θ) = 1 − Σ_j ⟨q_j, R(θ) d⟩² (1 in matching pursuit) the score is N²/D,
whose derivative vanishes with h = 2N'D − N D'. All are polynomials of cos tθ and sin tθ.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from dsc.pursuit.kernels import NEW, TOO_LITTLE

FINER = 64  # by how much the grid of refined angles is finer
STEPS = 2  # of Newton's

_inline = njit(cache=True, nogil=True, error_model="numpy", forceinline=True)


@_inline
def find_waves(patches, lane, chosen, inverse, coefs, k, least_squares, row, rows_of, left, waves):
    """The polynomials of one atom with the earlier q_j and, last, with the residual.

    row (packed coord) is the atom, chosen (slot, packed coord) what was chosen before it, inverse
    and coefs as in `refit` → waves (slot, frequency, 2) with A_t and B_t. left (coord) is scratch.
    """
    for j in range(0 if least_squares else k, k + 1):
        for c in range(left.size):
            left[c] = patches[lane, c] if j == k else 0.0
        for i in range(k if j == k else j + 1):
            weight = -coefs[i] if j == k else inverse[j, i]
            for c in range(left.size):
                left[c] += weight * chosen[i, c]
        x = rows_of[0]
        waves[j, 0, 0] = waves[j, 0, 1] = 0.0
        for c in range(x):
            waves[j, 0, 0] += left[c] * row[c]
        for f in range(1, rows_of.size):
            a, b = 0.0, 0.0
            for _ in range(rows_of[f] // 2):
                a += left[x] * row[x] + left[x + 1] * row[x + 1]
                b += left[x + 1] * row[x] - left[x] * row[x + 1]
                x += 2
            waves[j, f, 0], waves[j, f, 1] = a, b


@_inline
def refined(waves, k, least_squares, cosine, start):
    """By how many steps of a finer grid the score is largest near the angle `start`.

    waves as from `find_waves`; cosine (fine angle) the finer grid, on which `start` is. No step is
    taken that does not raise the score.
    """
    n_fine, n_frequencies = cosine.size, waves.shape[1]
    best, best_shift, shift = -1.0, 0, 0
    for _ in range(STEPS + 1):
        d0, d1, d2 = 1.0, 0.0, 0.0
        n0, n1, n2 = 0.0, 0.0, 0.0
        for j in range(0 if least_squares else k, k + 1):
            n0, n1, n2 = 0.0, 0.0, 0.0
            for f in range(n_frequencies):  # the even ones first, as in `tables`
                even = 2 * f < n_frequencies
                t = 2 * f if even else 2 * (f - (n_frequencies + 1) // 2) + 1
                place = t * (start + shift)
                cos, sin = cosine[place % n_fine], cosine[(place + 3 * n_fine // 4) % n_fine]
                a, b = waves[j, f, 0], waves[j, f, 1]
                value = a * cos + b * sin
                n0 += value
                n1 += t * (b * cos - a * sin)
                n2 -= t * t * value
            if j < k:
                d0 -= n0 * n0
                d1 -= 2 * n0 * n1
                d2 -= 2 * (n1 * n1 + n0 * n2)
        score = n0 * n0 / max(d0, NEW) if d0 > TOO_LITTLE else 0.0
        if score > best:
            best, best_shift = score, shift
        h, slope = 2 * n1 * d0 - n0 * d1, 2 * n2 * d0 + n1 * d1 - n0 * d2
        if slope * n0 >= 0:  # no maximum this way
            break
        step = -h / slope * n_fine / (2 * np.pi)
        shift += int(np.rint(min(max(step, -FINER), FINER)))
        shift = min(max(shift, -(FINER // 2)), FINER // 2)
    return best_shift
