"""A Zarr store that never invents numbers.

Zarr reads a missing chunk as its fill value, and reports a damaged one without its name. Here
every object is checked as it is fetched, so that all readers (ours, xarray's) get the same errors.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from zarr.abc.buffer import Buffer
from zarr.abc.store import ByteRequest, RangeByteRequest, SuffixByteRequest
from zarr.abc.store import Store as ZarrStore
from zarr.core.buffer import BufferPrototype
from zarr.storage import WrapperStore

from dsc.errors import DscError
from dsc.store.folder import METADATA as METADATA
from dsc.store.objects import sha256
from dsc.store.shards import Spans, chunk_run, cut, index_size, is_whole, read_index

MANIFEST = "manifest.json"
MOST_INDICES = 256  # of shards that are kept in mind


class Finished(Protocol):
    """What is known of a finished store: its manifest."""

    @property
    def metadata(self) -> Mapping[str, str]:
        """SHA-256 of each metadata file."""

    def checksum(self, key: str, number: int = 0) -> str | None:
        """The CRC-32C of a chunk in hexadecimal digits: that of a key, or in the shard there."""

    def shard(self, key: str) -> tuple[int, int]:
        """How many chunks a shard may hold, and how many this one does; zeros for no shard."""


class CheckedStore(WrapperStore[ZarrStore]):
    """Zarr store that looks at every object as it is fetched: `_checked` says what is wrong."""

    def __init__(self, store: ZarrStore, url: str) -> None:
        super().__init__(store)
        self._url = url  # its name in errors

    def _with_store(self, store: ZarrStore) -> Self:
        return type(self)(store, self._url)

    async def get(
        self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        """The bytes of an object, checked."""
        return self._checked(key, await self._fetch(key, prototype, byte_range))

    def get_sync(
        self,
        key: str,
        *,
        prototype: BufferPrototype | None = None,
        byte_range: ByteRequest | None = None,
    ) -> Buffer | None:
        """The same for zarr's synchronous readers."""
        return self._checked(key, self._fetch_sync(key, prototype, byte_range))

    async def _fetch(
        self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None
    ) -> Buffer | None:
        try:
            return await self._store.get(key, prototype, byte_range)
        except OSError as error:
            raise self._error(key, f"cannot be read: {error}", "try again") from error

    def _fetch_sync(
        self, key: str, prototype: BufferPrototype | None, byte_range: ByteRequest | None
    ) -> Buffer | None:
        store: Any = self._store  # only some stores have it, and zarr asks before it calls
        try:
            found: Buffer | None = store.get_sync(key, prototype=prototype, byte_range=byte_range)
        except OSError as error:
            raise self._error(key, f"cannot be read: {error}", "try again") from error
        return found

    def _checked(self, key: str, value: Buffer | None) -> Buffer | None:  # noqa: ARG002
        return value

    def _error(self, key: str, problem: str, remedy: str) -> DscError:
        return DscError(f"{self._url}: {key} {problem}: {remedy}")


