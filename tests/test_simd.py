"""The vector operations of Numba kernels, one by one, against NumPy."""

import numpy as np
import pytest
from numba import njit
from numba.core.errors import TypingError

from dsc import simd

F32 = np.float32
RNG = np.random.default_rng(0)
A, B, C = RNG.standard_normal((3, simd.LANES)).astype(F32)
SPECIAL = np.array([0.0, -0.0, 1e-45, -1e-45, 3e38, -3e38, 1.5, -2.5], F32)


def through(operation):
    """operation(vector, …) as a function of arrays of eight."""
    compiled = njit(operation)

    def call(*arrays):
        out = np.zeros(simd.LANES, F32)
        compiled(*arrays, out)
        return out

    return call


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (lambda a, b, out: simd.store(out, 0, simd.add(simd.load(a, 0), simd.load(b, 0))), np.add),
        (
            lambda a, b, out: simd.store(out, 0, simd.sub(simd.load(a, 0), simd.load(b, 0))),
            np.subtract,
        ),
        (
            lambda a, b, out: simd.store(out, 0, simd.mul(simd.load(a, 0), simd.load(b, 0))),
            np.multiply,
        ),
        (
            lambda a, b, out: simd.store(out, 0, simd.maximum(simd.load(a, 0), simd.load(b, 0))),
            np.maximum,
        ),
    ],
    ids=["add", "sub", "mul", "maximum"],
)
def test_elementwise__is_numpys_to_the_bit(operation, expected):
    call = through(operation)
    np.testing.assert_array_equal(call(A, B), expected(A, B))
    np.testing.assert_array_equal(call(SPECIAL, A), expected(SPECIAL, A))


def test_maximum__takes_the_second_where_they_do_not_compare():
    call = through(
        lambda a, b, out: simd.store(out, 0, simd.maximum(simd.load(a, 0), simd.load(b, 0)))
    )
    nan = np.full(simd.LANES, np.nan, F32)
    np.testing.assert_array_equal(call(nan, A), A)
    assert np.isnan(call(A, nan)).all()


@njit
def copy_from(array, begin, out, at):
    simd.store(out, at, simd.load(array, begin))


def test_load_and_store__move_eight_elements_from_any_place():
    array = np.arange(30, dtype=F32)
    for begin, at in ((0, 0), (1, 3), (7, 10), (22, 22)):
        out = np.full(30, -1, F32)
        copy_from(array, begin, out, at)
        expected = np.full(30, -1, F32)
        expected[at : at + 8] = array[begin : begin + 8]
        np.testing.assert_array_equal(out, expected)


@njit
def copy_row(array, i, j, out):
    simd.store(out, (1, 2), simd.load(array, (i, j)))


def test_load_and_store__take_an_index_per_axis():
    array = np.arange(60, dtype=F32).reshape(4, 15)
    out = np.zeros((3, 12), F32)
    copy_row(array, 2, 5, out)
    expected = np.zeros((3, 12), F32)
    expected[1, 2:10] = array[2, 5:13]
    np.testing.assert_array_equal(out, expected)


def test_load_one__repeats_one_element():
    call = through(lambda a, out: simd.store(out, 0, simd.load_one(a, 3)))
    np.testing.assert_array_equal(call(A), np.full(8, A[3]))


def test_splat__repeats_a_number():
    call = through(lambda a, out: simd.store(out, 0, simd.splat(a[5])))
    np.testing.assert_array_equal(call(A), np.full(8, A[5]))


def test_zeros__are_zeros():
    compiled = njit(lambda out: simd.store(out, 0, simd.zeros()))
    out = np.ones(8, F32)
    compiled(out)
    np.testing.assert_array_equal(out, 0)


@njit
def fused(a, b, c, out, negative):
    x, y, z = simd.load(a, 0), simd.load(b, 0), simd.load(c, 0)
    simd.store(out, 0, simd.fma(x, y, z))
    simd.store(negative, 0, simd.fnma(x, y, z))


def test_fma__is_the_product_and_sum():
    out, negative = np.zeros((2, 8), F32)
    fused(A, B, C, out, negative)
    exact = A.astype(float) * B
    np.testing.assert_array_equal(out, (exact + C).astype(F32))
    np.testing.assert_array_equal(negative, (C - exact).astype(F32))


