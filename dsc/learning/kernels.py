"""Compiled loops of the dictionary update."""

from __future__ import annotations

import numpy as np
from numba import njit

from dsc.pursuit.kernels import EMPTY

_compile = njit(cache=True, nogil=True, error_model="numpy")


@_compile
def aligned_rows(residual, atom, angle, coef, atoms, start, cos, sin, patch, slot, out):
    """Occurrences of one atom, turned back to it: y = R(−θ) residual + a d.

    residual (patch, coord), atom, angle, coef (patch, slot), cos and sin (angle, T + 1); occurrence
    i is slot[i] of patch[i] → out (occurrence, coord) float64.
    """
    for i in range(patch.size):
        p, k = patch[i], slot[i]
        m, a, r = atom[p, k], coef[p, k], angle[p, k]
        for c in range(start[1]):
            out[i, c] = residual[p, c] + a * atoms[m, c]
        for t in range(1, start.size - 1):
            n_radial = (start[t + 1] - start[t]) // 2
            for c in range(start[t], start[t] + n_radial):
                s = c + n_radial
                x, y = residual[p, c], residual[p, s]
                out[i, c] = x * cos[r, t] + y * sin[r, t] + a * atoms[m, c]
                out[i, s] = y * cos[r, t] - x * sin[r, t] + a * atoms[m, s]


@_compile
def joint_sums(residual, atom, angle, coef, start, cos, sin, normal, right):
    """Add to the normal equations of all atoms at once, frequency by frequency.

    With w_m = Σ a e^{jtθ} over the slots of atom m, and complex coordinates c + js,
    normal_t[m, m'] += conj(w_m) w_m' and right_t[m] += conj(w_m) r. normal (T + 1, atom, atom)
    complex; right (atom, coord) real, in the coordinates' own order.
    """
    n_slots = atom.shape[1]
    for p in range(atom.shape[0]):
        for k in range(n_slots):
            m = atom[p, k]
            if m == EMPTY:
                break
            a, r = np.float64(coef[p, k]), angle[p, k]
            for c in range(start[1]):
                right[m, c] += a * residual[p, c]
            for t in range(1, start.size - 1):
                n_radial = (start[t + 1] - start[t]) // 2
                for c in range(start[t], start[t] + n_radial):
                    s = c + n_radial
                    x, y = residual[p, c], residual[p, s]
                    right[m, c] += a * (x * cos[r, t] + y * sin[r, t])
                    right[m, s] += a * (y * cos[r, t] - x * sin[r, t])
            for j in range(n_slots):
                other = atom[p, j]
                if other == EMPTY:
                    break
                b, q = np.float64(coef[p, j]), angle[p, j]
                for t in range(start.size - 1):
                    real = cos[r, t] * cos[q, t] + sin[r, t] * sin[q, t]
                    imag = cos[r, t] * sin[q, t] - sin[r, t] * cos[q, t]
                    normal[t, m, other] += a * b * complex(real, imag)
