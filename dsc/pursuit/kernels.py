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
    load16,
    load_one16,
    maximum,
    mul,
    splat,
    splat16,
    square_root,
    store,
    sub,
    total_wide,
    transpose,
    where_larger,
    zeros16,
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
TOO_LITTLE = 2e-5  # new share below which an atom is not scored: it may be refused as dependent

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
    slack = splat16(np.float32(SLACK))
    size = n_frequencies * 2 * BLOCK
    d = 0
    top, which = zeros16(), zeros16()
    for m in range(bound.size // (2 * BLOCK)):  # two atoms
        w, v, x = 2 * m * size, (2 * m + 1) * size, 0
        a0, a1 = zeros16(), zeros16()
        for _ in range(rows_of[0]):
            x0 = load16(columns, x)
            a0, a1 = fma(x0, load_one16(packed, d), a0), fma(x0, load_one16(packed, d + 1), a1)
            x += BLOCK
            d += 2
        store(waves, w, a0)
        store(waves, v, a1)
        s0, s1 = absolute(a0), absolute(a1)
        for t in range(1, n_frequencies):
            a0, a1, b0, b1 = zeros16(), zeros16(), zeros16(), zeros16()
            for _ in range(rows_of[t] // 2):
                c, s = load16(columns, x), load16(columns, x + BLOCK)
                dc, ds = load_one16(packed, d), load_one16(packed, d + 2)
                a0, b0 = fma(c, dc, a0), fma(s, dc, b0)
                a0, b0 = fma(s, ds, a0), fnma(c, ds, b0)
                dc, ds = load_one16(packed, d + 1), load_one16(packed, d + 3)
                a1, b1 = fma(c, dc, a1), fma(s, dc, b1)
                a1, b1 = fma(s, ds, a1), fnma(c, ds, b1)
                x += 2 * BLOCK
                d += 4
            w += 2 * BLOCK
            v += 2 * BLOCK
            store(waves, w, a0)
            store(waves, w + BLOCK, b0)
            store(waves, v, a1)
            store(waves, v + BLOCK, b1)
            s0 = add(s0, square_root(fma(a0, a0, mul(b0, b0))))
            s1 = add(s1, square_root(fma(a1, a1, mul(b1, b1))))
        s0, s1 = mul(s0, slack), mul(s1, slack)
        store(bound, 2 * m * BLOCK, s0)
        store(bound, 2 * m * BLOCK + BLOCK, s1)
        which = where_larger(s0, top, splat16(np.float32(2 * m)), which)
        top = maximum(s0, top)
        which = where_larger(s1, top, splat16(np.float32(2 * m + 1)), which)
        top = maximum(s1, top)
    store(first, 0, which)


@_inline
def scores(waves, w, table, n_even, n_frequencies, out):
    """The largest score of the (atom, patch) pair at `w`; `out` gets that of each folded angle.

    table (round of angles · frequency · 2 · ANGLES), cosines then sines; frequencies with the even
    ones first.
    """
    top = zeros16()
    c = 0
    for j in range(0, out.size, ANGLES):
        i = w
        ce, se, co, so = zeros16(), zeros16(), zeros16(), zeros16()
        for _ in range(n_even):
            ce = fma(load_one16(waves, i), load16(table, c), ce)
            se = fma(load_one16(waves, i + BLOCK), load16(table, c + ANGLES), se)
            i += 2 * BLOCK
            c += 2 * ANGLES
        for _ in range(n_even, n_frequencies):
            co = fma(load_one16(waves, i), load16(table, c), co)
            so = fma(load_one16(waves, i + BLOCK), load16(table, c + ANGLES), so)
            i += 2 * BLOCK
            c += 2 * ANGLES
        value = maximum(
            add(absolute(add(ce, se)), absolute(add(co, so))),
            add(absolute(sub(ce, se)), absolute(sub(co, so))),
        )
        store(out, j, value)
        top = maximum(top, value)
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