class StrictStore(CheckedStore):
    """Zarr store whose chunks must be there and whole, and whose metadata must be as finished.

    Of a shard, its index and runs of its chunks may be asked for as byte ranges; for any other
    range the whole object is fetched and checked.
    """

    def __init__(self, store: ZarrStore, url: str, finished: Finished | None) -> None:
        super().__init__(store, url)
        self._finished = finished  # what its manifest says; None while the store is written
        self._indices: dict[str, Spans] = {}  # of shards that were read, by key

    def _with_store(self, store: ZarrStore) -> Self:
        return type(self)(store, self._url, self._finished)

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        """Names below a prefix, without the manifest, of which zarr knows nothing."""
        async for name in self._store.list_dir(prefix):
            if name != MANIFEST:
                yield name

    async def get(
        self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        """The bytes of an object, or some of them, checked."""
        if byte_range is None or not self._can_check(key, byte_range):
            return _part(await super().get(key, prototype), byte_range)
        return self._checked_part(key, await self._fetch(key, prototype, byte_range), byte_range)

    def get_sync(
        self,
        key: str,
        *,
        prototype: BufferPrototype | None = None,
        byte_range: ByteRequest | None = None,
    ) -> Buffer | None:
        """The same for zarr's synchronous readers."""
        if byte_range is None or not self._can_check(key, byte_range):
            return _part(super().get_sync(key, prototype=prototype), byte_range)
        return self._checked_part(key, self._fetch_sync(key, prototype, byte_range), byte_range)

    async def get_partial_values(
        self,
        prototype: BufferPrototype,
        key_ranges: Iterable[tuple[str, ByteRequest | None]],
    ) -> list[Buffer | None]:
        """Some bytes of some objects, checked."""
        return [await self.get(key, prototype, byte_range) for key, byte_range in key_ranges]

    async def get_ranges(
        self,
        key: str,
        byte_ranges: Iterable[ByteRequest | None],
        *,
        prototype: BufferPrototype,
        **_: Any,
    ) -> AsyncIterator[Sequence[tuple[int, Buffer | None]]]:
        """The same of one object, as zarr asks from 3.3 on: its own would not be checked."""
        for number, byte_range in enumerate(byte_ranges):
            yield [(number, await self.get(key, prototype, byte_range))]

    def _can_check(self, key: str, byte_range: ByteRequest) -> bool:
        """Whether this is the index of a shard, or some chunks in one whose index was read."""
        n_chunks = self._shard(key)[0]
        if isinstance(byte_range, RangeByteRequest):
            return chunk_run(self._indices.get(key, []), byte_range) is not None
        return byte_range == SuffixByteRequest(index_size(n_chunks)) and n_chunks > 0

    def _checked(self, key: str, value: Buffer | None) -> Buffer | None:
        finished = self._finished
        digest, is_chunk = finished.metadata.get(key) if finished else None, "/c/" in key
        if value is None and (is_chunk or digest):
            raise self._error(key, "is missing")
        if value is not None and is_chunk:
            data, n_chunks = value.as_numpy_array(), self._shard(key)[0]
            if n_chunks:
                self._check_shard(key, data, index_size(n_chunks))
            else:
                self._check_chunk(key, data)
        elif value is not None and digest and sha256(value.to_bytes()) != digest:
            raise self._error(key, "is damaged (not what it was when the store was finished)")
        return value

    def _checked_part(self, key: str, value: Buffer | None, byte_range: ByteRequest) -> Buffer:
        if value is None:
            raise self._error(key, "is missing")
        data = value.as_numpy_array()
        if isinstance(byte_range, RangeByteRequest):
            spans = self._indices[key]
            for number in chunk_run(spans, byte_range) or ():
                begin, end = (place - byte_range.start for place in spans[number])
                self._check_chunk(key, data[begin:end], number)
        else:
            self._check_index(key, data)
        return value

    def _check_shard(self, key: str, data: NDArray[np.uint8], size: int) -> None:
        spans = self._check_index(key, data[-size:])
        for number, (begin, end) in enumerate(spans):
            self._check_chunk(key, data[begin:end], number)
        if spans[-1][1] + size != len(data):
            raise self._error(key, "is damaged (it is longer than its chunks)")

    def _check_index(self, key: str, data: NDArray[np.uint8]) -> Spans:
        spans = read_index(data, self._shard(key)[1])
        if spans is None:
            raise self._error(key, "is damaged (its index does not list its chunks)")
        if len(self._indices) >= MOST_INDICES:
            self._indices.clear()
        self._indices[key] = spans
        return spans

    def _check_chunk(self, key: str, data: NDArray[np.uint8], number: int | None = None) -> None:
        """Refuse a chunk, or the one of a number in a shard, that is not what was written there."""
        inside = "" if number is None else f"chunk {number} in it: "
        if not is_whole(data):
            raise self._error(key, f"is damaged ({inside}its checksum does not match)")
        place = self._finished.checksum(key, number or 0) if self._finished else None
        if place is not None and data[-4:].tobytes()[::-1].hex() != place:
            raise self._error(
                key, f"is damaged ({inside}it is another chunk's, or of another store)"
            )

    def _shard(self, key: str) -> tuple[int, int]:
        return self._finished.shard(key) if self._finished else (0, 0)

    def _error(
        self, key: str, problem: str, remedy: str = "copy the store again, or make it again"
    ) -> DscError:
        array, _, chunk = key.partition("/c/")
        what = "shard" if self._shard(key)[0] else "chunk"
        name = f"{what} {chunk} of array {array!r} ({key})" if chunk else f"its metadata {key}"
        return DscError(f"{self._url}: {name} {problem}: {remedy}")


class BlankStore(StrictStore):
    """The store for whoever writes: whole shards, so what may be there already is never read."""

    async def get(
        self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        """The bytes of metadata; of a chunk or shard none."""
        return None if "/c/" in key else await super().get(key, prototype, byte_range)

    def get_sync(
        self,
        key: str,
        *,
        prototype: BufferPrototype | None = None,
        byte_range: ByteRequest | None = None,
    ) -> Buffer | None:
        """The same for zarr's synchronous writers."""
        if "/c/" in key:
            return None
        return super().get_sync(key, prototype=prototype, byte_range=byte_range)


def _part(value: Buffer | None, byte_range: ByteRequest | None) -> Buffer | None:
    return value if value is None or byte_range is None else value[cut(byte_range, len(value))]
