"""What the compiled loops of the pursuit share.

For a residual r and an atom d, with A_t and B_t inner products over the radial index only,

    ⟨r, R(θ) d⟩ = A_0 + Σ_t A_t cos tθ + B_t sin tθ          A_t = Σ r_c d_c + r_s d_s
                                                              B_t = Σ r_s d_c − r_c d_s

costs 2n multiply-adds for all angles together. `correlate` computes A and B of all atoms for 16
patches, a patch per lane, with the bound Σ_t √(A_t² + B_t²) ≥ |⟨r, R(θ) d⟩|. `scores` evaluates the
angles of one (atom, patch) pair, an angle per lane.

Angles are folded. With θ in [0, π/2], E and O the sums over even and odd t, C and S those of the
cosines and sines, the four angles ±θ and π±θ share four sums, and the largest |·| of the four is
max(|CE+SE| + |CO+SO|, |CE−SE| + |CO−SO|). Where the number of angles is no multiple of four, all
frequencies count as even and θ runs over [0, π]: the same formula, for the two angles ±θ.
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
NEW = 1e-4  # what is new in an atom counts as this share of its energy at least

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
def refit(patches, lane, chosen, k, inverse, projection, coefs, lower):
    """Least squares of one patch on k + 1 chosen atoms, by one more row of the Cholesky factor.

    With G = L Lᵀ the Gram matrix of the chosen atoms and b their products with the patch, the
    coefficients are L⁻ᵀ (L⁻¹ b). Keeping the rows of L⁻¹ (`inverse`) and L⁻¹ b (`projection`), a
    new atom adds one row, one entry, and one multiple of that row to the coefficients.

    patches (lane, coord padded), chosen (slot, coord padded), inverse (slot, slot), projection and
    coefs (slot); lower (slot) gets the new row of L. Returns by how much the residual energy falls,
    or −1 if the new atom depends on the others (then coefs stay as they were).
    """
    square, product = zeros_wide(), zeros_wide()
    for c in range(0, patches.shape[1], LANES):
        g = load(chosen, (k, c))
        square = fma_wide(g, g, square)
        product = fma_wide(g, load(patches, (lane, c)), product)
    pivot, target = total_wide(square), total_wide(product)
    for i in range(k):
        inverse[k, i] = dot(chosen, k, chosen, i)
    for i in range(k - 1, -1, -1):  # the row of L is L⁻¹ times the products with the others
        value = 0.0
        for j in range(i + 1):
            value += inverse[i, j] * inverse[k, j]
        inverse[k, i] = value
        lower[i] = value
        pivot -= value * value
        target -= value * projection[i]
    if pivot < DEPENDENT:
        return -1.0
    scale = 1 / np.sqrt(pivot)
    gain = scale * target
    for i in range(k):
        value = 0.0
        for j in range(i, k):
            value += inverse[k, j] * inverse[j, i]
        inverse[k, i] = -scale * value
        coefs[i] += gain * inverse[k, i]
    inverse[k, k] = scale
    coefs[k] = gain * scale
    projection[k] = gain
    return gain * gain


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