def test_fma__rounds_once():
    # (1 + e)² − (1 + 2e) = e², which a rounded product loses
    e = F32(2.0**-12)
    a = np.full(8, 1 + e, F32)
    c = np.full(8, 1 + 2 * e, F32)
    out, negative = np.zeros((2, 8), F32)
    fused(a, a, -c, out, negative)
    np.testing.assert_array_equal(out, e * e)
    fused(a, a, c, out, negative)
    np.testing.assert_array_equal(negative, -e * e)


@njit
def fused_numbers(a, b, c, out):
    for i in range(8):
        out[i] = simd.fma(a[i], b[i], c[i])


def test_fma__of_numbers_has_the_bits_of_a_lane():
    vectors, numbers, _ = np.zeros((3, 8), F32)
    for a, b, c in ((A, B, C), (A, A, -A), (SPECIAL, A, B)):
        fused(a, b, c, vectors, _)
        fused_numbers(a, b, c, numbers)
        np.testing.assert_array_equal(numbers, vectors)


def test_absolute__clears_the_sign():
    call = through(lambda a, out: simd.store(out, 0, simd.absolute(simd.load(a, 0))))
    np.testing.assert_array_equal(call(A), np.abs(A))
    assert not np.signbit(call(SPECIAL)).any()
    np.testing.assert_array_equal(call(SPECIAL), np.abs(SPECIAL))


def test_square_root__is_correctly_rounded():
    call = through(lambda a, out: simd.store(out, 0, simd.square_root(simd.load(a, 0))))
    for values in (np.abs(A), np.abs(SPECIAL)):
        np.testing.assert_array_equal(call(values), np.sqrt(values))


@njit
def reduce_largest(a):
    return simd.largest(simd.load(a, 0))


@pytest.mark.parametrize("lane", range(simd.LANES))
def test_largest__finds_it_in_any_lane(lane):
    values = -np.arange(1, 9, dtype=F32)
    values[lane] = 5
    assert reduce_largest(values) == 5
    assert reduce_largest(-np.roll(np.arange(1, 9, dtype=F32), lane)) == -1


@njit
def sum_of_products(a, b):
    total = simd.zeros_wide()
    for i in range(0, a.size, 8):
        total = simd.fma_wide(simd.load(a, i), simd.load(b, i), total)
    return simd.total_wide(total)


def test_total_wide__sums_products_in_float64():
    a, b = RNG.standard_normal((2, 800)).astype(F32)
    np.testing.assert_allclose(sum_of_products(a, b), a.astype(float) @ b.astype(float), rtol=1e-13)
    big = np.array([1e8, 1, 1, 1, 1, 1, 1, 1] + [1e8] + [1] * 7, F32)
    assert sum_of_products(big, np.ones(16, F32)) == 2e8 + 14


@pytest.mark.parametrize("lane", range(simd.LANES))
def test_total_wide__counts_every_lane_once(lane):
    values = np.zeros(8, F32)
    values[lane] = 3
    assert sum_of_products(values, values) == 9


@njit
def transposed(a, out):
    block = simd.transpose(
        simd.load(a, (0, 0)),
        simd.load(a, (1, 0)),
        simd.load(a, (2, 0)),
        simd.load(a, (3, 0)),
        simd.load(a, (4, 0)),
        simd.load(a, (5, 0)),
        simd.load(a, (6, 0)),
        simd.load(a, (7, 0)),
    )
    for i in range(8):
        simd.store(out, (i, 0), block[i])


def test_transpose__rows_become_columns():
    a = np.arange(64, dtype=F32).reshape(8, 8)
    out = np.zeros((8, 8), F32)
    transposed(a, out)
    np.testing.assert_array_equal(out, a.T)


@pytest.mark.parametrize("dtype", [np.float64, np.int32])
def test_load__refuses_other_types(dtype):
    call = through(lambda a, out: simd.store(out, 0, simd.load(a, 0)))
    with pytest.raises(Exception, match="load"):
        call(np.zeros(8, dtype))


