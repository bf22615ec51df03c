"""A Zarr store that never invents numbers.

Zarr reads a missing chunk as its fill value, and reports a damaged one without its name. Here
every object is checked as it is fetched, so that all readers (ours, xarray's) get the same errors.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, Protocol, Self

import google_crc32c
from zarr.abc.buffer import Buffer
from zarr.abc.store import ByteRequest
from zarr.abc.store import Store as ZarrStore
from zarr.core.buffer import BufferPrototype
from zarr.storage import WrapperStore

from dsc.errors import DscError
from dsc.store.folder import METADATA as METADATA
from dsc.store.objects import sha256

MANIFEST = "manifest.json"


class Finished(Protocol):
    """What is known of a finished store: its manifest."""

    @property
    def metadata(self) -> Mapping[str, str]:
        """SHA-256 of each metadata file."""

    def checksum(self, key: str) -> str | None:
        """The CRC-32C of a chunk by its key, in hexadecimal digits."""


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
        try:
            value = await self._store.get(key, prototype, byte_range)
        except OSError as error:
            raise self._error(key, f"cannot be read: {error}", "try again") from error
        return self._checked(key, value)

    def get_sync(
        self,
        key: str,
        *,
        prototype: BufferPrototype | None = None,
        byte_range: ByteRequest | None = None,
    ) -> Buffer | None:
        """The same for zarr's synchronous readers."""
        store: Any = self._store  # only some stores have it, and zarr asks before it calls
        try:
            value = store.get_sync(key, prototype=prototype, byte_range=byte_range)
        except OSError as error:
            raise self._error(key, f"cannot be read: {error}", "try again") from error
        return self._checked(key, value)

    def _checked(self, key: str, value: Buffer | None) -> Buffer | None:  # noqa: ARG002
        return value

    def _error(self, key: str, problem: str, remedy: str) -> DscError:
        return DscError(f"{self._url}: {key} {problem}: {remedy}")


class StrictStore(CheckedStore):
    """Zarr store whose chunks must be there and whole, and whose metadata must be as finished."""

    def __init__(self, store: ZarrStore, url: str, finished: Finished | None) -> None:
        super().__init__(store, url)
        self._finished = finished  # what its manifest says; None while the store is written

    def _with_store(self, store: ZarrStore) -> Self:
        return type(self)(store, self._url, self._finished)

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        """Names below a prefix, without the manifest, of which zarr knows nothing."""
        async for name in self._store.list_dir(prefix):
            if name != MANIFEST:
                yield name

    def _checked(self, key: str, value: Buffer | None) -> Buffer | None:
        finished = self._finished
        digest, is_chunk = finished.metadata.get(key) if finished else None, "/c/" in key
        if value is None and (is_chunk or digest):
            raise self._error(key, "is missing")
        if value is not None and is_chunk:
            data = value.as_numpy_array()
            if google_crc32c.value(data[:-4]).to_bytes(4, "little") != data[-4:].tobytes():
                raise self._error(key, "is damaged (its checksum does not match)")
            place = finished.checksum(key) if finished else None
            if place is not None and data[-4:].tobytes()[::-1].hex() != place:
                raise self._error(key, "is damaged (it is another chunk's, or of another store)")
        elif value is not None and digest and sha256(value.to_bytes()) != digest:
            raise self._error(key, "is damaged (not what it was when the store was finished)")
        return value

    def _error(
        self, key: str, problem: str, remedy: str = "copy the store again, or make it again"
    ) -> DscError:
        array, _, chunk = key.partition("/c/")
        name = f"chunk {chunk} of array {array!r} ({key})" if chunk else f"its metadata {key}"
        return DscError(f"{self._url}: {name} {problem}: {remedy}")
