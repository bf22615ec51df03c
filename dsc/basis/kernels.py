"""Compiled loops of the bases.

Every row is computed alone, by the same operations in the same order, so its bits do not depend on
its neighbours (a BLAS product would not promise that).
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dsc.simd import (
    LANES,
    fma,
    fma_wide,
    fnma,
    load,
    splat,
    store,
    total_wide,
    zeros,
    zeros_wide,
)

TILE = 4 * LANES  # columns of the matrix held in accumulators at once

_compile = njit(cache=True, nogil=True, error_model="numpy")


def pad_columns(matrix: NDArray[np.float64]) -> NDArray[np.float32]:
    """`matrix` in float32 with zero columns up to the next multiple of `TILE`."""
    rows, columns = matrix.shape
    padded = np.zeros((rows, -(-columns // TILE) * TILE), np.float32)
    padded[:, :columns] = matrix
    return padded


@_compile
def linear_map(rows, matrix, out):
    """out = rows · matrix: (row, i), (i, column padded) → (row, column)."""
    n_rows, n_in = rows.shape
    n_out = out.shape[1]
    buffer = np.empty((2, TILE), np.float32)
    for p in range(0, n_rows, 2):
        q = min(p + 1, n_rows - 1)  # two rows share the loads of the matrix
        for c in range(0, n_out, TILE):
            a0, a1, a2, a3 = zeros(), zeros(), zeros(), zeros()
            b0, b1, b2, b3 = zeros(), zeros(), zeros(), zeros()
            for i in range(n_in):
                m0, m1 = load(matrix, (i, c)), load(matrix, (i, c + 8))
                m2, m3 = load(matrix, (i, c + 16)), load(matrix, (i, c + 24))
                x, y = splat(rows[p, i]), splat(rows[q, i])
                a0, a1 = fma(x, m0, a0), fma(x, m1, a1)
                a2, a3 = fma(x, m2, a2), fma(x, m3, a3)
                b0, b1 = fma(y, m0, b0), fma(y, m1, b1)
                b2, b3 = fma(y, m2, b2), fma(y, m3, b3)
            store(buffer, (0, 0), a0)
            store(buffer, (0, 8), a1)
            store(buffer, (0, 16), a2)
            store(buffer, (0, 24), a3)
            store(buffer, (1, 0), b0)
            store(buffer, (1, 8), b1)
            store(buffer, (1, 16), b2)
            store(buffer, (1, 24), b3)
            for k in range(min(TILE, n_out - c)):
                out[p, c + k] = buffer[0, k]
                out[q, c + k] = buffer[1, k]


@_compile
def energy_outside(pixels, coords, matrix, out):
    """out_p = ‖x_p − Φ c_p‖²: (row, pixel), (row, coord), (coord, pixel padded) → (row,)."""
    n_rows, n_pixels = pixels.shape
    padded = matrix.shape[1]
    x = np.zeros(padded, np.float32)
    for p in range(n_rows):
        for i in range(n_pixels):
            x[i] = pixels[p, i]
        energy = zeros_wide()
        for i in range(0, padded, TILE):
            y0, y1, y2, y3 = load(x, i), load(x, i + 8), load(x, i + 16), load(x, i + 24)
            for c in range(coords.shape[1]):
                a = splat(coords[p, c])
                y0, y1 = fnma(a, load(matrix, (c, i)), y0), fnma(a, load(matrix, (c, i + 8)), y1)
                y2 = fnma(a, load(matrix, (c, i + 16)), y2)
                y3 = fnma(a, load(matrix, (c, i + 24)), y3)
            energy = fma_wide(y1, y1, fma_wide(y0, y0, energy))
            energy = fma_wide(y3, y3, fma_wide(y2, y2, energy))
        out[p] = total_wide(energy)


@_compile
def steer_rows(coords, theta, start, out):
    """out_p = R(θ_p) c_p: c' = c cos tθ − s sin tθ, s' = s cos tθ + c sin tθ, pair by pair."""
    n_coords = coords.shape[1]
    cos, sin = np.ones(n_coords, np.float32), np.zeros(n_coords, np.float32)
    partner = np.arange(n_coords).astype(np.uint32)
    for t in range(1, start.size - 1):
        n_radial = (start[t + 1] - start[t]) // 2
        for c in range(start[t], start[t] + n_radial):
            partner[c], partner[c + n_radial] = c + n_radial, c
    for p in range(coords.shape[0]):
        if p == 0 or theta[p] != theta[p - 1]:
            for t in range(1, start.size - 1):
                wave_cos, wave_sin = np.cos(t * theta[p]), np.sin(t * theta[p])
                middle = (start[t] + start[t + 1]) // 2
                cos[start[t] : start[t + 1]] = wave_cos
                sin[start[t] : middle] = -wave_sin
                sin[middle : start[t + 1]] = wave_sin
        for c in range(n_coords):
            out[p, c] = coords[p, c] * cos[c] + coords[p, partner[c]] * sin[c]
