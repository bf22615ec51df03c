"""Statistics are values that merge: in any grouping, the same as all patches at once."""

import dataclasses
from functools import reduce
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dsc
from dsc.update import WorstPatches

SUMS = {"ksvd": ("scatter",), "mod": ("normal", "right")}
N_PATCHES = 60


@pytest.fixture(scope="module")
def problem():
    basis = dsc.disk_basis(5)
    coords = np.random.default_rng(0).standard_normal((N_PATCHES, basis.n_coords))
    coords[[4, 11, 12, 33, 50]] = 3 * coords[7]  # the worst ones, all alike
    return coords.astype(np.float32), dsc.random_atoms(basis, 3, seed=1), basis


def statistics_of(problem, part, update):
    coords, atoms, basis = problem
    codes = dsc.encode(coords[part], atoms, basis, 2)
    return dsc.accumulate(coords[part], codes, atoms, basis, update, first_patch=part.start)


def assert_same(one, other, update):
    for name in SUMS[update]:
        a, b = getattr(one, name), getattr(other, name)
        assert a.dtype in (np.float64, np.complex128)
        np.testing.assert_allclose(a, b, atol=1e-12 * np.abs(b).max())
    assert one.usage.n_patches == other.usage.n_patches
    np.testing.assert_array_equal(one.usage.count, other.usage.count)
    np.testing.assert_allclose(one.usage.sse, other.usage.sse, rtol=1e-12)
    for name in ("patch", "error", "residual", "size"):
        a, b = getattr(one.usage.worst, name), getattr(other.usage.worst, name)
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("update", SUMS)
@given(cuts=st.lists(st.integers(0, N_PATCHES), min_size=1, max_size=5))
@settings(max_examples=20)
def test_merge__equals_accumulating_all_at_once(problem, update, cuts):
    edges = [0, *sorted(cuts), N_PATCHES]
    parts = [statistics_of(problem, slice(begin, end), update) for begin, end in pairwise(edges)]
    whole = statistics_of(problem, slice(0, N_PATCHES), update)
    assert_same(reduce(lambda a, b: a.merge(b), parts), whole, update)
    assert_same(reduce(lambda a, b: b.merge(a), parts), whole, update)
    _, atoms, basis = problem
    merged = dsc.solve(reduce(lambda a, b: a.merge(b), parts), atoms, basis)
    np.testing.assert_allclose(merged, dsc.solve(whole, atoms, basis), atol=1e-6)


@pytest.mark.parametrize("update", SUMS)
def test_merge__is_associative(problem, update):
    a, b, c = (statistics_of(problem, slice(p, p + 20), update) for p in (0, 20, 40))
    assert_same(a.merge(b).merge(c), a.merge(b.merge(c)), update)


@pytest.mark.parametrize("update", SUMS)
def test_merge__leaves_its_parts_alone(problem, update):
    a, b = (statistics_of(problem, slice(p, p + 30), update) for p in (0, 30))
    before = [getattr(a, name).copy() for name in SUMS[update]]
    a.merge(b)
    for name, array in zip(SUMS[update], before, strict=True):
        np.testing.assert_array_equal(getattr(a, name), array)
    with pytest.raises(dataclasses.FrozenInstanceError):
        a.usage = b.usage


@pytest.mark.parametrize("update", SUMS)
def test_statistics__count_slots_and_sum_errors(problem, update):
    coords, atoms, basis = problem
    codes = dsc.encode(coords, atoms, basis, 2)
    usage = dsc.accumulate(coords, codes, atoms, basis, update).usage
    assert usage.count.tolist() == [int((codes.atom == m).sum()) for m in range(3)]
    assert usage.n_patches == N_PATCHES
    np.testing.assert_allclose(usage.sse, codes.error.sum(dtype=float), rtol=1e-6)


@pytest.mark.parametrize("update", SUMS)
def test_statistics__sum_in_float64(update):
    # one large patch first: in float32 the small ones after it would be lost
    basis = dsc.pixel_basis(3)
    atoms = np.eye(basis.n_coords, dtype=np.float32)[:1]
    coords = np.zeros((1001, basis.n_coords), np.float32)
    coords[0, 0], coords[1:, 0] = 1e5, 1.0
    codes = dsc.encode(coords, atoms, basis, 1)
    statistics = dsc.accumulate(coords, codes, atoms, basis, update)
    total = statistics.scatter[0, 0] if update == "ksvd" else statistics.normal[0, 0, 0].real
    np.testing.assert_allclose(total - 1e10, 1000, rtol=1e-3)


def test_worst__are_the_largest_errors_and_of_copies_the_lowest_number(problem):
    coords, atoms, basis = problem
    codes = dsc.encode(coords, atoms, basis, 2)
    worst = dsc.accumulate(coords, codes, atoms, basis).usage.worst
    error = codes.error.copy()
    error[[11, 12, 33, 50]] = 0  # the same as 4
    assert worst.patch.tolist() == np.argsort(-error, kind="stable")[:6].tolist()
    assert worst.patch[0] == 4
    np.testing.assert_array_equal(worst.error, codes.error[worst.patch])
    expected = coords - dsc.decode(codes, atoms, basis)
    np.testing.assert_allclose(worst.residual, expected[worst.patch], atol=1e-5)


def test_worst__keeps_the_lowest_numbers_when_later_parts_come_first(problem):
    parts = [statistics_of(problem, slice(p, p + 10), "mod") for p in range(0, N_PATCHES, 10)]
    merged = reduce(lambda a, b: a.merge(b), parts[::-1])
    whole = statistics_of(problem, slice(0, N_PATCHES), "mod")
    assert merged.usage.worst.patch.tolist() == whole.usage.worst.patch.tolist()
    assert merged.usage.worst.patch[0] == 4


@given(
    kinds=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=40),
    size=st.integers(1, 8),
    data=st.data(),
)
def test_worst__of_any_parts_in_any_order_are_the_distinct_ones(kinds, size, data):
    """Errors in one column, residuals in the other: many are the same in one or in both."""
    error = np.array([kind[0] for kind in kinds], np.float32)
    residual = np.array([kind[1] for kind in kinds], np.float32)[:, None]
    expected, seen = [], set()
    for p in sorted(range(len(kinds)), key=lambda p: (-error[p], p)):
        if kinds[p] not in seen:
            expected.append(p)
        seen.add(kinds[p])
    cuts = data.draw(st.lists(st.integers(0, len(kinds)), max_size=6))
    parts = [
        WorstPatches.of(error[a:b], residual[a:b], a, size)
        for a, b in pairwise([0, *sorted(cuts), len(kinds)])
    ]
    while len(parts) > 1:  # any two, in any order
        one = parts.pop(data.draw(st.integers(0, len(parts) - 1)))
        other = parts.pop(data.draw(st.integers(0, len(parts) - 1)))
        parts.append(one.merge(other))
    found = parts[0]
    assert found.patch.tolist() == expected[:size]
    np.testing.assert_array_equal(found.error, error[found.patch])
    np.testing.assert_array_equal(found.residual, residual[found.patch])


def test_worst__are_ordered_by_error(problem):
    coords, atoms, basis = problem
    coords = coords[13:33]
    codes = dsc.encode(coords, atoms, basis, 2)
    worst = dsc.accumulate(coords, codes, atoms, basis, first_patch=100).usage.worst
    assert worst.patch.tolist() == (100 + np.argsort(-codes.error, kind="stable")[:6]).tolist()
