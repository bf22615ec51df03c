"""Is a finished store what its kind promises? Read from the metadata alone."""

from __future__ import annotations

import json

from dsc.errors import DscError
from dsc.store.manifest import Manifest, Metadata, chunk_counts
from dsc.store.objects import read_object, sha256
from dsc.store.schema import Variable, schema_of
from dsc.store.strict import METADATA


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
            problems += _differences(schema[name], found, manifest, sizes)
    if problems:
        raise DscError(
            f"{url}: is no store of {manifest.kind} in format {manifest.format}: "
            f"{'; '.join(problems)}: make it again"
        )


def _differences(
    variable: Variable, found: Metadata, manifest: Manifest, sizes: dict[str, int]
) -> list[str]:
    problems = []
    dims = tuple(found.get("dimension_names") or ())
    for what, present, expected in (
        ("dimensions", dims, variable.dims),
        ("type", found["data_type"], variable.dtype),
        ("chunks", manifest.chunks.get(variable.name), chunk_counts(found)),
    ):
        if present != expected:
            problems.append(f"array {variable.name!r} has {what} {present}, need {expected}")
    if dims == variable.dims:
        for dim, size in zip(dims, found["shape"], strict=True):
            if sizes.setdefault(dim, size) != size:
                problems.append(f"array {variable.name!r} has {dim} {size}, others {sizes[dim]}")
    return problems
