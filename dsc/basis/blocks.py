"""Singular values by blocks of columns that are orthogonal to each other.

The square grid is symmetric under quarter rotations and reflections, and rings share no pixels, so
a sampled basis falls apart into small groups of columns: their SVDs cost a fraction of the whole
one, and the symmetries hold exactly in the result.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

Matrix = NDArray[np.float64]


class Block(NamedTuple):
    """The thin SVD of some columns: `matrix[:, columns]` = left · diag(values) · right."""

    columns: NDArray[np.int64]
    left: Matrix
    values: Matrix
    right: Matrix


def orthogonal_blocks(gram: Matrix) -> list[NDArray[np.int64]]:
    """Column numbers of each group; columns of different groups are orthogonal."""
    linked = np.abs(gram) > 1e-10 * gram.diagonal().max()
    n_groups, group = connected_components(linked, directed=False)
    return [np.flatnonzero(group == g) for g in range(n_groups)]


def block_svd(matrix: Matrix) -> list[Block]:
    """The SVD of `matrix`, one block of columns after the other."""
    parts = []
    for columns in orthogonal_blocks(matrix.T @ matrix):
        part = matrix[:, columns]
        used = np.flatnonzero(part.any(axis=1))  # a ring's columns live on its few pixels
        left = np.zeros((len(matrix), min(used.size, columns.size)))
        left[used], values, right = np.linalg.svd(part[used], full_matrices=False)
        parts.append(Block(columns, left, values, right))
    return parts
