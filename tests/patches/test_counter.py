"""Random numbers by counter."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dsc.counter import choose, uniform_bits

numbers = st.lists(st.integers(0, 2**62), unique=True, max_size=60).map(
    lambda found: np.array(found, np.int64)
)


@given(numbers=numbers, cut=st.integers(0, 60))
def test_bits__do_not_depend_on_what_else_is_asked(numbers, cut):
    whole = uniform_bits(3, "a", numbers)
    parts = [uniform_bits(3, "a", numbers[:cut]), uniform_bits(3, "a", numbers[cut:])]
    np.testing.assert_array_equal(np.concatenate(parts), whole)
    for number, bits in zip(numbers, whole, strict=True):
        assert uniform_bits(3, "a", number) == bits


def test_bits__are_distinct_and_uniform():
    bits = uniform_bits(0, "a", np.arange(100_000))
    assert len(np.unique(bits)) == len(bits)
    for shift in range(64):
        share = ((bits >> np.uint64(shift)) & np.uint64(1)).mean()
        assert abs(share - 0.5) < 0.01
    counts = np.bincount((bits % np.uint64(7)).astype(int))
    assert np.abs(counts / len(bits) - 1 / 7).max() < 0.005


def test_bits__of_other_seeds_and_purposes_are_unrelated():
    index = np.arange(20_000)
    first = uniform_bits(0, "a", index)
    for other in (uniform_bits(1, "a", index), uniform_bits(0, "b", index), first[::-1]):
        equal = np.bitwise_count(first ^ other).mean()
        assert abs(equal - 32) < 0.2


@given(numbers=numbers, n=st.integers(0, 70))
def test_choose__takes_those_with_the_smallest_bits(numbers, n):
    order = np.lexsort((numbers, uniform_bits(1, "a", numbers)))
    expected = np.sort(numbers[order[:n]])
    np.testing.assert_array_equal(choose(1, "a", numbers, n), expected)


@given(numbers=numbers, n=st.integers(0, 30), cut=st.integers(0, 60))
def test_choose__of_parts_is_the_choice_of_the_whole(numbers, n, cut):
    parts = [choose(1, "a", part, n) for part in (numbers[:cut], numbers[cut:])]
    again = choose(1, "a", np.concatenate(parts), n)
    np.testing.assert_array_equal(again, choose(1, "a", numbers, n))
