"""`manifest.json`: the last object of a store. Without it, the store is not there.

It names the kind and the format, the SHA-256 of every metadata file, and for each array the number
of chunks along each dimension, which gives the keys that must be there. Arrays in shards have one
key for so many chunks (`shards`, which only stores of format 4 have). Its own SHA-256 comes last.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from itertools import product
from typing import Any

import numpy as np
import psutil

from dsc.errors import DscError, readable
from dsc.store.folder import check_there
from dsc.store.objects import (
    is_occupied,
    list_objects,
    read_object,
    read_ranges,
    read_tails,
    sha256,
    write_object,
)
from dsc.store.schema import FORMAT, NEWEST, Variable, kinds, schema_of
from dsc.store.shards import chunks_in_shard, index_size, read_index
from dsc.store.strict import MANIFEST, METADATA
from dsc.version import __version__

# what JSON of another shape than ours raises
_MALFORMED = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
SHOWN = 10  # missing chunks listed by name

Metadata = Mapping[str, Any]  # a parsed zarr.json


@dataclass(frozen=True)
class Manifest:
    """What a finished store is made of."""

    kind: str  # what it is, and who wrote it
    format: int
    dsc_version: str
    metadata: dict[str, str]  # SHA-256 of each metadata file by key
    chunks: dict[str, list[int]]  # number of chunks of each array along each dimension
    # of each array, the CRC-32C of its chunks one after the other, eight digits each: what binds a
    # chunk to its place
    checksums: dict[str, str]
    shards: dict[str, int] = field(default_factory=dict)  # chunks in a shard, where there are any

    def checksum(self, key: str, number: int = 0) -> str | None:
        """The CRC-32C of a chunk by its key, and its number in a shard; None for other keys."""
        name, _, place = key.partition("/c")
        if name not in self.checksums or name not in self.chunks:
            return None
        index = 0
        if name in self.shards:
            index = int(place.split("/")[1]) * self.shards[name] + number
            return self.checksums[name][8 * index : 8 * index + 8]
        for digits, count in zip(place.split("/")[1:], self.chunks[name], strict=False):
            index = index * count + int(digits)
        return self.checksums[name][8 * index : 8 * index + 8]

    def shard(self, key: str) -> tuple[int, int]:
        """How many chunks a shard may hold, and how many that of a key does; zeros for no shard."""
        name, _, place = key.partition("/c/")
        n_chunks = self.shards.get(name, 0)
        if not (n_chunks and place):
            return 0, 0
        before = int(place.partition("/")[0]) * n_chunks
        return n_chunks, min(n_chunks, self.chunks[name][0] - before)

    def keys(self, name: str) -> list[str]:
        """The keys of all chunks or shards of an array."""
        counts = list(self.chunks[name])
        if name in self.shards:
            counts[0] = -(-counts[0] // self.shards[name])
        return ["/".join([name, "c", *map(str, index)]) for index in product(*map(range, counts))]


def chunk_counts(array: Metadata) -> list[int]:
    """How many chunks an array has along each dimension."""
    shape = array["chunk_grid"]["configuration"]["chunk_shape"]
    if chunks_in_shard(array):
        shape = array["codecs"][0]["configuration"]["chunk_shape"]
    return [-(-size // chunk) for size, chunk in zip(array["shape"], shape, strict=True)]


def layout(name: str, array: Metadata) -> Manifest:
    """What is known of an array of a store that is being written: where its chunks are."""
    shards = {name: n_chunks} if (n_chunks := chunks_in_shard(array)) else {}
    return Manifest("", NEWEST, __version__, {}, {name: chunk_counts(array)}, {}, shards)


def write_manifest(url: str, kind: str) -> None:
    """Finish a store, refused while chunks are missing."""
    keys = list_objects(url)
    if "://" not in url:
        check_there(url)
    found = Manifest(kind, FORMAT, __version__, {}, {}, {})
    version = FORMAT
    for key in sorted(key for key in keys if key.rsplit("/", 1)[-1] == METADATA):
        text = read_object(url, key)
        assert text is not None  # it was listed just now
        found.metadata[key] = sha256(text)
        node, name = json.loads(text), key.removesuffix(METADATA).rstrip("/")
        if node["node_type"] == "array":
            found.chunks[name] = chunk_counts(node)
            if n_chunks := chunks_in_shard(node):
                found.shards[name] = n_chunks
        elif not name:
            version = max(FORMAT, int(node["attributes"]["dsc_format"]))
    wanted = {name: found.keys(name) for name in found.chunks}
    missing = [key for some in wanted.values() for key in some if key not in keys]
    if missing:
        n_chunks = sum(map(len, wanted.values()))
        listed = ", ".join(missing[:SHOWN]) + (", …" if len(missing) > SHOWN else "")
        raise DscError(
            f"{url}: cannot be finished, {len(missing)} of {n_chunks} chunks are not written "
            f"({listed}): write these, then finish again"
        )
    for name, some in wanted.items():  # the last bytes of a chunk are its own CRC-32C
        tails = _shard_tails(url, found, name) if name in found.shards else read_tails(url, some, 4)
        found.checksums[name] = "".join(tail[::-1].hex() for tail in tails)
    content = {**asdict(found), "format": version}
    if not found.shards:  # then it is what it was before there were any
        del content["shards"]
    content["sha256"] = _own_hash(content)
    write_object(url, MANIFEST, json.dumps(content, indent=1).encode())


def _shard_tails(url: str, found: Manifest, name: str) -> list[bytes]:
    """The last bytes of every chunk in the shards of an array."""
    keys = found.keys(name)
    keyed, ends = [], []
    for key, data in zip(keys, read_tails(url, keys, index_size(found.shards[name])), strict=True):
        spans = read_index(np.frombuffer(data, np.uint8), found.shard(key)[1])
        if spans is None:
            raise DscError(f"{url}: cannot be finished, shard {key} lacks chunks: write it again")
        keyed += [key] * len(spans)
        ends += [end for _, end in spans]
    return read_ranges(url, keyed, [end - 4 for end in ends], ends)


def read_manifest(url: str) -> tuple[Manifest, str]:
    """The manifest of a finished store and its SHA-256, or why there is none."""
    text = read_object(url, MANIFEST)
    if text is None:
        raise DscError(_why_absent(url))
    damaged = DscError(f"{url}: its {MANIFEST} is damaged: copy the store again, or make it again")
    try:
        content = json.loads(text)
        own, version = content.pop("sha256"), int(content["format"])
    except _MALFORMED as error:
        raise damaged from error
    if version > NEWEST:  # first, since a newer manifest may be another one altogether
        raise DscError(
            f"{url}: found format {version}, written by dsc {content.get('dsc_version')}; this "
            f"version reads formats up to {NEWEST}: install a newer dsc"
        )
    if version < FORMAT:
        raise DscError(
            f"{url}: found a store of {content.get('kind')} of format {version}, need format "
            f"{FORMAT}, with another disk basis: make it again"
        )
    if own != _own_hash(content):
        raise damaged
    try:
        found = Manifest(**content)
    except TypeError as error:
        raise damaged from error
    if not _is_well_formed(found):  # whoever wrote it, it was not us
        raise damaged
    return found, sha256(text)


def is_whole(url: str) -> bool:
    """Whether there is a manifest as it was written; one of a newer format counts, too."""
    text = read_object(url, MANIFEST)
    try:
        content = json.loads(text or b"")
        own = content.pop("sha256")
        return int(content["format"]) > NEWEST or own == _own_hash(content)
    except _MALFORMED:
        return False


def check_schema(url: str, manifest: Manifest) -> None:
    """Refuse a store with damaged metadata or with arrays that do not fit its kind.

    Groups of arrays are left out: there may be thousands in one, each checked when it is read.
    """
    schema = {name: v for name, v in schema_of(manifest.kind).items() if not v.group}
    groups = tuple(schema_of(manifest.kind).keys() - schema)
    problems = []
    arrays: dict[str, Metadata] = {}
    for key, digest in manifest.metadata.items():
        name = key.removesuffix(METADATA).rstrip("/")
        if name.partition("/")[0] in groups:
            continue
        text = read_object(url, key)
        if text is None or sha256(text) != digest:
            problems.append(f"{key} is {'missing' if text is None else 'damaged'}")
        elif name:
            arrays[name] = json.loads(text)
    if problems:
        raise DscError(f"{url}: {', '.join(problems)}: copy the store again, or make it again")
    problems = [
        f"array {variable.name!r} is missing"
        for variable in schema.values()
        if variable.required and variable.name not in arrays
    ]
    sizes: dict[str, int] = {}
    for name, found in arrays.items():
        if name in schema:
            try:
                problems += _differences(schema[name], found, manifest, sizes)
            except _MALFORMED:
                problems.append(f"array {name!r} has metadata that is none of Zarr's")
    if problems:
        raise DscError(
            f"{url}: is no store of {manifest.kind} in format {manifest.format}: "
            f"{'; '.join(problems)}: make it again"
        )


def own_kind(url: str) -> str | None:
    """The kind of a store of ours, finished or not; None for anything else."""
    text = read_object(url, METADATA)
    try:
        attributes = json.loads(text or b"{}").get("attributes") or {}
        kind = attributes.get("dsc_kind")
    except (ValueError, AttributeError, RecursionError):
        return None
    return kind if kind in kinds() else None


def _is_well_formed(found: Manifest) -> bool:
    """Whether every part has its type, and every chunk its checksum."""
    texts = [*found.metadata, *found.metadata.values()] if _is_dict(found.metadata) else [None]
    if not all(isinstance(text, str) for text in (found.kind, *texts)):
        return False
    if not (_is_dict(found.chunks) and _is_dict(found.checksums) and _is_dict(found.shards)):
        return False
    if not all(
        name in found.chunks and type(n) is int and n > 0 for name, n in found.shards.items()
    ):
        return False
    return found.chunks.keys() <= found.checksums.keys() and all(
        isinstance(counts, list)
        and all(type(n) is int and n >= 0 for n in counts)
        and isinstance(digits := found.checksums[name], str)
        and len(digits) == 8 * math.prod(counts)
        for name, counts in found.chunks.items()
    )


def _is_dict(found: object) -> bool:
    return isinstance(found, dict)


def _own_hash(content: dict[str, Any]) -> str:
    return sha256(json.dumps(content, sort_keys=True).encode())


def _why_absent(url: str) -> str:
    kind = own_kind(url)
    if kind is not None:
        return (
            f"{url}: found an unfinished store of {kind} (no {MANIFEST}): what wrote it was "
            "stopped; run it again, it replaces what is there"
        )
    if is_occupied(url):
        return (
            f"{url}: found something that is no store of dsc (no {MANIFEST}), need one made by "
            "dsc patches, dsc learn or dsc encode"
        )
    return f"{url}: nothing is there: check the path"


def _differences(
    variable: Variable, found: Metadata, manifest: Manifest, sizes: dict[str, int]
) -> list[str]:
    problems = []
    dims = tuple(found.get("dimension_names") or ())
    is_free = variable.any_type or found["data_type"] in variable.types
    dtype = found["data_type"] if is_free else variable.dtype
    for what, present, expected in (
        ("dimensions", dims, variable.dims),
        ("type", found["data_type"], dtype),
        ("chunks", manifest.chunks.get(variable.name), chunk_counts(found)),
        ("shards", manifest.shards.get(variable.name, 0), chunks_in_shard(found)),
    ):
        if present != expected:
            problems.append(f"array {variable.name!r} has {what} {present}, need {expected}")
    chunk = math.prod(found["chunk_grid"]["configuration"]["chunk_shape"])
    if chunk * np.dtype(dtype).itemsize > (memory := psutil.virtual_memory().total):
        problems.append(
            f"array {variable.name!r} has chunks of {chunk:,} values, need ones that fit into "
            f"the memory of this machine, {readable(memory)}"
        )
    if dims == variable.dims:
        for dim, size in zip(dims, found["shape"], strict=True):
            if sizes.setdefault(dim, size) != size:
                problems.append(f"array {variable.name!r} has {dim} {size}, others {sizes[dim]}")
    return problems
