"""Merging on the aligned binary tree over leaf numbers, so that sums never depend on the split."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, Self, TypeVar


class Mergeable(Protocol):
    """A value with an associative merge (exact but for rounding, which the tree fixes)."""

    def merge(self, other: Self) -> Self:
        """One value for both."""
        ...


Value = TypeVar("Value", bound=Mergeable)


def merge_all(*values: Value) -> Value:
    """`merge_tree`, as a function that a task can call."""
    return merge_tree(values)


def merge_tree(leaves: Iterable[Value]) -> Value:
    """Merge leaves as they come: 0 with 1, 2 with 3, then the pairs, an odd one going up alone.

    At most 2 + log₂(number of leaves) values are alive at once.
    """
    stack: list[tuple[int, Value]] = []
    for leaf in leaves:
        level, value = 0, leaf
        while stack and stack[-1][0] == level:
            value = stack.pop()[1].merge(value)
            level += 1
        stack.append((level, value))
    total = stack.pop()[1]
    while stack:
        total = stack.pop()[1].merge(total)
    return total