def test_wide__loads_stores_and_multiplies_float64():
    @njit
    def run(a, b, out):
        value = simd.fma(simd.load(a, (1, 0)), simd.load_one(b, 2), simd.load(a, (0, 8)))
        simd.store(out, 4, value)

    a, b, out = RNG.standard_normal((2, 16)), RNG.standard_normal(3), np.zeros(16)
    run(a, b, out)
    np.testing.assert_allclose(out[4:12], a[1, :8] * b[2] + a[0, 8:], atol=1e-15)
    assert not out[:4].any()
    assert not out[12:].any()


def test_wide__does_not_mix_with_float32():
    mixed = njit(lambda a, out: simd.store(out, 0, simd.load(a, 0)))
    with pytest.raises(TypingError):
        mixed(np.zeros(8), np.zeros(8, F32))


# --- sixteen lanes ------------------------------------------------------------------------------

A16, B16, C16 = RNG.standard_normal((3, 2 * simd.LANES)).astype(F32)


@njit
def sixteen(a, b, c, out):
    """Every operation on sixteen lanes, a row of `out` each; the largest lane, and a >= b."""
    x, y, z = simd.load16(a, 0), simd.load16(b, 0), simd.load16(c, 0)
    simd.store(out, (0, 0), simd.add(x, y))
    simd.store(out, (1, 0), simd.sub(x, y))
    simd.store(out, (2, 0), simd.mul(x, y))
    simd.store(out, (3, 0), simd.maximum(x, y))
    simd.store(out, (4, 0), simd.fma(x, y, z))
    simd.store(out, (5, 0), simd.fnma(x, y, z))
    simd.store(out, (6, 0), simd.absolute(x))
    simd.store(out, (7, 0), simd.square_root(simd.absolute(x)))
    simd.store(out, (8, 0), simd.load_one16(a, 3))
    simd.store(out, (9, 0), simd.zeros16())
    return simd.largest(x), simd.reaches(x, y)


@njit
def eight(a, b, c, out):
    """The same on eight lanes."""
    x, y, z = simd.load(a, 0), simd.load(b, 0), simd.load(c, 0)
    simd.store(out, (4, 0), simd.fma(x, y, z))
    simd.store(out, (5, 0), simd.fnma(x, y, z))
    return simd.reaches(x, y)


def test_sixteen__each_lane_as_in_numpy_and_as_of_eight():
    out, halves = np.ones((10, 16), F32), np.empty((2, 10, 8), F32)
    top, bits = sixteen(A16, B16, C16, out)
    expected = [A16 + B16, A16 - B16, A16 * B16, np.maximum(A16, B16)]
    np.testing.assert_array_equal(out[:4], expected)
    masks = [
        eight(A16[i : i + 8].copy(), B16[i : i + 8].copy(), C16[i : i + 8].copy(), half)
        for i, half in zip((0, 8), halves, strict=True)
    ]
    np.testing.assert_array_equal(out[4:6], np.concatenate(halves, axis=1)[4:6])
    others = [np.abs(A16), np.sqrt(np.abs(A16)), np.full(16, A16[3]), np.zeros(16)]
    np.testing.assert_array_equal(out[6:], np.array(others, F32))
    assert top == A16.max()
    assert bits == masks[0] | masks[1] << 8 == sum(1 << int(i) for i in np.flatnonzero(A16 >= B16))


def test_reaches__equal_is_enough_and_nan_never_is():
    assert eight(A, A, A, np.empty((10, 8), F32)) == 255
    assert eight(np.full(8, np.nan, F32), A, A, np.empty((10, 8), F32)) == 0


def test_lowest_bit__of_any_place():
    compiled = njit(lambda bits: simd.lowest_bit(bits))
    assert [compiled(bits) for bits in (1, 12, 1 << 31, 3 << 40)] == [0, 2, 31, 40]


@pytest.mark.parametrize("n", [0, 1, 16, 1000])
def test_aligned_zeros__begin_where_a_cache_line_does(n):
    found = [simd.aligned_zeros(n) for _ in range(20)]
    for one in found:
        assert one.ctypes.data % simd.LINE == 0
        assert (one.shape, one.dtype) == ((n,), F32)
        assert not one.any()
        one[:] = 1  # is its own
