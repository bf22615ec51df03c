from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsc.engine.tree import MergeTree, merge_all


@dataclass(frozen=True)
class Shape:
    """A value that remembers how it was merged."""

    text: str

    def merge(self, other: "Shape") -> "Shape":
        return Shape(f"({self.text}{other.text})")


def pairwise(values: list[Shape]) -> Shape:
    while len(values) > 1:
        pairs = [values[i].merge(values[i + 1]) for i in range(0, len(values) - 1, 2)]
        values = pairs + values[len(values) // 2 * 2 :]
    return values[0]


@pytest.mark.parametrize(
    ("n_leaves", "expected"), [(1, "0"), (2, "(01)"), (3, "((01)2)"), (5, "(((01)(23))4)")]
)
def test_merge_tree__merges_aligned_pairs(n_leaves, expected):
    assert merge_all(*[Shape(str(i)) for i in range(n_leaves)]).text == expected


@given(n_leaves=st.integers(1, 200), log_run=st.integers(0, 6))
def test_merge_tree__is_the_same_however_leaves_are_grouped_into_tasks(n_leaves, log_run):
    leaves = [Shape(f"[{i}]") for i in range(n_leaves)]
    run = 2**log_run
    tasks = [merge_all(*leaves[i : i + run]) for i in range(0, n_leaves, run)]
    assert pairwise(tasks) == merge_all(*leaves) == pairwise(leaves)


def test_merge_tree__holds_few_values_at_once():
    alive, most = 0, 0

    class Counted:
        def __init__(self):
            nonlocal alive, most
            alive += 1
            most = max(most, alive)

        def __del__(self):
            nonlocal alive
            alive -= 1

        def merge(self, other):
            return Counted()

    tree = MergeTree()
    for _ in range(256):
        tree.add(Counted())
    tree.total()
    assert most <= 2 + 8 + 1
