"""Arrays of any kind, taken in bounded pieces as the float32 rows that kernels want."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dsc.errors import DscError

CHUNK_ROWS = 4096  # rows converted at a time: what bounds the working memory
LARGEST = 1e15  # larger values have energies that float32 cannot hold

Rows = NDArray[np.generic]


def as_real(array: ArrayLike, name: str) -> Rows:
    """`array` as a NumPy array of real numbers."""
    try:
        rows = np.asarray(array)
    except ValueError as error:  # lists of different lengths
        raise DscError(f"{name}: found rows of different lengths, need an array") from error
    if rows.dtype.kind not in "fiub":
        raise DscError(f"{name}: found dtype {rows.dtype}, need real numbers")
    return rows


def as_rows(array: ArrayLike, width: int, name: str, what: str) -> Rows:
    """`array` as a 2-D array of real numbers with `width` columns."""
    rows = as_real(array, name)
    if rows.ndim != 2 or rows.shape[1] != width:
        raise DscError(f"{name}: found shape {rows.shape}, need (rows, {width}): {what}")
    return rows


def row_chunks(
    rows: Rows, select: Callable[[Rows], Rows] = lambda chunk: chunk
) -> Iterator[tuple[slice, NDArray[np.float32]]]:
    """Yield (slice, writeable float32 C-contiguous array) of at most `CHUNK_ROWS` rows.

    `select` is applied to each piece first, to pick the columns that count. A value too large for
    float32 becomes infinite, for the caller's check.
    """
    for begin in range(0, len(rows), CHUNK_ROWS):
        part = slice(begin, min(begin + CHUNK_ROWS, len(rows)))
        with np.errstate(over="ignore"):
            yield part, np.require(select(rows[part]), np.float32, ["C", "A", "W"])


def check_values(chunk: NDArray[np.float32], name: str, first_row: int = 0) -> None:
    """Refuse NaN, infinite and huge values."""
    if chunk.size and not (chunk.max() <= LARGEST and chunk.min() >= -LARGEST):
        raise bad_values(chunk, name, first_row)


def bad_values(chunk: NDArray[np.float32], name: str, first_row: int = 0) -> DscError:
    """The error for NaN, infinite or huge values, naming the first row that has one."""
    flat = chunk.reshape(len(chunk), -1)
    bad = ~(np.abs(flat) <= LARGEST)
    row = int(bad.any(1).argmax())
    return DscError(
        f"{name}: found {flat[row, bad[row].argmax()]} in row {first_row + row} "
        f"({int(bad.any(1).sum())} such rows among the {len(chunk)} looked at), need finite values "
        f"up to {LARGEST:g}: drop these rows, or rescale the data"
    )
