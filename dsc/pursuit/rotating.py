"""The compiled loop of the pursuit where atoms rotate and a patch has several of them.

A patch is held against the dictionary once, on the whole grid of angles. Let q_j be the chosen
rotated atoms made orthonormal (Gram–Schmidt, in the order of choice), L the products of the atom d'
just chosen, at its angle φ, with the earlier q, p the length of what is new in it, a = ⟨x, q_k⟩:

    ⟨q_k, R(θ) d⟩ = (⟨d', R(θ − φ) d⟩ − Σ_j L_j ⟨q_j, R(θ) d⟩) / p
    ⟨r, R(θ) d⟩  ←  ⟨r, R(θ) d⟩ − a ⟨q_k, R(θ) d⟩

The products of pairs of atoms at all angles are in a table, read from another place for another φ.
So a step does not go back to the patch: it costs some multiply-adds per atom and angle, an angle
per lane. Orthogonal matching pursuit takes the largest |⟨r, R(θ) d⟩|; orthogonal least squares what
lowers the error most, the largest

    ⟨r, R(θ) d⟩² / (1 − Σ_j ⟨q_j, R(θ) d⟩²).

Where the table would be too large, and where angles are refined, the chosen atom is held against
the dictionary as patches are.

Every patch goes through the same operations in the same order whatever its neighbours: results do
not depend on how rows are split into calls, to the bit.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from dsc.pursuit.kernels import (
    ANGLES,
    NEW,
    NO_GAIN,
    TOO_LITTLE,
    ZERO_RESIDUAL,
    refit,
    rotate,
    take_patch,
)
from dsc.pursuit.refining import FINER, find_waves, refined
from dsc.simd import (
    LANES,
    absolute,
    add,
    divide,
    fma,
    fnma,
    largest,
    load,
    load16,
    load_one,
    load_one16,
    maximum,
    mul,
    reverse,
    splat,
    splat16,
    store,
    sub,
    where_larger,
    zeros,
    zeros16,
)

PATCHES = 4  # held against the dictionary at a time
WIDTH = 2 * ANGLES  # angles that are worked on at a time
MARGIN = 2 * WIDTH  # what is before the first row, and after the last one

_compile = njit(cache=True, nogil=True, error_model="numpy")
_inline = njit(cache=True, nogil=True, error_model="numpy", forceinline=True)


@_compile
def width_of(n_angles):
    """Floats in a row of all angles: they are followed by the first ones, once at least."""
    return (n_angles // WIDTH + 1) * WIDTH


@_inline
def correlate_rows(patches, columns, rows_of, waves):
    """The polynomials of all atoms for four patches.

    patches (PATCHES, packed coord padded), columns (group · packed coord · LANES) eight atoms side
    by side → waves (PATCHES · group · frequency · 2 · LANES) with A_t, then B_t.
    """
    size = waves.size // PATCHES
    d, w = 0, 0
    while w < size:
        x = 0
        a0, a1, a2, a3 = zeros(), zeros(), zeros(), zeros()
        for _ in range(rows_of[0]):
            c = load(columns, d)
            a0, a1 = fma(c, load_one(patches, (0, x)), a0), fma(c, load_one(patches, (1, x)), a1)
            a2, a3 = fma(c, load_one(patches, (2, x)), a2), fma(c, load_one(patches, (3, x)), a3)
            x += 1
            d += LANES
        store(waves, w, a0)
        store(waves, size + w, a1)
        store(waves, 2 * size + w, a2)
        store(waves, 3 * size + w, a3)
        w += 2 * LANES
        for t in range(1, rows_of.size):
            a0, a1, a2, a3 = zeros(), zeros(), zeros(), zeros()
            b0, b1, b2, b3 = zeros(), zeros(), zeros(), zeros()
            for _ in range(rows_of[t] // 2):
                c, s = load(columns, d), load(columns, d + LANES)
                p, q = load_one(patches, (0, x)), load_one(patches, (0, x + 1))
                a0, b0 = fma(c, p, a0), fma(c, q, b0)
                a0, b0 = fma(s, q, a0), fnma(s, p, b0)
                p, q = load_one(patches, (1, x)), load_one(patches, (1, x + 1))
                a1, b1 = fma(c, p, a1), fma(c, q, b1)
                a1, b1 = fma(s, q, a1), fnma(s, p, b1)
                p, q = load_one(patches, (2, x)), load_one(patches, (2, x + 1))
                a2, b2 = fma(c, p, a2), fma(c, q, b2)
                a2, b2 = fma(s, q, a2), fnma(s, p, b2)
                p, q = load_one(patches, (3, x)), load_one(patches, (3, x + 1))
                a3, b3 = fma(c, p, a3), fma(c, q, b3)
                a3, b3 = fma(s, q, a3), fnma(s, p, b3)
                x += 2
                d += 2 * LANES
            store(waves, w, a0)
            store(waves, size + w, a1)
            store(waves, 2 * size + w, a2)
            store(waves, 3 * size + w, a3)
            store(waves, w + LANES, b0)
            store(waves, size + w + LANES, b1)
            store(waves, 2 * size + w + LANES, b2)
            store(waves, 3 * size + w + LANES, b3)
            w += 2 * LANES


@_inline
def write_angles(ce, se, co, so, half, n_angles, out, o, back):
    """The values at θ and π + θ, forwards from `o`, and at −θ and π − θ, up to `back`."""
    a, b, p, q = add(ce, se), add(co, so), sub(ce, se), sub(co, so)
    if half:
        store(out, o + half, sub(a, b))
        store(out, back + half, reverse(sub(p, q)))
    store(out, back + n_angles, reverse(add(p, q)))
    store(out, o, add(a, b))


@_inline
def spread(waves, start, table, n_even, n_frequencies, n_angles, out, width):
    """⟨r, R(θ) d⟩ of all atoms at every angle of the grid, from their polynomials at `start`.

    table (round of angles · frequency · 2 · ANGLES) as in `scores`; out (MARGIN + atom · width),
    an even number of rows, each filled up with its first angles. Two atoms share what is loaded.
    What is written before a row (other angles again) belongs to the one that is written next.
    """
    half = n_angles // 2 if n_angles % 4 == 0 else 0
    n_rows = (out.size - 2 * MARGIN) // width
    for m in range(n_rows - 2, -1, -2):
        first = start + m // LANES * n_frequencies * 2 * LANES + m % LANES
        row, c = MARGIN + m * width, 0
        for o in range(0, table.size // (n_frequencies * 2), ANGLES):
            w = first
            ce0, ce1, se0, se1 = zeros16(), zeros16(), zeros16(), zeros16()
            for _ in range(n_even):
                cos, sin = load16(table, c), load16(table, c + ANGLES)
                ce0 = fma(load_one16(waves, w), cos, ce0)
                ce1 = fma(load_one16(waves, w + 1), cos, ce1)
                se0 = fma(load_one16(waves, w + LANES), sin, se0)
                se1 = fma(load_one16(waves, w + LANES + 1), sin, se1)
                w += 2 * LANES
                c += 2 * ANGLES
            co0, co1, so0, so1 = zeros16(), zeros16(), zeros16(), zeros16()
            for _ in range(n_even, n_frequencies):
                cos, sin = load16(table, c), load16(table, c + ANGLES)
                co0 = fma(load_one16(waves, w), cos, co0)
                co1 = fma(load_one16(waves, w + 1), cos, co1)
                so0 = fma(load_one16(waves, w + LANES), sin, so0)
                so1 = fma(load_one16(waves, w + LANES + 1), sin, so1)
                w += 2 * LANES
                c += 2 * ANGLES
            to, back = row + o, row - o - ANGLES + 1
            write_angles(ce1, se1, co1, so1, half, n_angles, out, to + width, back + width)
            write_angles(ce0, se0, co0, so0, half, n_angles, out, to, back)
        for i in range(row + width + n_angles, row + 2 * width):
            out[i] = out[i - n_angles]
        for i in range(row + n_angles, row + width):
            out[i] = out[i - n_angles]


@_compile
def pairs(atoms, columns, rows_of, n_even, table, n_angles, out):
    """⟨d_i, R(θ) d_j⟩ of every pair of atoms: out (atom, atom, angle), from −2π on."""
    rows = np.zeros((PATCHES, atoms.shape[1]), np.float32)
    n_atoms, width = atoms.shape[0], out.shape[2] - n_angles
    waves = np.zeros(PATCHES * columns.size // rows_of.sum() * rows_of.size * 2, np.float32)
    row = np.zeros((n_atoms + n_atoms % 2) * width + 2 * MARGIN, np.float32)
    for begin in range(0, n_atoms, PATCHES):
        count = min(PATCHES, n_atoms - begin)
        rows[:count] = atoms[begin : begin + count]
        correlate_rows(rows, columns, rows_of, waves)
        for i in range(count):
            start = i * (waves.size // PATCHES)
            spread(waves, start, table, n_even, rows_of.size, n_angles, row, width)
            for j in range(n_atoms):
                for a in range(n_angles):
                    out[begin + i, j, a] = row[MARGIN + j * width + a]
                for a in range(width):
                    out[begin + i, j, n_angles + a] = row[MARGIN + j * width + a]


@_inline
def largest_common(common, n_atoms, width):
    """The atom of largest |⟨r, R(θ) d⟩|, ties to the lowest, and that size."""
    best, best_atom = np.float32(0), 0
    for m in range(n_atoms):
        top = zeros16()
        for i in range(MARGIN + m * width, MARGIN + (m + 1) * width, WIDTH):
            u, v = absolute(load16(common, i)), absolute(load16(common, i + ANGLES))
            top = maximum(top, maximum(u, v))
        size = largest(top)
        if size > best:
            best, best_atom = size, m
    return best_atom, best


@_inline
def lowest_common(common, first, width, best):
    """The lowest angle of the atom whose row begins at `first` where |⟨r, R(θ) d⟩| is `best`."""
    for i in range(first, first + width, LANES):
        if largest(absolute(load(common, i))) == best:
            for j in range(i, i + LANES):
                if abs(common[j]) == best:
                    return j - first
    return 0


@_inline
def advance(k, least_squares, pair, g, step, lower, scale, gain, q, slots, common, new, width, top):
    """One more chosen atom, on the whole grid, and the best scores after it.

    pair, from g on and `step` from atom to atom, has ⟨d', R(θ) d⟩ with the atom just chosen; lower
    (slot) its products with the earlier q; q (atom · slot · angle) the ⟨q_j, R(θ) d⟩; common (atom
    · angle) the ⟨r, R(θ) d⟩; new (atom · angle) the 1 − Σ_j ⟨q_j, R(θ) d⟩². top (2 · WIDTH) gets
    the best score of each lane, and which round of WIDTH angles, through all atoms, it is of.
    """
    size, rise = splat16(scale), splat16(gain)
    one, least = splat16(np.float32(1)), splat16(np.float32(NEW))
    little = splat16(np.float32(TOO_LITTLE))
    n0, n1, d0, d1 = zeros16(), zeros16(), one, one  # numerators and denominators of the best
    at0, at1 = zeros16(), zeros16()
    keep = k + 1 < slots  # after the last step nothing is looked up again
    number = np.float32(0)
    for m in range(new.size // width):
        for a in range(0, width, WIDTH):
            i = g + m * step + a
            u, v = load16(pair, i), load16(pair, i + ANGLES)
            i = m * slots * width + a
            for j in range(k):
                part = load_one16(lower, j)
                u, v = fnma(part, load16(q, i), u), fnma(part, load16(q, i + ANGLES), v)
                i += width
            u, v = mul(u, size), mul(v, size)
            if keep:
                store(q, i, u)
                store(q, i + ANGLES, v)
            i = MARGIN + m * width + a
            x, y = fnma(rise, u, load16(common, i)), fnma(rise, v, load16(common, i + ANGLES))
            if keep:
                store(common, i, x)
                store(common, i + ANGLES, y)
            x, y = mul(x, x), mul(y, y)
            if least_squares:
                i -= MARGIN
                u, v = fnma(u, u, load16(new, i)), fnma(v, v, load16(new, i + ANGLES))
                if keep:
                    store(new, i, u)
                    store(new, i + ANGLES, v)
                x, y = where_larger(u, little, x, zeros16()), where_larger(v, little, y, zeros16())
                u, v = maximum(u, least), maximum(v, least)
            else:
                u, v = one, one
            place = splat16(number)
            here, there = mul(x, d0), mul(n0, u)  # x/u > n0/d0, without dividing
            n0, d0 = where_larger(here, there, x, n0), where_larger(here, there, u, d0)
            at0 = where_larger(here, there, place, at0)
            here, there = mul(y, d1), mul(n1, v)
            n1, d1 = where_larger(here, there, y, n1), where_larger(here, there, v, d1)
            at1 = where_larger(here, there, place, at1)
            number += np.float32(1)
    n0, n1 = divide(n0, d0), divide(n1, d1)
    store(top, 0, n0)
    store(top, ANGLES, n1)
    store(top, WIDTH, at0)
    store(top, WIDTH + ANGLES, at1)
    return largest(maximum(n0, n1))


@_inline
def lowest_best(top, best, n_angles, width):
    """The lowest (atom, angle) among the lanes whose score is `best`."""
    n_rounds = width // WIDTH
    lowest = n_angles * np.int64(2**40)
    for i in range(WIDTH):
        if top[i] == best:
            number = int(top[WIDTH + i])
            angle = (number % n_rounds * WIDTH + i) % n_angles
            lowest = min(lowest, number // n_rounds * n_angles + angle)
    return lowest // n_angles, lowest % n_angles


@_compile
def pursue(
    coords,
    tolerance,
    sparsity,
    least_squares,
    cosine,
    atoms,
    swapped,
    order,
    coord_cos,
    coord_sin,
    columns,
    rows_of,
    n_even,
    table,
    pair,
    out_atom,
    out_angle,
    out_coef,
    out_error,
):
    """Rotational pursuit of all rows of `coords` (patch, coord).

    least_squares says whether scores have their denominators. cosine (fine angle) is the finer grid
    on which angles are refined, or empty. `atoms` to `coord_sin` are the `Rotations`, on the finer
    grid if there is one, and `columns` to `pair` the `Choice` of `tables`.
    out_* (patch, slot) and out_error (patch,) come in as empty codes. Returns −1, or the number of
    the first patch whose energy is no number that can be coded.
    """
    n_patches = coords.shape[0]
    n_atoms, padded = atoms.shape
    finer = FINER if cosine.size else 1
    n_angles = coord_cos.shape[0] // finer
    n_frequencies = rows_of.size
    n_lanes = -(-n_atoms // LANES) * LANES
    length = n_lanes * n_frequencies * 2
    width = width_of(n_angles)
    slots = sparsity - 1
    by_table = pair.size > 0
    patches = np.zeros((PATCHES, padded), np.float32)
    waves = np.zeros(PATCHES * length, np.float32)
    alone = np.zeros((PATCHES, padded), np.float32)
    again = np.zeros(PATCHES * length if not by_table else 0, np.float32)
    n_common = (n_atoms + n_atoms % 2) * width + 2 * MARGIN
    common = np.zeros(n_common, np.float32)
    fresh = np.zeros(n_common if not by_table else 0, np.float32)
    new = np.zeros(n_atoms * width, np.float32)
    q = np.zeros(n_atoms * slots * width, np.float32)
    chosen = np.zeros((sparsity, padded), np.float32)
    inverse = np.zeros((sparsity, sparsity))
    projection = np.zeros(sparsity)
    coefs = np.zeros(sparsity)
    lower = np.zeros(sparsity, np.float32)
    scale = np.ones(PATCHES)
    energy = np.zeros(PATCHES)
    top = np.zeros(2 * WIDTH, np.float32)
    rest = np.zeros(order.size)
    fine_waves = np.zeros((sparsity, n_frequencies, 2))
    for begin in range(0, n_patches, PATCHES):
        count = min(PATCHES, n_patches - begin)
        for lane in range(count):
            raw, scale[lane] = take_patch(coords, begin + lane, order, patches, lane)
            if raw < 0:
                return begin + lane
            energy[lane] = raw / scale[lane] ** 2
        correlate_rows(patches, columns, rows_of, waves)
        for lane in range(count):
            p = begin + lane
            error = energy[lane]
            enough = max(ZERO_RESIDUAL * energy[lane], tolerance / scale[lane] ** 2)
            spread(waves, lane * length, table, n_even, n_frequencies, n_angles, common, width)
            for i in range(0, new.size, LANES):
                store(new, i, splat(np.float32(1)))
            best_atom, best = largest_common(common, n_atoms, width)
            angle = lowest_common(common, MARGIN + best_atom * width, width, best)
            least = np.float32(NO_GAIN)
            for k in range(sparsity):
                if error <= enough or not best > least:
                    break
                angle *= finer
                if finer > 1:
                    find_waves(
                        patches, lane, chosen, inverse, coefs, k, least_squares, atoms[best_atom],
                        rows_of, rest, fine_waves,
                    )  # fmt: skip
                    angle += refined(fine_waves, k, least_squares, cosine, angle)
                    angle %= cosine.size
                rotate(atoms, swapped, best_atom, coord_cos, coord_sin, angle, chosen, k)
                gain = refit(patches, lane, chosen, k, inverse, projection, coefs, lower)
                if gain < 0:
                    break
                error = max(error - gain, 0.0)
                out_atom[p, k] = best_atom
                out_angle[p, k] = angle
                for i in range(k + 1):
                    out_coef[p, i] = coefs[i] * scale[lane]
                if k + 1 == sparsity:
                    break
                size, rise = np.float32(inverse[k, k]), np.float32(projection[k])
                if by_table:
                    step = n_angles + width
                    g = best_atom * n_atoms * step + n_angles - angle
                    best = advance(
                        k, least_squares, pair, g, step, lower, size, rise, q, slots, common, new,
                        width, top,
                    )  # fmt: skip
                else:
                    for c in range(0, padded, LANES):
                        store(alone, (0, c), load(chosen, (k, c)))
                    correlate_rows(alone, columns, rows_of, again)
                    spread(again, 0, table, n_even, n_frequencies, n_angles, fresh, width)
                    best = advance(
                        k, least_squares, fresh, MARGIN, width, lower, size, rise, q, slots, common,
                        new, width, top,
                    )  # fmt: skip
                best_atom, angle = lowest_best(top, best, n_angles, width)
                least = np.float32(NO_GAIN**2)
            out_error[p] = error * scale[lane] ** 2
    return -1
