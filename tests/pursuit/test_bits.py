"""The same bits however rows are split, stored or scheduled, in bounded memory."""

import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dsc


def assert_same_bits(one, other):
    for name in ("atom", "angle", "coef", "error"):
        a, b = getattr(one, name), getattr(other, name)
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b, err_msg=name)


def rows_of(codes, part):
    return dsc.Codes(
        codes.atom[part], codes.angle[part], codes.coef[part], codes.error[part], codes.n_angles
    )


@pytest.fixture(scope="module")
def problem(natural_coords, learned_atoms):
    """(coords, atoms, basis) with patches that stop early among the others."""
    basis = dsc.disk_basis(11)
    coords, atoms = natural_coords(basis, 3000)[:100].copy(), learned_atoms(basis)
    coords[::9] = 2 * basis.steer(atoms[[3]], 0.3)
    coords[::11] = 0
    return coords, atoms, basis


@given(
    cuts=st.lists(st.integers(0, 100), max_size=8),
    n_angles=st.sampled_from([1, 6, 7, 60]),
    sparsity=st.integers(1, 4),
)
def test_encode__same_bits_for_any_split_of_the_rows(problem, cuts, n_angles, sparsity):
    coords, atoms, basis = problem
    whole = dsc.encode(coords, atoms, basis, sparsity, n_angles)
    for begin, end in pairwise([0, *sorted(cuts), 100]):
        part = dsc.encode(coords[begin:end], atoms, basis, sparsity, n_angles)
        assert_same_bits(part, rows_of(whole, slice(begin, end)))


@given(order=st.permutations(range(100)))
def test_encode__same_bits_in_any_order_of_the_rows(problem, order):
    coords, atoms, basis = problem
    whole = dsc.encode(coords, atoms, basis, 3)
    assert_same_bits(dsc.encode(coords[order], atoms, basis, 3), rows_of(whole, order))


def test_encode__large_sets_have_the_bits_of_small_ones():
    basis = dsc.disk_basis(7)
    atoms = dsc.random_atoms(basis, 5, seed=0)
    coords = np.random.default_rng(0).standard_normal((9001, basis.n_coords)).astype(np.float32)
    whole = dsc.encode(coords, atoms, basis, 2)
    for part in (slice(0, 1), slice(4090, 4103), slice(8185, 8200), slice(8999, 9001)):
        assert_same_bits(dsc.encode(coords[part], atoms, basis, 2), rows_of(whole, part))


def test_decode__same_bits_for_any_split_of_the_rows(problem):
    coords, atoms, basis = problem
    codes = dsc.encode(coords, atoms, basis, 3)
    whole = dsc.decode(codes, atoms, basis)
    for part in (slice(0, 1), slice(3, 20), slice(57, 100)):
        some = dsc.decode(rows_of(codes, part), atoms, basis)
        np.testing.assert_array_equal(some, whole[part])


@pytest.mark.parametrize("dtype", ["f4", ">f4", "f8", ">f8", "i1", ">i2", "i4", "i8", "f2", "u2"])
def test_encode__takes_any_real_dtype(dtype):
    basis = dsc.disk_basis(9)
    rng = np.random.default_rng(0)
    coords = rng.integers(0 if dtype == "u2" else -100, 100, (40, basis.n_coords))
    atoms = dsc.random_atoms(basis, 4, seed=0)
    expected = dsc.encode(coords.astype(np.float32), atoms, basis, 3)
    assert_same_bits(dsc.encode(coords.astype(dtype), atoms, basis, 3), expected)


def read_only(array):
    array = array.copy()
    array.setflags(write=False)
    return array


def misaligned(array):
    raw = np.zeros(array.nbytes + 1, np.uint8)
    view = raw[1:].view(array.dtype).reshape(array.shape)
    view[...] = array
    return view


LAYOUTS = {
    "read-only": read_only,
    "Fortran order": np.asfortranarray,
    "every second row": lambda a: np.repeat(a, 2, axis=0)[::2],
    "every third column": lambda a: np.repeat(a, 3, axis=1)[:, ::3],
    "rows backwards": lambda a: np.ascontiguousarray(a[::-1])[::-1],
    "columns backwards": lambda a: np.ascontiguousarray(a[:, ::-1])[:, ::-1],
    "misaligned": misaligned,
    "big-endian": lambda a: a.astype(a.dtype.newbyteorder(">")),
    "float64": lambda a: a.astype(np.float64),
    "list": lambda a: a.tolist(),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_encode__takes_any_layout(problem, layout):
    coords, atoms, basis = problem
    expected = dsc.encode(coords, atoms, basis, 3)
    change = LAYOUTS[layout]
    assert_same_bits(dsc.encode(change(coords), atoms, basis, 3), expected)
    assert_same_bits(dsc.encode(coords, change(atoms), basis, 3), expected)
    decoded = dsc.decode(expected, atoms, basis)
    np.testing.assert_array_equal(dsc.decode(expected, change(atoms), basis), decoded)


@pytest.mark.parametrize("layout", [name for name in LAYOUTS if name not in ("float64", "list")])
def test_decode__takes_codes_of_any_layout(problem, layout):
    coords, atoms, basis = problem
    codes = dsc.encode(coords, atoms, basis, 3)
    change = LAYOUTS[layout]
    changed = dsc.Codes(
        change(codes.atom), change(codes.angle), change(codes.coef), codes.error, codes.n_angles
    )
    expected = dsc.decode(codes, atoms, basis)
    np.testing.assert_array_equal(dsc.decode(changed, atoms, basis), expected)


def test_encode__leaves_its_input_alone(problem):
    coords, atoms, basis = problem
    before = coords.copy()
    dsc.encode(coords, atoms, basis, 3)
    np.testing.assert_array_equal(coords, before)


def test_encode__same_bits_from_several_threads(problem):
    coords, atoms, basis = problem
    expected = dsc.encode(coords, atoms, basis, 3)
    with ThreadPoolExecutor(4) as pool:
        for codes in pool.map(lambda _: dsc.encode(coords, atoms, basis, 3), range(16)):
            assert_same_bits(codes, expected)


def test_encode__working_memory_does_not_grow_with_the_patches():
    basis = dsc.disk_basis(3)
    atoms = dsc.random_atoms(basis, 3, seed=0)
    coords = np.random.default_rng(0).standard_normal((200_000, basis.n_coords))
    dsc.encode(coords[:100], atoms, basis, 1, 4)
    tracemalloc.start()
    codes = dsc.encode(coords, atoms, basis, 1, 4)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    result = codes.atom.nbytes + codes.angle.nbytes + codes.coef.nbytes + codes.error.nbytes
    assert peak - result < 1_000_000 < coords.nbytes / 2
