"""Arrays of patches that a user already has, and `as_source` for anything that holds patches."""

from __future__ import annotations

import hashlib
import os
import uuid
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dsc.basis import check_diameter, check_values
from dsc.errors import DscError
from dsc.images import CACHE
from dsc.patches.cut import Cutter
from dsc.patches.source import ROWS, Floats, PatchReader, PatchSource
from dsc.patches.stored import open_patches

PIECE_BYTES = 16 * 2**20  # of a lazy array, read at a time

FROM_IMAGES = "to learn from images, say the diameter of their patches (diameter=11, --diameter)"
_METHODS = ("part", "pixels", "read", "read_with_rest")


@dataclass(frozen=True)
class _Whole:
    """The set that a part was taken from, and the number of the part's first patch."""

    n_patches: int
    fingerprint: str | None
    first: int


@dataclass(frozen=True, eq=False)
class ArrayPatches(PatchReader):
    """Patches from an array (patch, y, x), or a part of them (see `PatchSource`).

    Values are taken as they are: whole numbers are not scaled to [0, 1].

    Attributes
    ----------
    array
        (patch, diameter, diameter), or (patch, diameter, diameter, channel), of NumPy, Dask,
        Zarr, xarray or anything that is sliced alike. Lazy arrays are read in pieces; Dask ones
        are computed where they are read.
    center, unit
        Subtract the mean of the disk's pixels, in each channel; divide by the norm of all.

    Examples
    --------
    >>> import numpy as np
    >>> patches = ArrayPatches(np.ones((5, 11, 11)), center=True)
    >>> patches.n_patches, patches.diameter, patches.pixels(1, 3).shape
    (5, 11, (2, 97))
    """

    array: Any = field(repr=False)
    center: bool = False
    unit: bool = False
    _whole: _Whole | None = field(default=None, repr=False)
    _token: str = field(default_factory=lambda: uuid.uuid4().hex, repr=False)

    label_names: ClassVar[tuple[str, ...]] = ()  # arrays have no classes

    def __post_init__(self) -> None:
        if self._whole is None:
            _check_array(self.array)

    @property
    def n_patches(self) -> int:
        """Patches of the whole set."""
        return int(self.array.shape[0]) if self._whole is None else self._whole.n_patches

    @property
    def diameter(self) -> int:
        """Pixels across a patch."""
        return int(self.array.shape[1])

    @property
    def n_channels(self) -> int:
        """Channels of a patch."""
        return int(self.array.shape[3]) if len(self.array.shape) > 3 else 1

    def labels(self, start: int, stop: int) -> NDArray[np.int32] | None:
        """None: arrays have no classes."""
        self._check(start, stop)
        return None

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the values (as float32) and of the normalisation: reads all patches once."""
        if self._whole is not None:
            if self._whole.fingerprint is None:
                raise DscError("fingerprint: this is a part of a patch set, ask the whole one")
            return self._whole.fingerprint
        header = f"{self.n_patches}:{self.diameter}:{self.center}:{self.unit}"
        header += f":{self.n_channels}" * (self.n_channels > 1)
        total = hashlib.sha256(header.encode())
        for begin in range(0, self.n_patches, ROWS):
            squares = self._squares(begin, min(begin + ROWS, self.n_patches))
            with np.errstate(over="ignore"):
                total.update(np.ascontiguousarray(squares, "<f4").data)
        return total.hexdigest()

    def part(self, start: int, stop: int) -> ArrayPatches:
        """These patches with their numbers, without the others."""
        self._check(start, stop)
        known = self.__dict__.get("fingerprint")  # if it was asked for
        whole = self._whole or _Whole(self.n_patches, known, 0)
        rows = _part_of(self.array, start - whole.first, stop - whole.first)
        if rows is None:
            return replace(self, _whole=whole)
        return replace(
            self, array=rows, _whole=replace(whole, first=start), _token=uuid.uuid4().hex
        )

    @property
    def _cutter(self) -> Cutter:
        return Cutter(self.diameter, self.center, self.unit, self.n_channels)

    def _stored(self, *_: object) -> list[Floats]:
        return []

    def _cut(self, start: int, stop: int, out: Floats) -> None:
        first, _ = self._span()
        with np.errstate(over="ignore"):
            squares = np.ascontiguousarray(self._squares(start - first, stop - first), np.float32)
        self._cutter.cut_stack(squares, out)
        check_values(out, "patches", start)

    def _span(self) -> tuple[int, int]:
        first = 0 if self._whole is None else self._whole.first
        return first, first + int(self.array.shape[0])

    def _squares(self, start: int, stop: int) -> NDArray[Any]:
        """Rows of the array; pieces of a lazy one are kept for the next call."""
        if isinstance(self.array, np.ndarray):
            return self.array[start:stop]
        if start == stop:
            return np.empty((0, *self.array.shape[1:]), np.float32)
        bounds = self._bounds
        first = int(np.searchsorted(bounds, start, "right")) - 1
        last = int(np.searchsorted(bounds, stop, "left"))
        parts = []
        for begin, end in pairwise(bounds[first : last + 1]):
            if (piece := CACHE.get((self._token, begin))) is None:
                lazy = self.array[begin:end]
                is_dask = hasattr(lazy, "compute")
                values = lazy.compute(scheduler="synchronous") if is_dask else lazy
                piece = CACHE.put((self._token, begin), np.asarray(values))
            parts.append(piece[max(start - begin, 0) : stop - begin])
        return np.concatenate(parts)

    @cached_property
    def _bounds(self) -> list[int]:
        """Where the pieces of a lazy array begin, and where the last one ends.

        A piece is a whole chunk, or several if they are small.
        """
        array, n_rows = self.array, int(self.array.shape[0])
        row_bytes = int(np.prod(array.shape[1:])) * np.dtype(array.dtype).itemsize
        most = max(1, PIECE_BYTES // row_bytes)
        chunks = getattr(array, "chunks", None) or getattr(array, "encoding", {}).get("chunks")
        first = chunks[0] if chunks else 1
        if not isinstance(first, tuple):
            return [*range(0, n_rows, first * max(1, most // first)), n_rows]
        bounds, end = [0], 0
        for size in first:
            if end > bounds[-1] and end + size - bounds[-1] > most:
                bounds.append(end)
            end += int(size)
        return [*bounds, n_rows]


def _check_array(array: Any) -> None:
    """Refuse what is no (patch, y, x) array of real numbers."""
    shape, dtype = getattr(array, "shape", None), getattr(array, "dtype", None)
    if shape is None or dtype is None:
        raise DscError(
            f"patches: found {type(array).__name__}, need a patch set or its path, or an array "
            "(patch, y, x) of NumPy, Dask, Zarr or xarray"
        )
    if len(shape) not in (3, 4) or shape[1] != shape[2] or 0 in shape[3:]:
        raise DscError(
            f"patches: found shape {tuple(shape)}, need (patch, diameter, diameter), or with "
            f"channels after them; {FROM_IMAGES}"
        )
    if np.dtype(dtype).kind not in "fiub":
        raise DscError(f"patches: found dtype {dtype}, need real numbers")
    if not isinstance(shape[0], int | np.integer):
        raise DscError(
            "patches: found a Dask array whose chunks have unknown sizes, need a known number of "
            "patches: call its compute_chunk_sizes() first"
        )
    if shape[0] < 1:
        raise DscError(f"patches: found {shape[0]} of them, need a set of at least one")
    check_diameter(int(shape[1]))


def _part_of(array: Any, start: int, stop: int) -> Any:
    """The rows alone if slicing is free; None where it would read them (Zarr, HDF5)."""
    if not (isinstance(array, np.ndarray) or hasattr(array, "isel") or hasattr(array, "dask")):
        return None
    rows = array[start:stop]
    graph = rows.__dask_graph__() if hasattr(rows, "__dask_graph__") else None
    if graph is None:
        return rows
    rebuild, arguments = rows.__dask_postpersist__()  # without the tasks of the other rows
    return rebuild(rows.__dask_optimize__(graph, rows.__dask_keys__()), *arguments)


def as_source(patches: Any, center: bool = False, unit: bool = False) -> PatchSource:
    """A source itself, the patch set at a path or URL, or an array (see `ArrayPatches`).

    An array that is no source yet is prepared as `center` and `unit` say.

    Examples
    --------
    >>> import numpy as np
    >>> as_source(np.zeros((4, 11, 11))).n_patches
    4
    """
    if all(callable(getattr(type(patches), name, None)) for name in _METHODS):
        source: PatchSource = patches
        return source
    if isinstance(patches, str | os.PathLike):
        return open_patches(patches)
    if isinstance(patches, list | tuple):
        try:
            patches = np.asarray(patches)
        except ValueError as error:
            raise DscError(
                f"patches: found {len(patches)} of different shapes, need them alike; {FROM_IMAGES}"
            ) from error
    if hasattr(patches, "data_vars"):
        raise DscError(
            "patches: found an xarray dataset, need one array (patch, y, x) of it, or the path of "
            "a patch set"
        )
    return ArrayPatches(patches, center, unit)
