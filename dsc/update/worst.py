"""A mergeable list of the worst-coded patches: where unused atoms start again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class WorstPatches:
    """The patches of largest error, worst first, ties to the lowest patch number."""

    error: NDArray[np.float32]  # (entry,) residual energy in coordinates
    patch: NDArray[np.int64]  # (entry,) the patch's number in the whole set
    residual: NDArray[np.float32]  # (entry, coord) what the code left of it
    size: int  # how many entries are kept at most

    @staticmethod
    def of(
        error: NDArray[np.float32], residual: NDArray[np.float32], first_patch: int, size: int
    ) -> WorstPatches:
        """The worst of consecutive patches numbered from `first_patch`."""
        if size < len(error):  # a stable sort of all would cost as much as coding some
            least = np.partition(error, len(error) - size)[len(error) - size]
            among = np.flatnonzero(error >= least)
        else:
            among = np.arange(len(error))
        order = among[np.argsort(-error[among], kind="stable")[:size]]
        return WorstPatches(error[order], first_patch + order, residual[order], size)

    def merge(self, other: WorstPatches) -> WorstPatches:
        """The worst of both."""
        error = np.concatenate([self.error, other.error])
        patch = np.concatenate([self.patch, other.patch])
        order = np.lexsort((patch, -error))[: self.size]
        residual = np.concatenate([self.residual, other.residual])[order]
        return WorstPatches(error[order], patch[order], residual, self.size)
