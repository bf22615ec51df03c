"""Merging on the aligned binary tree over leaf numbers, so that sums never depend on the split."""

from __future__ import annotations

from typing import Generic, Protocol, Self, TypeVar


class Mergeable(Protocol):
    """A value with an associative merge (exact but for rounding, which the tree fixes)."""

    def merge(self, other: Self) -> Self:
        """One value for both."""
        ...


Value = TypeVar("Value", bound=Mergeable)


class MergeTree(Generic[Value]):
    """Merges leaves as they come: 0 with 1, 2 with 3, then the pairs, an odd one going up alone.

    At most 2 + log₂(number of leaves) values are alive at once.
    """

    def __init__(self) -> None:
        self._stack: list[tuple[int, Value]] = []

    def add(self, leaf: Value) -> None:
        """The next leaf."""
        level, value = 0, leaf
        while self._stack and self._stack[-1][0] == level:
            value = self._stack.pop()[1].merge(value)
            level += 1
        self._stack.append((level, value))

    def total(self) -> Value:
        """All leaves as one; there is at least one, and none is added after."""
        total = self._stack.pop()[1]
        while self._stack:
            total = self._stack.pop()[1].merge(total)
        return total


def merge_all(*values: Value) -> Value:
    """Consecutive leaves as one."""
    tree = MergeTree[Value]()
    for value in values:
        tree.add(value)
    return tree.total()
