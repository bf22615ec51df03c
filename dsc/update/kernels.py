"""Compiled loops of the dictionary update.

Coordinates are taken into the packed order of `dsc.pursuit.tables`, where the cosine and the sine
of a pair are neighbours, so that a rotation is three multiply-adds on whole vectors:
R(−θ) r = r · cos + r[+1] · sin (on cosines) − r[−1] · sin (on sines).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from dsc.pursuit import EMPTY
from dsc.simd import LANES, fma, load, load_one, mul, store, zeros_wide

ROWS = 128  # occurrences whose products are summed at a time
TILE = (4, 2 * LANES)  # of a product, in registers

_compile = njit(cache=True, nogil=True, error_model="numpy")
_inline = njit(cache=True, nogil=True, error_model="numpy", forceinline=True)


@_inline
def rotate_back(residual, p, order, cos, up, down, angle, buffer, rotated):
    """rotated = R(−θ) of row p, in packed order.

    cos, up, down (angle, coord padded); buffer and rotated (padded + 2 · LANES, padded) scratch,
    the former with the row from element LANES on and zeros around it.
    """
    for c in range(order.size):
        buffer[LANES + c] = residual[p, order[c]]
    for c in range(0, rotated.size, LANES):
        value = mul(load(buffer, LANES + c), load(cos, (angle, c)))
        value = fma(load(buffer, LANES + c + 1), load(up, (angle, c)), value)
        value = fma(load(buffer, LANES + c - 1), load(down, (angle, c)), value)
        store(rotated, c, value)


@_compile
def occurrences(atom, n_atoms):
    """Uses of atoms, sorted by atom; the first one only where a patch repeats an atom.

    atom (patch, slot) → edges (atom + 1), patch and slot (occurrence): those of atom m are patch[i]
    and slot[i] for i from edges[m] to edges[m + 1].
    """
    edges = np.zeros(n_atoms + 1, np.int64)
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
    patch, slot = np.empty(edges[-1], np.int64), np.empty(edges[-1], np.int64)
    last[:] = -1
    for p in range(atom.shape[0]):
        for k in range(atom.shape[1]):
            m = atom[p, k]
            if m != EMPTY and last[m] != p:
                last[m] = p
                patch[place[m]], slot[place[m]] = p, k
                place[m] += 1
    return edges, patch, slot


@_inline
def add_products(rows, count, n_coords, tile, triangle):
    """triangle += the lower triangle of Σ y yᵀ over the first `count` rows.

    rows (·, coord padded to TILE[1]) float64, tile TILE scratch; triangle (coord · (coord + 1) / 2)
    row after row. Each tile of the product is summed in registers.
    """
    for i in range(0, n_coords, TILE[0]):
        for j in range(0, min(i + TILE[0], n_coords), TILE[1]):
            a0, a1, b0, b1 = zeros_wide(), zeros_wide(), zeros_wide(), zeros_wide()
            c0, c1, d0, d1 = zeros_wide(), zeros_wide(), zeros_wide(), zeros_wide()
            for r in range(count):
                y0, y1 = load(rows, (r, j)), load(rows, (r, j + LANES))
                a, b = load_one(rows, (r, i)), load_one(rows, (r, i + 1))
                c, d = load_one(rows, (r, i + 2)), load_one(rows, (r, i + 3))
                a0, a1 = fma(a, y0, a0), fma(a, y1, a1)
                b0, b1 = fma(b, y0, b0), fma(b, y1, b1)
                c0, c1 = fma(c, y0, c0), fma(c, y1, c1)
                d0, d1 = fma(d, y0, d0), fma(d, y1, d1)
            store(tile, (0, 0), a0)
            store(tile, (0, LANES), a1)
            store(tile, (1, 0), b0)
            store(tile, (1, LANES), b1)
            store(tile, (2, 0), c0)
            store(tile, (2, LANES), c1)
            store(tile, (3, 0), d0)
            store(tile, (3, LANES), d1)
            for u in range(min(TILE[0], n_coords - i)):
                start = (i + u) * (i + u + 1) // 2 + j
                for v in range(min(TILE[1], i + u + 1 - j)):
                    triangle[start + v] += tile[u, v]


@_compile
def scatter_sums(residual, atom, angle, coef, atoms, order, cos, up, down, scatter):
    """Add y yᵀ of every occurrence to the scatter of its atom, y = R(−θ) residual + a d_m.

    residual (patch, coord), atom, angle and coef (patch, slot), atoms (atom, coord); scatter
    (atom, coord · (coord + 1) / 2) float64, lower triangles row after row.
    """
    n_atoms, n_coords = atoms.shape
    edges, patch, slot = occurrences(atom, n_atoms)
    buffer = np.zeros(cos.shape[1] + 2 * LANES, np.float32)
    rotated = np.zeros(cos.shape[1], np.float32)
    rows = np.zeros((ROWS, -(-n_coords // TILE[1]) * TILE[1]))
    tile = np.zeros(TILE)
    for m in range(n_atoms):
        for begin in range(edges[m], edges[m + 1], ROWS):
            count = min(ROWS, edges[m + 1] - begin)
            for i in range(count):
                p, k = patch[begin + i], slot[begin + i]
                a = np.float64(coef[p, k])
                rotate_back(residual, p, order, cos, up, down, angle[p, k], buffer, rotated)
                for c in range(order.size):
                    rows[i, order[c]] = rotated[c] + a * atoms[m, order[c]]
            add_products(rows, count, n_coords, tile, scatter[m])


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
    rotated = np.zeros(cos.shape[1], np.float32)
    for p in range(atom.shape[0]):
        for k in range(atom.shape[1]):
            m = atom[p, k]
            if m == EMPTY:
                break
            a = np.float64(coef[p, k])
            rotate_back(residual, p, order, cos, up, down, angle[p, k], buffer, rotated)
            for c in range(order.size):
                right[m, order[c]] += a * rotated[c]
            for j in range(k + 1):
                other = atom[p, j]
                b = a * coef[p, j]
                difference = (np.int64(angle[p, j]) - angle[p, k]) % n_angles
                for t in range(wave_cos.shape[1]):
                    real, imag = b * wave_cos[difference, t], b * wave_sin[difference, t]
                    normal[t, m, other] += complex(real, imag)
                    if j < k:
                        normal[t, other, m] += complex(real, -imag)
