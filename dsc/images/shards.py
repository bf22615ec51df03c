"""Whether the chunks are there that belong into the shards of Zarr arrays of others.

A shard is one object with many chunks and an index of where each begins; what the index leaves out
Zarr reads as the fill value, without a word.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray

from dsc.errors import DscError
from dsc.store import read_object, read_part

ABSENT = 2**64 - 1  # in an index, of a chunk that is not there
CRC = 4  # bytes

Span = tuple[int, int]  # first, last + 1


def missing_chunk(url: str, name: str) -> DscError:
    """The error for a chunk that is not there."""
    return DscError(
        f"{url}: {name} is missing: bring it back; if it was left out since all of it is the fill "
        "value, say so (missing_as_fill, --missing-as-fill)"
    )


@dataclass(frozen=True, eq=False)
class Shards:
    """Where the chunks of a sharded array are.

    Attributes
    ----------
    url
        The Zarr store.
    prefix
        The array in it, with a slash; empty if the store is the array.
    shape, shard, chunk
        Sizes along each axis: of the array, of a shard, of a chunk in it.
    at_end
        Whether the index is the last part of a shard, or the first.
    order
        Of the bytes of a number in the index, as NumPy says it.
    has_checksum
        Whether the index has one.
    array
        The array, which knows the names of its shards.
    """

    url: str
    prefix: str
    shape: tuple[int, ...]
    shard: tuple[int, ...]
    chunk: tuple[int, ...]
    at_end: bool
    order: str
    has_checksum: bool
    array: zarr.Array[Any]

    @staticmethod
    def of(url: str, path: str, array: zarr.Array[Any]) -> Shards:
        """The shards of an array; refused if it cannot be told which chunks they hold."""
        prefix = f"{path}/" if path else ""
        about = json.loads(read_object(url, f"{prefix}zarr.json") or b"{}")
        first, *others = about["codecs"]
        options = first.get("configuration", {})
        index = options.get("index_codecs", [])
        names = [codec["name"] for codec in index]
        inside = [codec["name"] for codec in options.get("codecs", [])]
        is_known = first["name"] == "sharding_indexed" and names in (["bytes"], ["bytes", "crc32c"])
        if not is_known or others or "sharding_indexed" in inside:
            raise DscError(
                f"{url}: has shards in which missing chunks cannot be told from others (codecs "
                f"{', '.join(codec['name'] for codec in about['codecs'])}): store the array in "
                "another way, or, if none is missing, say so (missing_as_fill, "
                "--missing-as-fill)"
            )
        shard = about["chunk_grid"]["configuration"]["chunk_shape"]
        endian = index[0].get("configuration", {}).get("endian", "little")
        return Shards(
            url=url,
            prefix=prefix,
            shape=tuple(array.shape),
            shard=tuple(shard),
            chunk=tuple(options["chunk_shape"]),
            at_end=options.get("index_location", "end") == "end",
            order="<" if endian == "little" else ">",
            has_checksum="crc32c" in names,
            array=array,
        )

    def check(self, window: tuple[int | slice, ...]) -> None:
        """Refuse a window of the array if a chunk is missing that it needs."""
        whole = [(0, size) for size in self.shape]
        spans = [
            (part, part + 1) if isinstance(part, int) else part.indices(size)[:2]
            for part, size in zip(window, self.shape, strict=False)
        ]
        spans += whole[len(spans) :]
        for place in product(*map(_steps, spans, self.shard)):
            table = self._index(place)
            if table is None:
                continue  # no shard at all: whoever reads it says so
            first = [i * size for i, size in zip(place, self.shard, strict=True)]
            inside = [
                (max(a - begin, 0), min(b - begin, size))
                for (a, b), begin, size in zip(spans, first, self.shard, strict=True)
            ]
            for one in product(*map(_steps, inside, self.chunk)):
                if (table[one] == ABSENT).all():
                    corner = ", ".join(
                        str(begin + i * size)
                        for begin, i, size in zip(first, one, self.chunk, strict=True)
                    )
                    name = f"chunk {'/'.join(map(str, one))} of shard {self._key(place)}"
                    raise missing_chunk(self.url, f"{name} (from {corner} on)")

    def _key(self, place: tuple[int, ...]) -> str:
        return self.prefix + str(self.array.metadata.encode_chunk_key(place))

    def _index(self, place: tuple[int, ...]) -> NDArray[np.uint64] | None:
        """(…, 2) begin and length of every chunk of a shard; None if there is no such shard."""
        counts = [size // step for size, step in zip(self.shard, self.chunk, strict=True)]
        size = 16 * math.prod(counts)
        length = size + CRC * self.has_checksum
        key = self._key(place)
        part = (-length, None) if self.at_end else (0, length)
        found = read_part(self.url, key, *part)
        if found is None:
            return None
        if len(found) != length:
            raise DscError(f"{self.url}: shard {key} is cut: copy the array again")
        return np.frombuffer(found[:size], f"{self.order}u8").reshape(*counts, 2)


def _steps(span: Span, step: int) -> range:
    """The pieces of a grid that a span touches."""
    return range(span[0] // step, -(-span[1] // step))
