"""The compiled loop of OMP where atoms do not rotate.

With one angle the products of an atom with a residual are those with the patch less those with the
atoms already chosen,

    ⟨d_m, x − Σ_i a_i d_i⟩ = ⟨d_m, x⟩ − Σ_i a_i ⟨d_m, d_i⟩,

so a patch is held against the dictionary once, and every further step costs one row of the Gram
matrix per atom chosen (Batch-OMP). The products are made for eight atoms and eight patches at a
time, an atom per lane; then each patch goes its own way.

As in `dsc.pursuit.kernels`, results do not depend on how rows are split into calls, to the bit.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from dsc.pursuit.kernels import NO_GAIN, ZERO_RESIDUAL, dot, refit, take_patch
from dsc.simd import (
    LANES,
    absolute,
    fma,
    fnma,
    largest,
    load,
    load_one,
    maximum,
    splat,
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
def subtract_products(products, lane, chosen, coefs, k, squares, out):
    """Products with the residual of k + 1 chosen atoms; squares (atom, atom) the Gram matrix."""
    for m in range(0, products.shape[1], LANES):
        value = load(products, (lane, m))
        for i in range(k + 1):
            value = fnma(splat(np.float32(coefs[lane, i])), load(squares, (chosen[i], m)), value)
        store(out, (lane, m), value)


@_compile
def pursue(
    coords,
    tolerance,
    sparsity,
    order,
    atoms,
    columns,
    squares,
    out_atom,
    out_angle,
    out_coef,
    out_error,
):
    """OMP of all rows of `coords` (patch, coord): `dsc.pursuit.kernels.pursue` for one angle.

    `order` to `squares` are the `Still` of `tables`.
    """
    n_patches = coords.shape[0]
    padded = atoms.shape[1]
    patches = np.zeros((LANES, padded), np.float32)
    products = np.zeros((LANES, squares.shape[1]), np.float32)
    left = np.zeros((LANES, squares.shape[1]), np.float32)
    chosen = np.zeros((LANES * sparsity, padded), np.float32)
    number = np.zeros(sparsity, np.int64)
    inverse = np.zeros((LANES, sparsity, sparsity))
    projection = np.zeros((LANES, sparsity))
    coefs = np.zeros((LANES, sparsity))
    scale = np.ones(LANES)
    energy = np.zeros(LANES)
    places = np.arange(squares.shape[1]).astype(np.float32)
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
            for k in range(sparsity):
                if error <= enough:
                    break
                if k == 0:
                    m, score = largest_product(products, lane, places, tops, numbers)
                else:
                    subtract_products(products, lane, number, coefs, k - 1, squares, left)
                    m, score = largest_product(left, lane, places, tops, numbers)
                if not score > NO_GAIN:
                    break
                number[k] = m
                for c in range(0, padded, LANES):
                    store(chosen, (lane * sparsity + k, c), load(atoms, (m, c)))
                gain = refit(patches, lane, chosen, k, inverse, projection, coefs)
                if gain < 0:
                    break
                error = max(error - gain, 0.0)
                out_atom[p, k] = m
                out_angle[p, k] = 0
                for i in range(k + 1):
                    out_coef[p, i] = coefs[lane, i] * scale[lane]
            out_error[p] = error * scale[lane] ** 2
    return -1
