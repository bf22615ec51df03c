"""Compiled loops of the dictionary update.

Coordinates are taken into the packed order of `dsc.pursuit.tables`, where the cosine and the sine
of a pair are neighbours, so that a turn is three multiply-adds on whole vectors:
R(−θ) r = r · cos + r[+1] · sin (on cosines) − r[−1] · sin (on sines).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from dsc.pursuit.kernels import EMPTY
from dsc.simd import LANES, fma, load, mul, store

_compile = njit(cache=True, nogil=True, error_model="numpy")
_inline = njit(cache=True, nogil=True, error_model="numpy", forceinline=True)


@_inline
def turn_back(residual, p, order, cos, up, down, angle, buffer, turned):
    """turned = R(−θ) of row p, in packed order.

    cos, up, down (angle, coord padded); buffer and turned (padded + 2 · LANES, padded) scratch, the
    former with the row from element LANES on and zeros around it.
    """
    for c in range(order.size):
        buffer[LANES + c] = residual[p, order[c]]
    for c in range(0, turned.size, LANES):
        value = mul(load(buffer, LANES + c), load(cos, (angle, c)))
        value = fma(load(buffer, LANES + c + 1), load(up, (angle, c)), value)
        value = fma(load(buffer, LANES + c - 1), load(down, (angle, c)), value)
        store(turned, c, value)


@_compile
def first_occurrences(atom, edges, patch, slot):
    """Uses of atoms, sorted by atom; the first one only where a patch repeats an atom.

    atom (patch, slot) → those of atom m are patch[i], slot[i] for i from edges[m] to edges[m + 1];
    edges (atom + 1) comes in as zeros, patch and slot (occurrence) with room for all slots.
    """
    n_atoms = edges.size - 1
    last = np.full(n_atoms, -1)
    for p in range(atom.shape[0]):
        for k in range(atom.shape[1]):
            m = atom[p, k]
            if m != EMPTY and last[m] != p:
                last[m] = p
                edges[m + 1] += 1
    for m in range(n_atoms):
        edges[m + 1] += edges[m]
    place = edges[:-1].copy()
    last[:] = -1
    for p in range(atom.shape[0]):
        for k in range(atom.shape[1]):
            m = atom[p, k]
            if m != EMPTY and last[m] != p:
                last[m] = p
                patch[place[m]], slot[place[m]] = p, k
                place[m] += 1


@_compile
def aligned_rows(
    residual, angle, coef, m, atoms, order, cos, up, down, patch, slot, begin, end, out
):
    """Occurrences of atom m, turned back to it: y = R(−θ) residual + a d_m.

    residual (patch, coord), angle and coef (patch, slot), atoms (atom, coord); occurrence i, from
    begin to end, is slot[i] of patch[i] → out (occurrence, coord) float64, from its first row on.
    """
    buffer = np.zeros(cos.shape[1] + 2 * LANES, np.float32)
    turned = np.zeros(cos.shape[1], np.float32)
    for i in range(begin, end):
        p, k = patch[i], slot[i]
        a = np.float64(coef[p, k])
        turn_back(residual, p, order, cos, up, down, angle[p, k], buffer, turned)
        for c in range(order.size):
            out[i - begin, order[c]] = turned[c] + a * atoms[m, order[c]]


@_compile
def joint_sums(
    residual, atom, angle, coef, order, cos, up, down, wave_cos, wave_sin, normal, right
):
    """Add to the normal equations of all atoms at once, frequency by frequency.

    With w_m = Σ a e^{jtθ} over the slots of atom m, and complex coordinates c + js,
    normal_t[m, m'] += conj(w_m) w_m' and right_t[m] += conj(w_m) r. wave_cos and wave_sin (angle,
    T + 1), normal (T + 1, atom, atom) complex; right (atom, coord) real, in the coordinates' order.
    """
    n_angles = cos.shape[0]
    buffer = np.zeros(cos.shape[1] + 2 * LANES, np.float32)
    turned = np.zeros(cos.shape[1], np.float32)
    for p in range(atom.shape[0]):
        for k in range(atom.shape[1]):
            m = atom[p, k]
            if m == EMPTY:
                break
            a = np.float64(coef[p, k])
            turn_back(residual, p, order, cos, up, down, angle[p, k], buffer, turned)
            for c in range(order.size):
                right[m, order[c]] += a * turned[c]
            for j in range(k + 1):
                other = atom[p, j]
                b = a * coef[p, j]
                difference = (np.int64(angle[p, j]) - angle[p, k]) % n_angles
                for t in range(wave_cos.shape[1]):
                    real, imag = b * wave_cos[difference, t], b * wave_sin[difference, t]
                    normal[t, m, other] += complex(real, imag)
                    if j < k:
                        normal[t, other, m] += complex(real, -imag)
