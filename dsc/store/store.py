"""`Store`: a handle of one store, small enough to send to every task."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from os import PathLike
from types import EllipsisType
from typing import TYPE_CHECKING, Any

import numpy as np
import zarr
from numpy.typing import ArrayLike, NDArray

from dsc.errors import DscError, unknown_choice
from dsc.locks import check_held, lock_path, unlock
from dsc.store import manifest
from dsc.store.folder import check_there, forget, is_marked, remove_rest
from dsc.store.objects import (
    as_written,
    chunk_bytes,
    normalize,
    read_object,
    reported,
    sha256,
    zarr_store,
)
from dsc.store.schema import check_variable
from dsc.store.strict import METADATA, BlankStore, StrictStore

if TYPE_CHECKING:
    import xarray

Selection = slice | tuple[slice, ...] | EllipsisType


@dataclass(frozen=True)
class Store:
    """One store: a Zarr v3 group of a known kind, at a path or URL."""

    url: str  # where it is: an absolute path, or a URL that fsspec knows
    kind: str  # "patches", "model", "codes" or "texture"
    token: str  # tells this store from others that were or will be at the same place
    writable: bool = False  # True until it is finished

    @property
    def attributes(self) -> dict[str, Any]:
        """The attributes of the whole store."""
        return dict(_attributes(self, ""))

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of the arrays of a finished store."""
        return tuple(_manifest(self).chunks)

    def shape(self, variable: str) -> tuple[int, ...]:
        """The size of an array along each of its dimensions."""
        return tuple(_array(self, variable).shape)

    def chunks(self, variable: str) -> tuple[int, ...]:
        """The size of its chunks: what is read at once."""
        return tuple(_array(self, variable).chunks)

    def shards(self, variable: str) -> tuple[int, ...]:
        """The size of its shards, or of its chunks where there are none: what is written at once.

        A writer owns so many rows of an array, or a multiple of them.
        """
        array = _array(self, variable)
        return tuple(array.shards or array.chunks)

    @property
    def n_bytes(self) -> int:
        """Bytes of all its arrays as they are stored."""
        return chunk_bytes(self.url)

    def group_attributes(self, group: str) -> dict[str, Any]:
        """The attributes of a group below the root."""
        return dict(_attributes(self, f"{group}/"))

    def read(self, variable: str, selection: Selection = ...) -> NDArray[Any]:
        """Values of an array: a slice along the first dimension, or one slice for each.

        A missing or damaged chunk is an error that names it.
        """
        array = _array(self, variable)
        with reported(f"{self.url}: array {variable!r}", f"read at {selection}"):
            return np.asarray(array[selection])

    def write(self, variable: str, start: int | tuple[int, ...], values: ArrayLike) -> None:
        """Write whole chunks from `start` on, along the first dimension or along each.

        Of arrays in shards whole shards. Tasks that write different ones may run at the same time,
        and again: the bytes are the same.
        """
        if not self.writable:
            raise DscError(f"{self.url}: is finished and cannot be changed: create another store")
        array = _array(self, variable, writing=True)
        first = start if isinstance(start, tuple) else (start,)
        first += (0,) * (array.ndim - len(first))
        found = np.asarray(values)
        rule = "same_kind" if found.dtype.kind == "f" else "safe"  # floats may be rounded
        if not np.can_cast(found.dtype, array.dtype, rule):  # type: ignore[arg-type]
            raise DscError(f"{variable}: found values of type {found.dtype}, need {array.dtype}")
        found = found.astype(array.dtype, copy=False)
        pieces = array.shards or array.chunks
        _check_place(f"{self.url}: {variable}", first, found.shape, array.shape, pieces)
        if found.size:
            try:
                place = zip(first, found.shape, strict=True)
                array[tuple(slice(a, a + size) for a, size in place)] = found
            except OSError as error:
                if "://" not in self.url:
                    check_there(self.url)
                error.add_note(f"while writing {variable} at {first} of {self.url}")
                raise

    def describe(self, attributes: Mapping[str, Any]) -> None:
        """Add attributes to the whole store, before it is finished."""
        with reported(self.url, "written"):
            group = zarr.open_group(zarr_store(self.url, read_only=False), mode="r+", zarr_format=3)
            group.update_attributes(dict(attributes))

    def finish(self) -> Store:
        """Check that every chunk was written, write the manifest, and return the finished store."""
        if self.writable:
            if "://" not in self.url:
                check_held(lock_path(self.url), self.url)
            manifest.write_manifest(self.url, self.kind)
            if "://" not in self.url:
                forget(self.url)
                unlock(lock_path(self.url))
        return open_store(self.url, self.kind)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """While it is written and finished: if that fails, others may write at its place.

        If somebody has removed it meanwhile, so is what was written after that.
        """
        try:
            yield
        except BaseException:
            if "://" not in self.url:
                if not is_marked(self.url):
                    remove_rest(self.url)
                forget(self.url)
                unlock(lock_path(self.url))
            raise

    def zarr(self) -> StrictStore:
        """The store for other readers of Zarr, with the same checks."""
        finished = None if self.writable else _manifest(self)
        return StrictStore(zarr_store(self.url, not self.writable), self.url, finished)


def open_store(url: str | PathLike[str], kind: str | None = None) -> Store:
    """Open a finished store at a path or URL; other kinds than `kind` are refused."""
    place = normalize(url)
    found, token = manifest.read_manifest(place)
    if kind is not None and found.kind != kind:
        raise DscError(f"{place}: found a store of {found.kind}, need one of {kind}")
    with as_written(place, f"a store of {found.kind}"):
        manifest.check_schema(place, found)
    return Store(place, found.kind, token)


