"""Shards: many chunks of a long array in one object, so that an object store holds fewer.

A shard is its chunks, one after the other, then an index: where each begins and how long it is, two
64-bit numbers a chunk, and a CRC-32C. Every chunk in it has a CRC-32C of its own. Parts of a shard
are read as byte ranges; whoever writes one writes all of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import google_crc32c
import numpy as np
from numpy.typing import NDArray
from zarr.abc.store import ByteRequest, OffsetByteRequest, RangeByteRequest

LEAST_SHARDS = 64  # of an array that has any: tasks own whole ones, and there should be enough
MOST_CHUNKS = 64  # in a shard
SHARD_BYTES = 64 * 2**20  # of the arrays that are written together, in a shard of each, at most
SHARE = 8  # of the memory of a thread, such a part at most: a writer holds it twice

_ABSENT = np.uint64(2**64 - 1)  # in the index, of a chunk that is not there

Spans = list[tuple[int, int]]  # (first, last + 1) byte of each chunk, one after the other


def shard_rows(n_rows: int, chunk: int, row_bytes: int, memory: int | None = None) -> int:
    """Rows in a shard of arrays that are written together; those of a chunk if there are none.

    A power of two times `chunk`: as many as leave 64 shards, of at most 64 chunks and 64 MiB.

    Parameters
    ----------
    n_rows
        Length of the arrays.
    chunk
        Rows in a chunk.
    row_bytes
        Bytes of a row in all of these arrays, before compression.
    memory
        Bytes that a writer may use: a shard of each array is at most an eighth of it.

    Examples
    --------
    >>> [shard_rows(n, 2**16, 40) // 2**16 for n in (10**6, 8_000_000, 10**7, 10**8, 10**9)]
    [1, 1, 2, 16, 16]
    """
    n_chunks = -(-n_rows // chunk)
    n_bytes = SHARD_BYTES if memory is None else min(SHARD_BYTES, memory // SHARE)
    most = min(MOST_CHUNKS, n_chunks // LEAST_SHARDS, n_bytes // max(1, chunk * row_bytes))
    return chunk << max(0, most.bit_length() - 1)


def index_size(n_chunks: int) -> int:
    """Bytes of the index of a shard."""
    return 16 * n_chunks + 4


def is_whole(data: NDArray[np.uint8]) -> bool:
    """Whether bytes end in their own CRC-32C."""
    return bool(google_crc32c.value(data[:-4]).to_bytes(4, "little") == data[-4:].tobytes())


def read_index(data: NDArray[np.uint8], n_chunks: int) -> Spans | None:
    """Where the first chunks of a shard are; None if this is no index as it is written here.

    Chunks lie one after the other from the first byte on, and none is left out but at the end.
    """
    if not is_whole(data) or (len(data) - 4) % 16:
        return None
    table = np.frombuffer(data[:-4].tobytes(), "<u8").reshape(-1, 2)
    if n_chunks > len(table) or (table[:n_chunks] == _ABSENT).any():
        return None
    if not (table[n_chunks:] == _ABSENT).all():
        return None
    begins, sizes = table[:n_chunks].astype(np.int64).T
    ends = np.cumsum(sizes)
    if (sizes < 4).any() or (begins != ends - sizes).any():
        return None
    return list(zip(begins.tolist(), ends.tolist(), strict=True))


def chunk_run(spans: Spans, request: RangeByteRequest) -> range | None:
    """The numbers of the chunks that a byte range is made of; None if it cuts one of them."""
    first = next((i for i, (begin, _) in enumerate(spans) if begin == request.start), None)
    last = next((i for i, (_, end) in enumerate(spans) if end == request.end), None)
    return None if first is None or last is None or last < first else range(first, last + 1)


def chunks_in_shard(array: Mapping[str, Any]) -> int:
    """How many chunks a shard has, along the first dimension, by the metadata; 0 without shards."""
    first = array["codecs"][0]
    if first["name"] != "sharding_indexed":
        return 0
    shard = array["chunk_grid"]["configuration"]["chunk_shape"]
    return int(shard[0]) // int(first["configuration"]["chunk_shape"][0])


def cut(request: ByteRequest, size: int) -> slice:
    """The bytes of an object of some size that a request means."""
    if isinstance(request, RangeByteRequest):
        return slice(request.start, request.end)
    if isinstance(request, OffsetByteRequest):
        return slice(request.offset, None)
    return slice(max(0, size - request.suffix), None)
