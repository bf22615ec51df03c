"""A mergeable list of the worst-coded patches: where unused atoms start again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SPARE = 2  # entries kept for each atom: some are too much like others to start from


@dataclass(frozen=True, eq=False)
class WorstPatches:
    """The patches of largest error, worst first, ties to the lowest patch number.

    Of patches with the same error and residual to the bit only the one of the lowest number is
    kept, so that repetitions in an image do not fill the list. An entry that a part leaves out has
    as many distinct ones before it in the whole: parts merge in any order and grouping.
    """

    error: NDArray[np.float32]  # (entry,) residual energy in coordinates
    patch: NDArray[np.int64]  # (entry,) the patch's number in the whole set
    residual: NDArray[np.float32]  # (entry, coord) what the code left of it
    size: int  # how many entries are kept at most

    @staticmethod
    def of(
        error: NDArray[np.float32], residual: NDArray[np.float32], first_patch: int, size: int
    ) -> WorstPatches:
        """The worst of consecutive patches numbered from `first_patch`."""
        among = np.arange(len(error))
        if size < len(error):  # a stable sort of all would cost as much as coding some
            least = np.partition(error, len(error) - size)[len(error) - size]
            among = np.flatnonzero(error >= least)
            if len(np.unique(error[among])) < size:  # some may be the same
                distinct = np.unique(error)
                among = np.flatnonzero(error >= distinct[-min(size, len(distinct))])
        order = among[np.argsort(-error[among], kind="stable")]
        order = order[_distinct(error[order], residual, order, size)]
        return WorstPatches(error[order], first_patch + order, residual[order], size)

    def merge(self, other: WorstPatches) -> WorstPatches:
        """The worst of both."""
        error = np.concatenate([self.error, other.error])
        patch = np.concatenate([self.patch, other.patch])
        residual = np.concatenate([self.residual, other.residual])
        order = np.lexsort((patch, -error))
        order = order[_distinct(error[order], residual, order, self.size)]
        return WorstPatches(error[order], patch[order], residual[order], self.size)


def _distinct(
    error: NDArray[np.float32],
    residual: NDArray[np.float32],
    rows: NDArray[np.intp],
    size: int,
) -> NDArray[np.intp]:
    """The first `size` places of a sorted list without those that repeat an earlier one.

    `rows` are the rows of `residual` that belong to the places.
    """
    if (error[1:] != error[:-1]).all():
        return np.arange(min(size, len(error)))
    first: dict[tuple[float, bytes], int] = {}
    for place, row in enumerate(rows):
        first.setdefault((float(error[place]), residual[row].tobytes()), place)
        if len(first) == size:
            break
    return np.array(list(first.values()), np.intp)
