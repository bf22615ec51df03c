"""What was read or decoded last, up to a number of bytes, for all threads of a process."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock
from typing import Any

from dask.system import CPU_COUNT
from numpy.typing import NDArray

PER_THREAD = 8 * 2**20  # two rows of tiles, and positions; more helps very wide images
CACHE_BYTES = int(os.environ.get("DSC_CACHE_BYTES", PER_THREAD * min(max(CPU_COUNT, 2), 16)))
DECODED_BYTES = 128 * 2**20


class ByteCache:
    """Least recently used arrays go first. One array may be larger than the limit, alone."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._size = 0
        self._values: OrderedDict[Hashable, NDArray[Any]] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable) -> NDArray[Any] | None:
        """The array of `key`, None if it is not there. It must not be written to."""
        with self._lock:
            value = self._values.get(key)
            if value is not None:
                self._values.move_to_end(key)
        return value

    def put(self, key: Hashable, value: NDArray[Any]) -> NDArray[Any]:
        """Keep an array and return it; of two threads that made the same, the first one's stays."""
        with self._lock:
            if key not in self._values:
                while self._values and self._size + value.nbytes > self._limit:
                    self._size -= self._values.popitem(last=False)[1].nbytes
                self._values[key] = value
                self._size += value.nbytes
            return self._values[key]

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._values.clear()
            self._size = 0


CACHE = ByteCache(CACHE_BYTES)  # for reading patches
DECODED = ByteCache(DECODED_BYTES)  # image files, while patches are extracted
