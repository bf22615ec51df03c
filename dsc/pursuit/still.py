"""The compiled loop of the pursuit where atoms do not rotate.

As in `dsc.pursuit.rotating` a patch is held against the dictionary once, and every further step
costs one row of the Gram matrix and one number per atom already chosen (Batch-OMP). The products
are made for eight atoms and eight patches at a time, an atom per lane; then each patch goes its own
way. Results do not depend on how rows are split into calls, to the bit.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from dsc.pursuit.kernels import NEW, NO_GAIN, TOO_LITTLE, ZERO_RESIDUAL, dot, refit, take_patch
from dsc.simd import (
    LANES,
    absolute,
    divide,
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
    where_larger,
    zeros,
)

_compile = njit(cache=True, nogil=True, error_model="numpy")
_inline = njit(cache=True, nogil=True, error_model="numpy", forceinline=True)


@_compile
def gram(atoms, out):
    """⟨d_i, d_j⟩ of padded rows: atoms (atom, coord padded) → out (atom, atom padded)."""
    for i in range(atoms.shape[0]):
        for j in range(i + 1):
            out[i, j] = out[j, i] = dot(atoms, i, atoms, j)


@_inline
def multiply(patches, columns, out):
    """⟨x_p, d_m⟩: patches (LANES, coord padded), columns (coord, atom padded) → (LANES, atom)."""
    for m in range(0, columns.shape[1], LANES):
        a, b, c, d = zeros(), zeros(), zeros(), zeros()
        e, f, g, h = zeros(), zeros(), zeros(), zeros()
        for i in range(columns.shape[0]):
            x = load(columns, (i, m))
            a, b = fma(x, load_one(patches, (0, i)), a), fma(x, load_one(patches, (1, i)), b)
            c, d = fma(x, load_one(patches, (2, i)), c), fma(x, load_one(patches, (3, i)), d)
            e, f = fma(x, load_one(patches, (4, i)), e), fma(x, load_one(patches, (5, i)), f)
            g, h = fma(x, load_one(patches, (6, i)), g), fma(x, load_one(patches, (7, i)), h)
        store(out, (0, m), a)
        store(out, (1, m), b)
        store(out, (2, m), c)
        store(out, (3, m), d)
        store(out, (4, m), e)
        store(out, (5, m), f)
        store(out, (6, m), g)
        store(out, (7, m), h)


@_inline
def largest_product(products, lane, places, tops, numbers):
    """The atom of largest |product| and that product's size; ties to the lowest atom.

    `places` (atom padded) are the atoms' numbers; `tops` and `numbers` scratch of eight lanes.
    """
    top, number = zeros(), zeros()
    for m in range(0, places.size, LANES):
        size = absolute(load(products, (lane, m)))
        number = where_larger(size, top, load(places, m), number)
        top = maximum(size, top)
    best = largest(top)
    store(tops, 0, top)
    store(numbers, 0, number)
    lowest = np.float32(places.size)
    for i in range(LANES):
        if tops[i] == best and numbers[i] < lowest:
            lowest = numbers[i]
    return int(lowest), best


@_inline
def advance(k, squares, m, lower, scale, gain, q, products, lane, new, scores, least_squares):
    """One more chosen atom, m: its q_k, the products with the residual, and the scores.

    squares (atom, atom) the Gram matrix; lower (slot) the products of m with the earlier q; q
    (slot, atom) those of all atoms with them; new (atom) the 1 − Σ_j ⟨q_j, d⟩². scores (LANES,
    atom) gets the square roots of the scores in row `lane`.
    """
    size, rise, least = splat(scale), splat(gain), splat(np.float32(NEW))
    little = splat(np.float32(TOO_LITTLE))
    for c in range(0, products.shape[1], LANES):
        value = load(squares, (m, c))
        for j in range(k):
            value = fnma(load_one(lower, j), load(q, (j, c)), value)
        value = mul(value, size)
        store(q, (k, c), value)
        common = fnma(rise, value, load(products, (lane, c)))
        store(products, (lane, c), common)
        if least_squares:
            rest = fnma(value, value, load(new, c))
            store(new, c, rest)
            common = divide(common, square_root(maximum(rest, least)))
            common = where_larger(rest, little, common, zeros())
        store(scores, (lane, c), common)


@_compile
def pursue(
    coords,
    tolerance,
    sparsity,
    least_squares,
    order,
    atoms,
    columns,
    squares,
    out_atom,
    out_angle,
    out_coef,
    out_error,
):
    """The pursuit of all rows of `coords` (patch, coord): `dsc.pursuit.rotating` for one angle.

    `order` to `squares` are the `Still` of `tables`.
    """
    n_patches = coords.shape[0]
    padded, n_lanes = atoms.shape[1], squares.shape[1]
    patches = np.zeros((LANES, padded), np.float32)
    products = np.zeros((LANES, n_lanes), np.float32)
    scores = np.zeros((LANES, n_lanes), np.float32)
    new = np.zeros(n_lanes, np.float32)
    q = np.zeros((sparsity, n_lanes), np.float32)
    chosen = np.zeros((sparsity, padded), np.float32)
    inverse = np.zeros((sparsity, sparsity))
    projection = np.zeros(sparsity)
    coefs = np.zeros(sparsity)
    lower = np.zeros(sparsity, np.float32)
    scale = np.ones(LANES)
    energy = np.zeros(LANES)
    places = np.arange(n_lanes).astype(np.float32)
    tops = np.zeros(LANES, np.float32)
    numbers = np.zeros(LANES, np.float32)
    for begin in range(0, n_patches, LANES):
        count = min(LANES, n_patches - begin)
        for lane in range(count):
            raw, scale[lane] = take_patch(coords, begin + lane, order, patches, lane)
            if raw < 0:
                return begin + lane
            energy[lane] = raw / scale[lane] ** 2
        multiply(patches, columns, products)
        for lane in range(count):
            p = begin + lane
            error = energy[lane]
            enough = max(ZERO_RESIDUAL * energy[lane], tolerance / scale[lane] ** 2)
            for c in range(0, n_lanes, LANES):
                store(new, c, splat(np.float32(1)))
            for k in range(sparsity):
                if error <= enough:
                    break
                if k == 0:
                    m, score = largest_product(products, lane, places, tops, numbers)
                else:
                    size, rise = np.float32(inverse[k - 1, k - 1]), np.float32(projection[k - 1])
                    advance(
                        k - 1, squares, m, lower, size, rise, q, products, lane, new, scores,
                        least_squares,
                    )  # fmt: skip
                    m, score = largest_product(scores, lane, places, tops, numbers)
                if not score > NO_GAIN:
                    break
                for c in range(0, padded, LANES):
                    store(chosen, (k, c), load(atoms, (m, c)))
                gain = refit(patches, lane, chosen, k, inverse, projection, coefs, lower)
                if gain < 0:
                    break
                error = max(error - gain, 0.0)
                out_atom[p, k] = m
                out_angle[p, k] = 0
                for i in range(k + 1):
                    out_coef[p, i] = coefs[i] * scale[lane]
            out_error[p] = error * scale[lane] ** 2
    return -1
