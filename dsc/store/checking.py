"""Looking at a whole store: everything that is wrong with it, not only the first thing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import product
from os import PathLike
from typing import Any

from dsc.errors import DscError
from dsc.store import manifest
from dsc.store.objects import normalize, read_object, sha256
from dsc.store.store import Store, open_store
from dsc.store.strict import MANIFEST, METADATA

_MAKERS = {"patches": "dsc patches", "codes": "dsc encode"}  # commands that make a kind again


@dataclass(frozen=True)
class Checkup:
    """What was found when everything at a path was read.

    Attributes
    ----------
    path
        What was looked at.
    kind
        What it is: "run", or the kind of a store.
    n_checked
        How many files and records were compared with their checksums.
    bad
        Everything that is missing or damaged, a line each.
    saved
        What can still be used, and how.
    """

    path: str
    kind: str
    n_checked: int
    bad: tuple[str, ...] = ()
    saved: tuple[str, ...] = ()

    @property
    def good(self) -> bool:
        """Whether nothing is bad."""
        return not self.bad

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {"good": self.good, **asdict(self)}


def check_store(url: str | PathLike[str]) -> Checkup:
    """Read every chunk of every array of a store, and list all that is bad."""
    place = normalize(url)
    try:
        found, token = manifest.read_manifest(place)
    except DscError as error:
        return _without_manifest(place, error)
    bad = [
        f"{place}: {key} is {'missing' if text is None else 'damaged'}"
        for key, digest in found.metadata.items()
        if (text := read_object(place, key)) is None or sha256(text) != digest
    ]
    n_checked = 1 + len(found.metadata)
    if not bad:  # then they are as they were finished; do they make a store of this kind?
        try:
            open_store(place)
        except DscError as error:
            bad.append(str(error))
    store, whole = Store(place, found.kind, token), []
    for name in found.chunks:
        problems = list(_each_chunk(store, name, found.chunks[name]))
        n_checked += len(problems)
        some = [text for text in problems if text]
        whole += [name] * (not some)
        bad += dict.fromkeys(some)
    return Checkup(place, found.kind, n_checked, tuple(bad), _saved(found, whole) if bad else ())


def _each_chunk(store: Store, name: str, counts: list[int]) -> Iterator[str]:
    """Of every chunk of an array, also in a shard, what is wrong with it, empty for nothing."""
    try:
        steps = store.chunks(name)
    except Exception as error:  # whatever zarr raises is the metadata's fault
        yield f"{store.url}: array {name!r} cannot be opened: {_line(error)}"
        return
    for index in product(*map(range, counts)):
        place = zip(index, steps, strict=False)
        try:
            store.read(name, tuple(slice(i * step, (i + 1) * step) for i, step in place))
        except DscError as error:
            yield _line(error)
        else:
            yield ""


def _without_manifest(place: str, error: DscError) -> Checkup:
    """A store whose manifest is missing or damaged; what is no store at all is refused."""
    kind = manifest.own_kind(place)
    if kind is None and read_object(place, MANIFEST) is None:
        raise error
    again = f"make it again: {_MAKERS[kind]} replaces it" if kind in _MAKERS else "make it again"
    return Checkup(place, kind or "store", 1, (_line(error),), (f"nothing of it: {again}",))


def _saved(found: manifest.Manifest, whole: list[str]) -> tuple[str, ...]:
    again = _MAKERS.get(found.kind, "what made it")
    arrays = ", ".join(whole) if whole else "none"
    return (
        f"{len(whole)} of {len(found.chunks)} arrays are whole: {arrays}",
        f"copy the store again, or remove it ({METADATA} last) and run {again} again",
    )


def _line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
