"""What was read or decoded last, up to a number of bytes, for all threads of a process."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any

from dask.system import CPU_COUNT
from numpy.typing import NDArray

PER_THREAD = 8 * 2**20  # two rows of tiles, and positions; more helps very wide pictures
CACHE_BYTES = int(os.environ.get("DSC_CACHE_BYTES", PER_THREAD * min(max(CPU_COUNT, 2), 16)))
DECODED_BYTES = 128 * 2**20

Arrays = tuple[NDArray[Any], ...]


class ByteCache:
    """Least recently used arrays go first. One value may be larger than the limit, alone."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._size = 0
        self._values: OrderedDict[Hashable, Arrays] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable, make: Callable[[], Arrays]) -> Arrays:
        """The arrays of `key`, made if they are not there. They must not be written to."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
        value = make()  # two threads may both make it, and get the same
        size = _n_bytes(value)
        with self._lock:
            if key in self._values:
                return self._values[key]
            while self._values and self._size + size > self._limit:
                self._size -= _n_bytes(self._values.popitem(last=False)[1])
            self._values[key] = value
            self._size += size
        return value

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._values.clear()
            self._size = 0


def _n_bytes(value: Arrays) -> int:
    return sum(array.nbytes for array in value)


CACHE = ByteCache(CACHE_BYTES)  # for reading patches
DECODED = ByteCache(DECODED_BYTES)  # picture files, while patches are extracted
