"""The compiled loops of rotational OMP.

For a residual r and an atom d, with A_t and B_t inner products over the radial index only,

    ⟨r, R(θ) d⟩ = A_0 + Σ_t A_t cos tθ + B_t sin tθ          A_t = Σ r_c d_c + r_s d_s
                                                              B_t = Σ r_s d_c − r_c d_s

costs 2n multiply-adds for all angles together. `correlate` computes A and B of all atoms for 16
patches, a patch per lane, with the bound Σ_t √(A_t² + B_t²) ≥ |⟨r, R(θ) d⟩|. `scores` evaluates the
angles of one (atom, patch) pair, an angle per lane; only pairs whose bound reaches the patch's best
score so far get there.

Angles are folded. With θ in [0, π/2], E and O the sums over even and odd t, C and S those of the
cosines and sines, the four angles ±θ and π±θ share four sums, and the largest |·| of the four is
max(|CE+SE| + |CO+SO|, |CE−SE| + |CO−SO|). Where the number of angles is no multiple of four, all
frequencies count as even and θ runs over [0, π]: the same formula, for the two angles ±θ.

Every patch goes through the same operations in the same order whatever its neighbours: results do
not depend on how rows are split into calls, to the bit.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from dsc.simd import (
    LANES,
    absolute,
    add,
    fma,
    fma_wide,
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
    total_wide,
    transpose,
    where_larger,
    zeros,
    zeros_wide,
)

BLOCK = 2 * LANES  # patches in a block of `correlate`
ANGLES = 2 * LANES  # angles in one round of `scores`
EMPTY = 65535  # the atom number of a slot that was not needed
SLACK = 1.00001  # a float32 value can exceed its own bound by rounding

ZERO_RESIDUAL = 1e-12  # residual energy, as a fraction of the patch's, with nothing left to gain
LARGEST_ENERGY = 1e37  # of a patch: float32 holds little more
SMALLEST_SCALE = 2.0**-126  # of a patch: one over it is still a float32
NO_GAIN = 1e-18  # a correlation with a patch of unit size whose square float32 cannot hold
DEPENDENT = 1e-5  # squared distance of an atom from the span of those already chosen

_compile = njit(cache=True, nogil=True, error_model="numpy")
_inline = njit(cache=True, nogil=True, error_model="numpy", forceinline=True)


@_compile
def correlate(columns, packed, rows_of, waves, bound, first):
    """A, B and bounds of all atoms for one block of patches.

    columns (row · BLOCK), packed (atom pair · row · 2) with rows in packed order (see `tables`),
    rows_of (frequency) how many → waves (atom · frequency · 2 · BLOCK) with A_t, then B_t,
    bound (atom · BLOCK), first (BLOCK) the atom of largest bound.
    """
    n_frequencies = rows_of.size
    slack = splat(np.float32(SLACK))
    size = n_frequencies * 2 * BLOCK
    d = 0
    top0, top1, which0, which1 = zeros(), zeros(), zeros(), zeros()
    for m in range(bound.size // (2 * BLOCK)):  # two atoms × two vectors of patches: 8 accumulators
        w, v, x = 2 * m * size, (2 * m + 1) * size, 0
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
        s00, s01, s10, s11 = mul(s00, slack), mul(s01, slack), mul(s10, slack), mul(s11, slack)
        store(bound, 2 * m * BLOCK, s00)
        store(bound, 2 * m * BLOCK + 8, s01)
        store(bound, 2 * m * BLOCK + 16, s10)
        store(bound, 2 * m * BLOCK + 24, s11)
        number0, number1 = splat(np.float32(2 * m)), splat(np.float32(2 * m + 1))
        which0 = where_larger(s00, top0, number0, which0)
        which1 = where_larger(s01, top1, number0, which1)
        top0, top1 = maximum(s00, top0), maximum(s01, top1)
        which0 = where_larger(s10, top0, number1, which0)
        which1 = where_larger(s11, top1, number1, which1)
        top0, top1 = maximum(s10, top0), maximum(s11, top1)
    store(first, 0, which0)
    store(first, 8, which1)


@_inline
def scores(waves, w, table, n_even, n_frequencies, out):
    """The largest score of the (atom, patch) pair at `w`; `out` gets that of each folded angle.

    table (round of angles · frequency · 2 · ANGLES), cosines then sines; frequencies with the even
    ones first.
    """
    top = zeros()
    c = 0
    for j in range(0, out.size, ANGLES):
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
        store(out, j, v0)
        store(out, j + 8, v1)
        top = maximum(top, maximum(v0, v1))
    return largest(top)


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


@_inline
def dot(a, i, b, j):
    """⟨a_i, b_j⟩ of two padded rows, in float64."""
    total = zeros_wide()
    for c in range(0, a.shape[1], LANES):
        total = fma_wide(load(a, (i, c)), load(b, (j, c)), total)
    return total_wide(total)


@_inline
def rotate(atoms, swapped, m, cos, sin, angle, out, slot):
    """Row `slot` of out = R(θ) d_m, with the cosines and signed sines of each coordinate."""
    for c in range(0, out.shape[1], LANES):
        rotated = mul(load(swapped, (m, c)), load(sin, (angle, c)))
        store(out, (slot, c), fma(load(atoms, (m, c)), load(cos, (angle, c)), rotated))


@_inline
def refit(patches, lane, chosen, k, inverse, projection, coefs):
    """Least squares of one patch on k + 1 chosen atoms, by one more row of the Cholesky factor.

    With G = L Lᵀ the Gram matrix of the chosen atoms and b their products with the patch, the
    coefficients are L⁻ᵀ (L⁻¹ b). Keeping the rows of L⁻¹ (`inverse`) and L⁻¹ b (`projection`), a
    new atom adds one row, one entry, and one multiple of that row to the coefficients.

    patches (lane, coord padded), chosen (lane · slot, coord padded), inverse (lane, slot, slot),
    projection and coefs (lane, slot). Returns by how much the residual energy falls, or −1 if the
    new atom depends on the others (then coefs stay as they were).
    """
    first = lane * coefs.shape[1]
    new = first + k
    square, product = zeros_wide(), zeros_wide()
    for c in range(0, patches.shape[1], LANES):
        g = load(chosen, (new, c))
        square = fma_wide(g, g, square)
        product = fma_wide(g, load(patches, (lane, c)), product)
    pivot, target = total_wide(square), total_wide(product)
    for i in range(k):
        inverse[lane, k, i] = dot(chosen, new, chosen, first + i)
    for i in range(k - 1, -1, -1):  # the row of L is L⁻¹ times the products with the others
        value = 0.0
        for j in range(i + 1):
            value += inverse[lane, i, j] * inverse[lane, k, j]
        inverse[lane, k, i] = value
        pivot -= value * value
        target -= value * projection[lane, i]
    if pivot < DEPENDENT:
        return -1.0
    scale = 1 / np.sqrt(pivot)
    gain = scale * target
    for i in range(k):
        value = 0.0
        for j in range(i, k):
            value += inverse[lane, k, j] * inverse[lane, j, i]
        inverse[lane, k, i] = -scale * value
        coefs[lane, i] += gain * inverse[lane, k, i]
    inverse[lane, k, k] = scale
    coefs[lane, k] = gain * scale
    projection[lane, k] = gain
    return gain * gain


@_inline
def subtract(patches, lane, chosen, k, coefs, residual):
    """residual = patch − Σ coefs · chosen, over k + 1 atoms."""
    first = lane * coefs.shape[1]
    for i in range(k + 1):
        a = splat(np.float32(coefs[lane, i]))
        for c in range(0, patches.shape[1], LANES):
            r = load(patches, (lane, c)) if i == 0 else load(residual, (lane, c))
            store(residual, (lane, c), fnma(a, load(chosen, (first + i, c)), r))


@_inline
def to_columns(residual, columns):
    """The rows (lane, coord padded) of a block as columns (coord padded · lane)."""
    for lane in range(0, BLOCK, LANES):
        for c in range(0, residual.shape[1], LANES):
            block = transpose(
                load(residual, (lane, c)),
                load(residual, (lane + 1, c)),
                load(residual, (lane + 2, c)),
                load(residual, (lane + 3, c)),
                load(residual, (lane + 4, c)),
                load(residual, (lane + 5, c)),
                load(residual, (lane + 6, c)),
                load(residual, (lane + 7, c)),
            )
            at = c * BLOCK + lane
            store(columns, at, block[0])
            store(columns, at + BLOCK, block[1])
            store(columns, at + 2 * BLOCK, block[2])
            store(columns, at + 3 * BLOCK, block[3])
            store(columns, at + 4 * BLOCK, block[4])
            store(columns, at + 5 * BLOCK, block[5])
            store(columns, at + 6 * BLOCK, block[6])
            store(columns, at + 7 * BLOCK, block[7])


@_inline
def take_patch(coords, p, order, patches, lane):
    """Row p of coords in packed order, brought to unit size: its energy as it was, and the scale.

    A power of two scales exactly: no overflow, no denormals. Energy −1 says that it is no number
    that can be coded.
    """
    for c in range(coords.shape[1]):
        patches[lane, c] = coords[p, order[c]]
    raw = dot(patches, lane, patches, lane)
    if not raw <= LARGEST_ENERGY:
        return -1.0, 1.0
    scale = max(math.ldexp(1.0, math.frexp(np.sqrt(raw))[1]), SMALLEST_SCALE)
    shrink = splat(np.float32(1 / scale))
    for c in range(0, patches.shape[1], LANES):
        store(patches, (lane, c), mul(load(patches, (lane, c)), shrink))
    return raw, scale


@_compile
def pursue(
    coords,
    tolerance,
    sparsity,
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
    """Rotational OMP of all rows of `coords` (patch, coord), a block at a time.

    `atoms` to `coord_sin` are the `Rotations` and `packed` to `n_rounds` the `Search` of `tables`.
    out_* (patch, slot) and out_error (patch,) come in as empty codes. Returns −1, or the number of
    the first patch whose energy is no number that can be coded.
    """
    n_patches = coords.shape[0]
    n_atoms, padded = atoms.shape
    n_angles = coord_cos.shape[0]
    n_frequencies = rows_of.size
    n_packed = n_atoms + n_atoms % 2
    columns = np.zeros(padded * BLOCK, np.float32)
    patches = np.zeros((BLOCK, padded), np.float32)
    residual = np.zeros((BLOCK, padded), np.float32)
    waves = np.zeros(n_packed * n_frequencies * 2 * BLOCK, np.float32)
    bound = np.zeros(n_packed * BLOCK, np.float32)
    first = np.zeros(BLOCK, np.float32)
    chosen = np.zeros((BLOCK * sparsity, padded), np.float32)
    inverse = np.zeros((BLOCK, sparsity, sparsity))
    projection = np.zeros((BLOCK, sparsity))
    coefs = np.zeros((BLOCK, sparsity))
    energy = np.zeros(BLOCK)
    error = np.zeros(BLOCK)
    scale = np.ones(BLOCK)
    live = np.zeros(BLOCK, np.bool_)
    trial = np.zeros(n_rounds * ANGLES, np.float32)
    winner = np.zeros(n_rounds * ANGLES, np.float32)
    left = np.zeros(n_atoms, np.int64)

    for begin in range(0, n_patches, BLOCK):
        count = min(BLOCK, n_patches - begin)
        for lane in range(BLOCK):
            live[lane] = lane < count
            if live[lane]:
                raw, scale[lane] = take_patch(coords, begin + lane, order, patches, lane)
                if raw < 0:
                    return begin + lane
                for c in range(0, padded, LANES):
                    store(residual, (lane, c), load(patches, (lane, c)))
                energy[lane] = raw / scale[lane] ** 2
                error[lane] = energy[lane]
        for k in range(sparsity):
            any_live = False
            for lane in range(count):
                enough = max(ZERO_RESIDUAL * energy[lane], tolerance / scale[lane] ** 2)
                live[lane] = live[lane] and error[lane] > enough
                any_live = any_live or live[lane]
            if not any_live:
                break
            to_columns(residual, columns)
            correlate(columns, packed, rows_of, waves, bound, first)
            for lane in range(count):
                if not live[lane]:
                    continue
                m, angle, score = select(
                    waves, bound, n_atoms, int(first[lane]), lane, table, n_even, n_frequencies,
                    n_angles, trial, winner, left,
                )  # fmt: skip
                live[lane] = score > NO_GAIN
                if not live[lane]:
                    continue
                slot = lane * sparsity + k
                rotate(atoms, swapped, m, coord_cos, coord_sin, angle, chosen, slot)
                gain = refit(patches, lane, chosen, k, inverse, projection, coefs)
                if gain < 0:
                    live[lane] = False
                    continue
                error[lane] = max(error[lane] - gain, 0.0)
                out_atom[begin + lane, k] = m
                out_angle[begin + lane, k] = angle
                for i in range(k + 1):
                    out_coef[begin + lane, i] = coefs[lane, i] * scale[lane]
                if k + 1 < sparsity:
                    subtract(patches, lane, chosen, k, coefs, residual)
        for lane in range(count):
            out_error[begin + lane] = error[lane] * scale[lane] ** 2
    return -1


@_compile
def synthesize(atom, angle, coef, atoms, swapped, order, coord_cos, coord_sin, out):
    """out_p = Σ_k a_pk R(θ_pk) d_pk: (patch, slot) codes → (patch, coord)."""
    rotated = np.zeros((1, atoms.shape[1]), np.float32)
    total = np.zeros(atoms.shape[1], np.float32)
    for p in range(out.shape[0]):
        total[:] = 0
        for k in range(atom.shape[1]):
            if atom[p, k] == EMPTY:
                continue
            rotate(atoms, swapped, atom[p, k], coord_cos, coord_sin, angle[p, k], rotated, 0)
            for c in range(0, total.size, LANES):
                product = fma(splat(coef[p, k]), load(rotated, (0, c)), load(total, c))
                store(total, c, product)
        for c in range(out.shape[1]):
            out[p, order[c]] = total[c]
