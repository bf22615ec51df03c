"""Making stores."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from zarr.codecs import Crc32cCodec, ZstdCodec

from dsc.errors import DscError, count_problem, unknown_choice
from dsc.locks import lock, lock_path
from dsc.store import objects
from dsc.store.folder import remember, remove_partial, remove_rest
from dsc.store.manifest import is_whole, own_kind
from dsc.store.schema import FORMAT, NARROW, Variable, schema_of
from dsc.store.store import Store
from dsc.store.strict import METADATA
from dsc.version import __version__

ZSTD_LEVEL = 3


@dataclass(frozen=True)
class Layout:
    """How arrays are cut into objects."""

    chunks: Mapping[str, int]  # size of a chunk along dimensions
    shards: Mapping[str, int]  # rows in a shard of arrays: whole chunks of them, see `shard_rows`


def create(
    url: str | PathLike[str],
    kind: str,
    sizes: Mapping[str, int],
    chunks: Mapping[str, int] | Layout,
    attributes: Mapping[str, Any],
    variables: Collection[str] | Mapping[str, str] = (),
) -> Store:
    """Make a store to be written, with all its arrays.

    It counts as absent until `Store.finish`. What is at `url` already is refused, unless it is an
    unfinished store of ours, which is replaced. Dimensions that `chunks` leaves out are whole;
    `variables` names the optional arrays, and as a mapping the types of those that may have others.
    """
    schema = {name: v for name, v in schema_of(kind).items() if not v.group}
    for name in variables:
        if name not in schema:
            raise unknown_choice("variables", name, schema)
    types = dict(variables) if isinstance(variables, Mapping) else {}
    wanted = [
        _typed(v, types.get(v.name)) for v in schema.values() if v.required or v.name in variables
    ]
    layout = chunks if isinstance(chunks, Layout) else Layout(chunks, {})
    _check_sizes(wanted, sizes, layout.chunks)
    arrays = [_planned(v, sizes, layout) for v in wanted]
    is_narrow = any(v.dtype != schema[v.name].dtype and not v.any_type for v in wanted)
    place = objects.normalize(url)
    check_free(place)
    if "://" not in place:
        with objects.reported(place, "written"):
            if not Path(place).parent.exists():
                Path(place).parent.mkdir(parents=True, exist_ok=True)
            lock(lock_path(place), place)  # until it is finished, or this process ends
            Path(place).mkdir(exist_ok=True)
            remember(place)
    objects.remove_objects(place, keep=METADATA)  # which says that it is ours until the very end
    version = NARROW if is_narrow or any(shard for *_, shard in arrays) else FORMAT
    header = {"dsc_kind": kind, "dsc_format": version, "dsc_version": __version__}
    with objects.reported(place, "written"):
        group = zarr.create_group(
            objects.zarr_store(place, read_only=False),
            zarr_format=3,
            attributes={**attributes, **header},
            overwrite=True,
        )
        for array in arrays:
            _add(group, *array)
    if "://" not in place and own_kind(place) != kind:  # Zarr makes a group that is not there
        remove_rest(place)
        raise DscError(f"{place}: was removed while it was written: repeat the command")
    return Store(place, kind, uuid.uuid4().hex, writable=True)


def reopen(url: str | PathLike[str], kind: str) -> Store | None:
    """An unfinished store of a kind with all its arrays, to be continued; None if there is none."""
    place = objects.normalize(url)
    if own_kind(place) != kind or is_whole(place):
        return None
    arrays = [v.name for v in schema_of(kind).values() if v.required and not v.group]
    if any(objects.read_object(place, f"{name}/{METADATA}") is None for name in arrays):
        return None
    if "://" not in place:
        lock(lock_path(place), place)
        remove_partial(place)
        remember(place)
    return Store(place, kind, uuid.uuid4().hex, writable=True)


def add_group(
    store: Store,
    name: str,
    arrays: Mapping[str, tuple[tuple[int, ...], tuple[int, ...]]],
    attributes: Mapping[str, Any],
) -> None:
    """Add a group of arrays, name → (shape, chunks), to a store that is being written."""
    variable = schema_of(store.kind)[name]
    group = zarr.create_group(
        objects.zarr_store(store.url, read_only=False),
        path=name,
        zarr_format=3,
        attributes=dict(attributes),
    )
    for array, (shape, chunks) in arrays.items():
        _add(group, array, variable, shape, chunks)


def check_free(url: str | PathLike[str]) -> None:
    """Refuse a place where something is that must not be replaced."""
    place = objects.normalize(url)
    if not objects.is_occupied(place):
        return
    kind = own_kind(place)
    if kind is None:
        raise DscError(
            f"{place}: exists and is no store of dsc; it is not overwritten: choose another path"
        )
    if is_whole(place):
        raise DscError(
            f"{place}: exists, a finished store of {kind}; it is not overwritten: choose another "
            "path, or remove it first"
        )


def remove_store(url: str | PathLike[str]) -> None:
    """Remove a store of ours, finished or not; anything else stays, also behind a link."""
    place = objects.normalize(url)
    if Path(place).is_symlink():
        Path(place).unlink()
    elif own_kind(place) is not None:
        objects.remove_objects(place, keep=METADATA)  # which goes last, for the same reason
        objects.remove_objects(place)


def _add(
    group: zarr.Group,
    name: str,
    variable: Variable,
    shape: tuple[int, ...],
    chunks: tuple[int, ...],
    shard: int = 0,
) -> None:
    floating = np.dtype(variable.dtype).kind == "f"
    about: dict[str, Any] = {"description": variable.description}
    if variable.units:
        about["units"] = variable.units
    group.create_array(
        name,
        shape=shape,
        chunks=(pieces := tuple(max(1, min(pair)) for pair in zip(chunks, shape, strict=True))),
        shards=(shard, *pieces[1:]) if shard else None,
        dtype=variable.dtype,
        fill_value=np.nan if floating else np.zeros((), variable.dtype)[()],
        compressors=[ZstdCodec(level=ZSTD_LEVEL)] * variable.compressed + [Crc32cCodec()],
        dimension_names=variable.dims,
        attributes=about,
    )


def _typed(variable: Variable, dtype: str | None) -> Variable:
    """The same with another type, if it may have it."""
    if dtype is None or dtype == variable.dtype:
        return variable
    if not variable.any_type and dtype not in variable.types:
        raise unknown_choice(f"type of {variable.name}", dtype, (variable.dtype, *variable.types))
    return replace(variable, dtype=dtype)


def _planned(
    variable: Variable, sizes: Mapping[str, int], layout: Layout
) -> tuple[str, Variable, tuple[int, ...], tuple[int, ...], int]:
    """Name, table entry, shape and chunks of an array, and the rows in its shards if it has any."""
    shape = tuple(int(sizes[dim]) for dim in variable.dims)
    chunks = tuple(int(layout.chunks.get(dim, sizes[dim])) for dim in variable.dims)
    rows = layout.shards.get(variable.name, 0)
    return variable.name, variable, shape, chunks, rows if rows > chunks[0] else 0


def _check_sizes(
    wanted: list[Variable], sizes: Mapping[str, int], chunks: Mapping[str, int]
) -> None:
    dims = sorted({dim for variable in wanted for dim in variable.dims})
    problems = [f"the size of {dim} is missing" for dim in dims if dim not in sizes]
    problems += [
        problem
        for what, given, least in (("size", sizes, 0), ("chunk", chunks, 1))
        for dim, size in given.items()
        if (problem := count_problem(f"{what} of {dim}", size, least))
    ]
    if problems:
        raise DscError("; ".join(problems))
