"""The search of the first version of dsc, to measure others by."""

from __future__ import annotations

import numpy as np
from numba import njit

from dsc.pursuit import ANGLES, BLOCK, NO_GAIN, take_patch, to_columns
from dsc.simd import (
    LANES,
    absolute,
    add,
    fma,
    fnma,
    largest,
    load,
    load_one,
    maximum,
    mul,
    splat,
    square_root,
    store,
    sub,
    zeros,
)

SLACK = 1.00001  # a float32 value can exceed its own bound by rounding

_compile = njit(cache=True, nogil=True, error_model="numpy")
_inline = njit(cache=True, nogil=True, error_model="numpy", forceinline=True)


@_compile
def correlate(columns, packed, rows_of, waves, bound):
    """A_t, B_t and bounds of two atoms and a block of patches, eight lanes at a time."""
    n_frequencies = rows_of.size
    slack = splat(np.float32(SLACK))
    w, v, x, d = 0, n_frequencies * 2 * BLOCK, 0, 0
    a00, a01, a10, a11 = zeros(), zeros(), zeros(), zeros()
    for _ in range(rows_of[0]):
        x0, x1 = load(columns, x), load(columns, x + 8)
        d0, d1 = load_one(packed, d), load_one(packed, d + 1)
        a00, a01 = fma(x0, d0, a00), fma(x1, d0, a01)
        a10, a11 = fma(x0, d1, a10), fma(x1, d1, a11)
        x += BLOCK
        d += 2
    store(waves, w, a00)
    store(waves, w + 8, a01)
    store(waves, v, a10)
    store(waves, v + 8, a11)
    s00, s01, s10, s11 = absolute(a00), absolute(a01), absolute(a10), absolute(a11)
    for t in range(1, n_frequencies):
        a00, a01, a10, a11 = zeros(), zeros(), zeros(), zeros()
        b00, b01, b10, b11 = zeros(), zeros(), zeros(), zeros()
        for _ in range(rows_of[t] // 2):
            c0, c1 = load(columns, x), load(columns, x + 8)
            s0, s1 = load(columns, x + 16), load(columns, x + 24)
            dc, ds = load_one(packed, d), load_one(packed, d + 2)
            a00, a01 = fma(c0, dc, a00), fma(c1, dc, a01)
            b00, b01 = fma(s0, dc, b00), fma(s1, dc, b01)
            a00, a01 = fma(s0, ds, a00), fma(s1, ds, a01)
            b00, b01 = fnma(c0, ds, b00), fnma(c1, ds, b01)
            dc, ds = load_one(packed, d + 1), load_one(packed, d + 3)
            a10, a11 = fma(c0, dc, a10), fma(c1, dc, a11)
            b10, b11 = fma(s0, dc, b10), fma(s1, dc, b11)
            a10, a11 = fma(s0, ds, a10), fma(s1, ds, a11)
            b10, b11 = fnma(c0, ds, b10), fnma(c1, ds, b11)
            x += 2 * BLOCK
            d += 4
        w += 2 * BLOCK
        v += 2 * BLOCK
        store(waves, w, a00)
        store(waves, w + 8, a01)
        store(waves, w + 16, b00)
        store(waves, w + 24, b01)
        store(waves, v, a10)
        store(waves, v + 8, a11)
        store(waves, v + 16, b10)
        store(waves, v + 24, b11)
        s00 = add(s00, square_root(fma(a00, a00, mul(b00, b00))))
        s01 = add(s01, square_root(fma(a01, a01, mul(b01, b01))))
        s10 = add(s10, square_root(fma(a10, a10, mul(b10, b10))))
        s11 = add(s11, square_root(fma(a11, a11, mul(b11, b11))))
    store(bound, 0, mul(s00, slack))
    store(bound, 8, mul(s01, slack))
    store(bound, 16, mul(s10, slack))
    store(bound, 24, mul(s11, slack))


@_inline
def scores(waves, w, table, n_even, n_frequencies, n_rounds):
    """The largest score of the (atom, patch) pair at `w`."""
    top = zeros()
    c = 0
    for _ in range(n_rounds):
        i = w
        ce0, ce1, se0, se1 = zeros(), zeros(), zeros(), zeros()
        for _ in range(n_even):
            a, b = load_one(waves, i), load_one(waves, i + BLOCK)
            ce0, ce1 = fma(a, load(table, c), ce0), fma(a, load(table, c + 8), ce1)
            se0, se1 = fma(b, load(table, c + 16), se0), fma(b, load(table, c + 24), se1)
            i += 2 * BLOCK
            c += 2 * ANGLES
        co0, co1, so0, so1 = zeros(), zeros(), zeros(), zeros()
        for _ in range(n_even, n_frequencies):
            a, b = load_one(waves, i), load_one(waves, i + BLOCK)
            co0, co1 = fma(a, load(table, c), co0), fma(a, load(table, c + 8), co1)
            so0, so1 = fma(b, load(table, c + 16), so0), fma(b, load(table, c + 24), so1)
            i += 2 * BLOCK
            c += 2 * ANGLES
        v0 = maximum(
            add(absolute(add(ce0, se0)), absolute(add(co0, so0))),
            add(absolute(sub(ce0, se0)), absolute(sub(co0, so0))),
        )
        v1 = maximum(
            add(absolute(add(ce1, se1)), absolute(add(co1, so1))),
            add(absolute(sub(ce1, se1)), absolute(sub(co1, so1))),
        )
        top = maximum(top, maximum(v0, v1))
    return largest(top)


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
            correlate(columns, atoms, rows_of, waves, bound)
            for i in range(2 * BLOCK):
                lane = i % BLOCK
                if bound[i] < best[lane]:
                    continue
                evaluated += 1
                m = 2 * pair + i // BLOCK
                w = i // BLOCK * size + lane
                score = scores(waves, w, table, n_even, n_frequencies, n_rounds)
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
