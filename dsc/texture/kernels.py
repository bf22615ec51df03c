"""The compiled loops of texture classification.

`best_atoms` labels patches by the best of many dictionaries, one atom per patch.

With one atom per patch, the dictionary that codes best is the one with the largest |⟨x, R(θ) d⟩|
over its atoms and angles. Only that maximum matters, so an atom is passed over as soon as it cannot
reach the best score of *any* class so far. Three steps, each for what the one before has left:

1. the bound Σ_t √(A_t² + B_t²) + ‖x'‖ ‖d'‖, with A_t and B_t of the strongest components only (the
   `Outline` of `dsc.texture.tables`) and x', d' what they leave out: two atoms by 16 patches;
2. the largest |Σ_t A_t cos tθ + B_t sin tθ| + ‖x'‖ ‖d'‖ over the angles, of the same A_t and B_t;
3. all coordinates and angles, by the operations of `dsc.pursuit.kernels` in their order.

Atoms are taken two by two, those that won among the patches just before first. The order and the
bounds decide the time, not the result: bounds have room for rounding, and ties go to the lowest
atom.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from dsc.pursuit import ANGLES, BLOCK, NO_GAIN, take_patch, to_columns
from dsc.simd import (
    LANES,
    absolute,
    add,
    aligned_zeros,
    fma,
    fnma,
    largest,
    load,
    load16,
    load_one16,
    lowest_bit,
    maximum,
    mul,
    reaches,
    splat16,
    square_root,
    store,
    sub,
    zeros,
    zeros16,
)

_compile = njit(cache=True, nogil=True, error_model="numpy")
_inline = njit(cache=True, nogil=True, error_model="numpy", forceinline=True)


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
def best_atoms(
    coords,
    order,
    rows_of,
    n_even,
    table,
    mixes,
    kept,
    parts,
    slack,
    strong,
    strong_even,
    strong_table,
    atoms,
    place,
    radials,
    out,
):
    """The atom of largest score for every row of `coords` (patch, coord), −1 where nothing is left.

    `order` is the packed order, `rows_of` to `table` are those of the `Search` of
    `dsc.pursuit.tables`, `mixes` to `strong_table` the `Outline` and `atoms` to `radials` the
    `Details` of all atoms of all classes → out (patch,). Returns (bad, outlined, evaluated): −1 or
    the first patch whose energy is no number that can be coded; the (atom, patch) pairs that got to
    the second step, and those that got to the third.
    """
    n_patches, n_coords = coords.shape
    n_atoms, n_frequencies = atoms.shape[0], rows_of.size
    n_pairs = (n_atoms + 1) // 2
    stride = parts.size // n_pairs
    size = strong.size * 2 * BLOCK
    angles = aligned_zeros(strong_table.size)
    angles[:] = strong_table
    columns = aligned_zeros(-(-n_coords // LANES) * LANES * BLOCK)
    patches = np.zeros((BLOCK, -(-n_coords // LANES) * LANES), np.float32)
    details = np.zeros((BLOCK, atoms.shape[1]), np.float32)
    outlines = aligned_zeros((stride // 2 + 1) * BLOCK)
    outline_waves = aligned_zeros(2 * size + 2 * BLOCK)
    waves = aligned_zeros(radials.size * 2 * LANES)
    energy = aligned_zeros(BLOCK)
    best = aligned_zeros(BLOCK)
    best_atom = np.zeros(BLOCK, np.int64)
    visits = np.arange(n_pairs)
    outlined = evaluated = 0
    for begin in range(0, n_patches, BLOCK):
        count = min(BLOCK, n_patches - begin)
        for lane in range(BLOCK):
            best[lane] = NO_GAIN if lane < count else np.inf
            best_atom[lane] = n_atoms
            if lane < count:
                raw, scale = take_patch(coords, begin + lane, order, patches, lane)
                if raw < 0:
                    return begin + lane, outlined, evaluated
                energy[lane] = raw / scale / scale
                for c in range(n_coords):
                    details[lane, place[c]] = patches[lane, c]
        to_columns(patches, columns)
        draw_outline(columns, energy, rows_of, mixes, kept, slack, outlines)
        for v in range(n_pairs):
            pair = visits[v]
            left = outline_pair(outlines, parts, pair * stride, strong, best, outline_waves)
            while left:
                i = lowest_bit(left)
                left &= left - 1
                m, lane = 2 * pair + i // BLOCK, i % BLOCK
                if m >= n_atoms:
                    break
                outlined += 1
                w = i // BLOCK * size + lane
                extra = outline_waves[2 * size + i]
                if not outline_reaches(
                    outline_waves, w, extra, best[lane], angles, strong_even, strong.size
                ):
                    continue
                evaluated += 1
                score = pair_score(
                    details, lane, atoms, m, radials, n_even, n_frequencies, table, waves
                )
                if score > best[lane] or (score == best[lane] and m < best_atom[lane]):
                    best[lane], best_atom[lane] = score, m
        for lane in range(count):
            found = best_atom[lane] < n_atoms
            out[begin + lane] = best_atom[lane] if found else -1
            if found:  # the next patches are likely to be alike: its pair goes to the front
                to_front(visits, best_atom[lane] // 2)
    return -1, outlined, evaluated


@_inline
def draw_outline(columns, energy, rows_of, mixes, kept, slack, out):
    """The outline of a block of patches.

    columns as for `correlate` of the pursuit, energy (BLOCK) of the patches, `mixes` to `slack` as
    in `Outline` → out (2 + values, BLOCK): the norm of what is left out, room for rounding, values.
    """
    x, i, at = 0, 0, 2 * BLOCK
    squares = zeros16()
    for f in range(rows_of.size):
        step = 1 if f == 0 else 2
        for _ in range(kept[f]):
            row = x
            a, b = zeros16(), zeros16()
            for _ in range(rows_of[f] // step):
                c, re = load16(columns, row), load_one16(mixes, i)
                a = fma(c, re, a)
                if f > 0:
                    s, im = load16(columns, row + BLOCK), load_one16(mixes, i + 1)
                    a = fma(s, im, a)
                    b = fnma(c, im, fma(s, re, b))
                row += step * BLOCK
                i += step
            store(out, at, a)
            squares = fma(a, a, squares)
            if f > 0:
                store(out, at + BLOCK, b)
                squares = fma(b, b, squares)
            at += step * BLOCK
        x += rows_of[f] * BLOCK
    store(out, 0, squares)
    for lane in range(BLOCK):
        room = slack * energy[lane]
        out[lane] = np.sqrt(max(energy[lane] - out[lane], 0.0) + room)
        out[BLOCK + lane] = slack * np.sqrt(energy[lane])


@_inline
def outline_pair(patches, parts, d, strong, best, waves):
    """A bit for each of two atoms by BLOCK patches whose outlines leave hope for the best score.

    patches as from `draw_outline`; parts and strong as in `Outline`, the two atoms from `d` on;
    best (BLOCK) → waves (2 · frequency · 2 · BLOCK) with A_t, then B_t, and behind them (2 · BLOCK)
    by how much a score can exceed what they say.
    """
    size = strong.size * 2 * BLOCK
    x0, room = load16(patches, 0), load16(patches, BLOCK)
    r0, r1 = fma(x0, load_one16(parts, d), room), fma(x0, load_one16(parts, d + 1), room)
    store(waves, 2 * size, r0)
    store(waves, 2 * size + BLOCK, r1)
    x = 2 * BLOCK
    d += 2
    a0, a1 = zeros16(), zeros16()
    for _ in range(strong[0]):
        x0 = load16(patches, x)
        a0, a1 = fma(x0, load_one16(parts, d), a0), fma(x0, load_one16(parts, d + 1), a1)
        x += BLOCK
        d += 2
    store(waves, 0, a0)
    store(waves, size, a1)
    s0, s1 = add(r0, absolute(a0)), add(r1, absolute(a1))
    w = 2 * BLOCK
    for f in range(1, strong.size):
        a0, a1, b0, b1 = zeros16(), zeros16(), zeros16(), zeros16()
        for _ in range(strong[f]):
            c, s = load16(patches, x), load16(patches, x + BLOCK)
            dc, ds = load_one16(parts, d), load_one16(parts, d + 2)
            a0, b0 = fma(c, dc, a0), fma(s, dc, b0)
            a0, b0 = fma(s, ds, a0), fnma(c, ds, b0)
            dc, ds = load_one16(parts, d + 1), load_one16(parts, d + 3)
            a1, b1 = fma(c, dc, a1), fma(s, dc, b1)
            a1, b1 = fma(s, ds, a1), fnma(c, ds, b1)
            x += 2 * BLOCK
            d += 4
        store(waves, w, a0)
        store(waves, w + BLOCK, b0)
        store(waves, size + w, a1)
        store(waves, size + w + BLOCK, b1)
        s0 = add(s0, square_root(fma(a0, a0, mul(b0, b0))))
        s1 = add(s1, square_root(fma(a1, a1, mul(b1, b1))))
        w += 2 * BLOCK
    top = load16(best, 0)
    return reaches(s0, top) | reaches(s1, top) << BLOCK


@_inline
def outline_reaches(waves, w, extra, least, table, n_even, n_frequencies):
    """Whether a score of the outlines at `w` and `extra` reach `least`, at any angle.

    As `scores` of the pursuit in another order; `table` has an even number of rounds, of which two
    go side by side.
    """
    top = zeros16()
    n_odd = n_frequencies - n_even
    span = n_frequencies * 2 * ANGLES
    for begin in range(0, table.size, 2 * span):
        e, c = w, begin
        o, k = w + n_even * 2 * BLOCK, begin + n_even * 2 * ANGLES
        ce, se, co, so = zeros16(), zeros16(), zeros16(), zeros16()
        de, ue, do, uo = zeros16(), zeros16(), zeros16(), zeros16()
        for _ in range(min(n_even, n_odd)):  # even and odd ones at once: shorter chains
            a, b = load_one16(waves, e), load_one16(waves, e + BLOCK)
            ce, de = fma(a, load16(table, c), ce), fma(a, load16(table, c + span), de)
            c += ANGLES
            se, ue = fma(b, load16(table, c), se), fma(b, load16(table, c + span), ue)
            a, b = load_one16(waves, o), load_one16(waves, o + BLOCK)
            co, do = fma(a, load16(table, k), co), fma(a, load16(table, k + span), do)
            k += ANGLES
            so, uo = fma(b, load16(table, k), so), fma(b, load16(table, k + span), uo)
            e += 2 * BLOCK
            c += ANGLES
            o += 2 * BLOCK
            k += ANGLES
        for _ in range(n_odd, n_even):
            a, b = load_one16(waves, e), load_one16(waves, e + BLOCK)
            ce, de = fma(a, load16(table, c), ce), fma(a, load16(table, c + span), de)
            c += ANGLES
            se, ue = fma(b, load16(table, c), se), fma(b, load16(table, c + span), ue)
            e += 2 * BLOCK
            c += ANGLES
        for _ in range(n_even, n_odd):
            a, b = load_one16(waves, o), load_one16(waves, o + BLOCK)
            co, do = fma(a, load16(table, k), co), fma(a, load16(table, k + span), do)
            k += ANGLES
            so, uo = fma(b, load16(table, k), so), fma(b, load16(table, k + span), uo)
            o += 2 * BLOCK
            k += ANGLES
        top = maximum(top, maximum(best_sums(ce, se, co, so), best_sums(de, ue, do, uo)))
    return reaches(add(top, splat16(extra)), splat16(least)) != 0


@_inline
def best_sums(ce, se, co, so):
    """The largest of the folded angles, from their sums."""
    plus = add(absolute(add(ce, se)), absolute(add(co, so)))
    minus = add(absolute(sub(ce, se)), absolute(sub(co, so)))
    return maximum(plus, minus)


@_inline
def pair_score(patches, lane, atoms, m, radials, n_even, n_frequencies, table, waves):
    """The score of one patch and one atom: `correlate` and `scores` of the pursuit to the bit.

    patches and atoms as in `Details`; waves (2 · frequency padded) scratch. Every sum has its terms
    in the order of the pursuit: a frequency is a lane here, and even and odd ones go side by side.
    """
    at = 0
    n_lanes = radials.size * LANES
    for group in range(radials.size):
        a, b = zeros(), zeros()
        for _ in range(radials[group]):
            c, s = load(patches, (lane, at)), load(patches, (lane, at + LANES))
            dc, ds = load(atoms, (m, at)), load(atoms, (m, at + LANES))
            a, b = fma(c, dc, a), fma(s, dc, b)
            a, b = fma(s, ds, a), fnma(c, ds, b)
            at += 2 * LANES
        store(waves, group * LANES, a)
        store(waves, n_lanes + group * LANES, b)
    top = zeros16()
    n_odd = n_frequencies // 2
    half = n_frequencies - n_odd
    for begin in range(0, table.size, n_frequencies * 2 * ANGLES):
        c, k = begin, begin + half * 2 * ANGLES
        ce, se, co, so = zeros16(), zeros16(), zeros16(), zeros16()
        if n_even == n_frequencies:  # all count as even: one chain
            for t in range(0, n_frequencies, 2):
                ce = fma(load_one16(waves, t), load16(table, c), ce)
                se = fma(load_one16(waves, n_lanes + t), load16(table, c + ANGLES), se)
                c += 2 * ANGLES
            for t in range(1, n_frequencies, 2):
                ce = fma(load_one16(waves, t), load16(table, c), ce)
                se = fma(load_one16(waves, n_lanes + t), load16(table, c + ANGLES), se)
                c += 2 * ANGLES
        else:
            for i in range(n_odd):
                t = 2 * i
                ce = fma(load_one16(waves, t), load16(table, c), ce)
                se = fma(load_one16(waves, n_lanes + t), load16(table, c + ANGLES), se)
                co = fma(load_one16(waves, t + 1), load16(table, k), co)
                so = fma(load_one16(waves, n_lanes + t + 1), load16(table, k + ANGLES), so)
                c += 2 * ANGLES
                k += 2 * ANGLES
            for i in range(n_odd, half):
                t = 2 * i
                ce = fma(load_one16(waves, t), load16(table, c), ce)
                se = fma(load_one16(waves, n_lanes + t), load16(table, c + ANGLES), se)
        top = maximum(top, best_sums(ce, se, co, so))
    return largest(top)


@_compile
def to_front(visits, pair):
    """Move a value to the front of a list, the ones before it one place back."""
    last = pair
    for v in range(visits.size):
        last, visits[v] = visits[v], last
        if last == pair:
            break
