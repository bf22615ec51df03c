"""Patch sets in a store: cut from their images when they are read, or materialised."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsc.basis import SteerableBasis, check_diameter
from dsc.errors import DscError
from dsc.images import CACHE, SUFFIXES, said
from dsc.patches.album import check_references, open_album
from dsc.patches.cut import Cutter, Positions
from dsc.patches.source import Floats, PatchReader
from dsc.store import Store, as_written, open_store, read_basis

SAME_BASIS = 1e-9  # entries of two computations of one basis differ by less

_basis = lru_cache(maxsize=8)(read_basis)


@dataclass(frozen=True)
class StoredPatches(PatchReader):
    """A patch set in a store, or a part of one (see `PatchSource`).

    Attributes
    ----------
    store
        Where it is.
    n_patches
        Patches of the whole set.
    diameter, center, unit, n_channels
        What a patch is.
    fingerprint
        SHA-256 of all that defines the patches.
    label_names
        Names of the classes, empty if there are none.
    rotated
        Whether patches are rotated.
    materialized
        Name of the basis whose coordinates are stored, None if there is none.
    start, stop
        The patches that may be read.
    """

    store: Store
    n_patches: int
    diameter: int
    center: bool
    unit: bool
    fingerprint: str
    label_names: tuple[str, ...]
    rotated: bool
    materialized: str | None
    start: int
    stop: int
    n_channels: int = 1

    @property
    def reading(self) -> dict[str, Any]:
        """How images were read, if not as grey ones by their type: channel, level, ranges."""
        return dict(self.store.attributes.get("reading", {}))

    @property
    def read_as(self) -> str:
        """The same in one line."""
        return said(self.reading, self.n_channels)

    @property
    def notes(self) -> tuple[str, ...]:
        """What is odd about the images, one line each."""
        return tuple(self.store.attributes.get("notes", ()))

    @property
    def basis(self) -> SteerableBasis | None:
        """The basis of a materialised set, to the bit; None for any other set."""
        return None if self.materialized is None else _basis(self.store)

    def part(self, start: int, stop: int) -> StoredPatches:
        """The same set, from which only these patches may be read."""
        self._check(start, stop)
        return replace(self, start=start, stop=stop)

    def positions(self, start: int, stop: int) -> Positions:
        """Where patches are in which images."""
        self._check(start, stop)
        names = ("image", "y", "x", "rotation") if self.rotated else ("image", "y", "x")
        at = Positions(*_rows(self.store, names, start, stop))
        open_album(self.store).check(at, self.diameter, start, self.n_channels)
        return at

    def labels(self, start: int, stop: int) -> NDArray[np.int32] | None:
        """(patch,) class of each patch, a place in `label_names`; None if there are none."""
        self._check(start, stop)
        if not self.label_names:
            return None
        (label,) = _rows(self.store, ("label",), start, stop)
        if len(label) and not 0 <= label.min() <= label.max() < len(self.label_names):
            raise DscError(
                f"{self.store.url}: found classes {label.min()} to {label.max()} among patches "
                f"{start} to {stop}, need 0 to {len(self.label_names) - 1}: extract them again"
            )
        return label

    @property
    def _cutter(self) -> Cutter:
        return Cutter(self.diameter, self.center, self.unit, self.n_channels)

    def _span(self) -> tuple[int, int]:
        return self.start, self.stop

    def _cut(self, start: int, stop: int, out: Floats) -> None:
        self._cutter.cut_album(open_album(self.store), self.positions(start, stop), out)

    def _stored(
        self, basis: SteerableBasis, names: tuple[str, ...], start: int, stop: int
    ) -> list[Floats]:
        """Coordinates of a materialised set; those of another basis cannot be had then."""
        stored = self.basis
        if stored is None:
            return []
        other = (basis.name, basis.n_coords) != (stored.name, stored.n_coords)
        if basis is not stored and (
            other or np.abs(basis.matrix - stored.matrix).max() > SAME_BASIS
        ):
            raise DscError(
                f"{self.store.url}: found coordinates of the {stored.name} basis (diameter "
                f"{stored.diameter}, {stored.n_coords} coordinates), need those of the "
                f"{basis.name} basis ({basis.n_coords}): use the {stored.name} basis, or extract "
                "the patches again without materialising them"
            )
        return _rows(self.store, names, start, stop)


def open_patches(url: str | PathLike[str]) -> StoredPatches:
    """Open a patch set that `extract_patches` wrote, at a path or URL."""
    if Path(url).suffix.lower() in SUFFIXES and Path(url).is_file():
        raise DscError(
            f"{url}: found an image, need a patch set: cut patches out of it first (`dsc patches "
            f"{url} --out patches.zarr`), or learn from it with a diameter (`dsc learn --diameter "
            "11`, diameter=11)"
        )
    patches = of_store(open_store(url, "patches"))
    _check_stored(patches)
    album = open_album(patches.store)
    n_images = len(patches.store.attributes.get("image_names", ())) * patches.n_channels
    if album.n_images != n_images:
        raise DscError(
            f"{patches.store.url}: found {album.n_images} images, need {n_images}, as many as its "
            "names and channels: extract the patches again"
        )
    check_references(album)
    return patches


def of_store(store: Store) -> StoredPatches:
    """The patch set in a store, which may still be written."""
    found = store.attributes
    same = ("n_patches", "diameter", "center", "unit", "fingerprint")
    with as_written(store.url, "a patch set"):
        return StoredPatches(
            store,
            **{name: found[name] for name in same},
            rotated=found["rotated"],
            label_names=tuple(found.get("label_names", ())),
            materialized=found.get("basis"),
            start=0,
            stop=found["n_patches"],
            n_channels=found.get("n_channels", 1),
        )


def _check_stored(patches: StoredPatches) -> None:
    """Refuse a finished patch set whose attributes do not fit its arrays."""
    store = patches.store
    n_rows, known = store.shape("image")[0], store.variables
    problems = [
        f"{name}: found {value!r}, need True or False"
        for name in ("center", "unit", "rotated")
        if not isinstance(value := getattr(patches, name), bool)
    ]
    if patches.n_patches != n_rows or not isinstance(patches.n_patches, int):
        problems.append(f"n_patches: found {patches.n_patches!r}, need {n_rows}, the rows there")
    if not n_rows:
        problems.append("n_patches: found 0, need at least one")
    try:
        check_diameter(patches.diameter)
    except DscError as error:
        problems.append(str(error))
    if not all(isinstance(name, str) for name in (patches.fingerprint, *patches.label_names)):
        problems.append("fingerprint and label_names: found other values, need words")
    needed = ["rotation"] * bool(patches.rotated) + ["label"] * bool(patches.label_names)
    needed += ["coords", "rest"] if patches.materialized is not None else []
    problems += [f"array {name!r} is missing" for name in needed if name not in known]
    if type(patches.n_channels) is not int or patches.n_channels < 1:
        problems.append(f"n_channels: found {patches.n_channels!r}, need a number from 1 on")
    for name, kind in (("notes", list), ("reading", dict)):
        if not isinstance(value := store.attributes.get(name, kind()), kind):
            problems.append(f"{name}: found {value!r}, need a {kind.__name__}")
    if problems:
        raise DscError(f"{store.url}: {'; '.join(problems)}: extract the patches again")


def materialize_span(store: Store, start: int, stop: int) -> None:
    """Compute and write the coordinates of some patches, in whole chunks, of an unfinished set.

    The positions, the images and the basis are there already. A task that may run anywhere, at
    the same time as others, and again.
    """
    patches = replace(of_store(store), materialized=None)  # not those that are not there yet
    coords, rest = patches.read_with_rest(_basis(store), start, stop)
    store.write("coords", start, coords)
    store.write("rest", start, rest)


def _rows(store: Store, names: tuple[str, ...], start: int, stop: int) -> list[NDArray[Any]]:
    """Rows of arrays of a store; chunks that are read in small parts are kept for the next one."""
    chunk = store.chunks(names[0])[0]
    if start == stop or stop - start >= chunk:
        return [store.read(name, slice(start, stop)) for name in names]
    rows: list[list[NDArray[Any]]] = [[] for _ in names]
    for begin in range(start - start % chunk, stop, chunk):
        for name, parts in zip(names, rows, strict=True):
            key = (store.url, store.token, name, begin)
            if (whole := CACHE.get(key)) is None:
                whole = CACHE.put(key, store.read(name, slice(begin, begin + chunk)))
            parts.append(whole[max(start - begin, 0) : stop - begin])
    return [np.concatenate(parts) for parts in rows]