def open_dataset(url: str | PathLike[str], kind: str | None = None) -> xarray.Dataset:
    """Open any store of ours as a dataset with named dimensions.

    Arrays are read from the store when they are asked for, and checked as they are read.

    Parameters
    ----------
    url
        A local path or a URL.
    kind
        Refuse other kinds than this one.
    """
    import xarray  # takes a while, and few processes need it

    dataset: xarray.Dataset = xarray.open_zarr(
        open_store(url, kind).zarr(), consolidated=False, chunks=None, zarr_format=3
    )
    return dataset


def open_lazily(url: str | PathLike[str], kind: str | None = None) -> xarray.Dataset:
    """Open any store of ours as a dataset of Dask arrays with named dimensions.

    Only metadata is read. Arrays are computed when they are asked for, in parts (a Dask chunk is a
    chunk of the store, or a shard), and are checked as they are read. Codes have `atom`, `angle`,
    `coef` (patch, slot) and `error`, `rest` (patch); patch sets `image`, `y`, `x`, and `label`,
    `rotation` and `coords` if they have them (see `open_patches` for the pixels); models what
    `Dictionary.to_xarray` gives, and the basis; maps the array "0" (c, y, x) with named channels.

    Parameters
    ----------
    url
        A local path or a URL.
    kind
        Refuse other kinds than this one.
    """
    dataset = open_dataset(url, kind)
    lazy = dataset.assign({name: _cut(array) for name, array in dataset.variables.items()})
    channels = dataset.attrs.get("channels")
    if isinstance(channels, list) and len(channels) == dataset.sizes.get("c"):
        lazy = lazy.assign_coords(c=channels)
    return lazy


def _cut(array: xarray.Variable) -> xarray.Variable:
    """The same as a Dask array, a part for each object of the store."""
    sizes = array.encoding.get("shards") or array.encoding.get("chunks") or array.shape
    return array.chunk(dict(zip(array.dims, sizes, strict=True)))


def is_finished(url: str | PathLike[str]) -> bool:
    """Whether a finished store of ours is there; one with a broken manifest is none."""
    place = normalize(url)
    return manifest.own_kind(place) is not None and manifest.is_whole(place)


@lru_cache(maxsize=64)
def _manifest(store: Store) -> manifest.Manifest:
    found, token = manifest.read_manifest(store.url)
    if token != store.token:
        raise DscError(f"{store.url}: was replaced after it was opened: open it again")
    return found


@lru_cache(maxsize=64)
def _attributes(store: Store, prefix: str) -> dict[str, Any]:
    key = prefix + METADATA
    text = read_object(store.url, key)
    if text is None:
        raise DscError(f"{store.url}: {key} is missing: copy the store again, or make it again")
    if not store.writable and sha256(text) != _manifest(store).metadata.get(key):
        raise DscError(f"{store.url}: {key} is damaged: copy the store again, or make it again")
    with as_written(store.url, f"the attributes of {key}"):
        return dict(json.loads(text).get("attributes", {}))


@lru_cache(maxsize=256)
def _array(store: Store, variable: str, writing: bool = False) -> zarr.Array[Any]:
    check_variable(store.kind, variable)
    if not store.writable and variable not in (known := _manifest(store).chunks):
        raise unknown_choice(f"{store.url}: array", variable, known)
    try:
        array = zarr.open_array(
            _view(store, variable, writing),
            path=variable,
            mode="r+" if store.writable else "r",
            zarr_format=3,
        )
        return array.with_config({"write_empty_chunks": True})
    except (DscError, MemoryError):
        raise
    except FileNotFoundError as error:
        if store.writable and "://" not in store.url:
            check_there(store.url, missing=True)
        raise DscError(f"{store.url}: has no array {variable!r}") from error
    except Exception as error:  # whatever zarr says of metadata that nobody could have written
        text = " ".join(str(error).split()) or type(error).__name__
        raise DscError(f"{store.url}: array {variable!r} cannot be opened: {text}") from error


def _view(store: Store, variable: str, writing: bool) -> StrictStore:
    """Zarr's view of a store; of one that is being written, with what is known of an array."""
    if not store.writable:
        return store.zarr()
    text = read_object(store.url, f"{variable}/{METADATA}")
    layout = manifest.layout(variable, json.loads(text)) if text else None
    view = BlankStore if writing else StrictStore
    return view(zarr_store(store.url, read_only=False), store.url, layout)


def _check_place(
    name: str,
    first: tuple[int, ...],
    size: tuple[int, ...],
    shape: tuple[int, ...],
    chunks: tuple[int, ...],
) -> None:
    """Refuse to write anything but whole chunks or shards, which two tasks could share."""
    if not len(first) == len(size) == len(shape):
        raise DscError(f"{name}: found values of shape {size} at {first}, need {len(shape)}-D ones")
    problems = []
    for axis, (a, n, total, chunk) in enumerate(zip(first, size, shape, chunks, strict=True)):
        end = a + n
        if a < 0 or end > total:
            problems.append(f"axis {axis}: found {a} to {end}, need a part of 0 to {total}")
        elif a % chunk or (end % chunk and end != total):
            problems.append(
                f"axis {axis}: found {a} to {end}, need whole chunks: multiples of {chunk}, or "
                f"the end {total}"
            )
    if problems:
        raise DscError(f"{name}: " + "; ".join(problems))
