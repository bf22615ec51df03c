"""The pictures of a patch set, as they are stored: in stacks of one size, or by reference."""

from __future__ import annotations

import bisect
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsc.errors import DscError
from dsc.images.cache import CACHE
from dsc.images.convert import to_grey
from dsc.images.image import Picture
from dsc.images.tiles import Region, read_region, tiles_of
from dsc.patches.scan import Scan, digest
from dsc.store import Store, add_pictures
from dsc.store.foreign import Plane

CHUNK_PIXELS = 2**18  # in a chunk of a stack of small pictures

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Run:
    """Consecutive pictures of one shape.

    Attributes
    ----------
    first, count
        Which pictures.
    shape, tile
        (y, x) of each, and of its tiles.
    stack
        The array that holds them, if they are stored here.
    plane
        The one picture of a Zarr array that is referred to, otherwise.
    digests
        SHA-256 of its tiles, by which a change of that array is noticed.
    """

    first: int
    count: int
    shape: tuple[int, int]
    tile: tuple[int, int]
    stack: str | None = None
    plane: Plane | None = None
    digests: tuple[str, ...] = ()

    @property
    def chunks(self) -> tuple[int, int, int]:
        """(image, y, x) of a chunk of the stack."""
        fit = max(1, CHUNK_PIXELS // (self.tile[0] * self.tile[1]))
        whole = self.tile == self.shape
        return (min(fit, self.count) if whole else 1, *self.tile)


def make_runs(pictures: list[Picture], scans: list[Scan]) -> list[Run]:
    """Group pictures: equal shapes in a row share a stack, Zarr arrays are referred to."""
    runs: list[Run] = []
    n_stacks = 0
    for number, (picture, seen) in enumerate(zip(pictures, scans, strict=True)):
        if isinstance(picture.source, Plane):
            runs.append(
                Run(number, 1, picture.shape, picture.tile, None, picture.source, seen.digests)
            )
        elif runs and runs[-1].stack and runs[-1].shape == picture.shape:
            last = runs.pop()
            runs.append(Run(last.first, last.count + 1, last.shape, last.tile, last.stack))
        else:
            stack = f"pictures/stack_{n_stacks:05d}"
            runs.append(Run(number, 1, picture.shape, picture.tile, stack))
            n_stacks += 1
    return runs


def write_album(store: Store, runs: list[Run], pictures: list[Picture], scans: list[Scan]) -> None:
    """Write the table of the pictures, and those that are not referred to."""
    stacks = {
        run.stack.removeprefix("pictures/"): ((run.count, *run.shape), run.chunks)
        for run in runs
        if run.stack
    }
    add_pictures(store, stacks, {"runs": [asdict(run) for run in runs]})
    for run in runs:
        if run.stack is None:
            continue
        members = list(zip(pictures, scans, strict=True))[run.first : run.first + run.count]
        step = run.chunks[0]
        for begin in range(0, run.count, step):
            for number, (_, _, (y, x)) in enumerate(tiles_of(run.shape, run.tile)):
                tiles = [
                    _same_tile(picture, y, x, seen.digests[number])
                    for picture, seen in members[begin : begin + step]
                ]
                store.write(run.stack, (begin, y.start, x.start), np.stack(tiles))


def _same_tile(picture: Picture, y: slice, x: slice, expected: str) -> Floats:
    pixels = picture.read(y.start, y.stop, x.start, x.stop)
    if digest(pixels) != expected:
        raise DscError(f"{picture.name}: changed while it was being read: extract again")
    return pixels


@dataclass(frozen=True, eq=False)
class Album:
    """The pictures of a stored patch set, read by region."""

    store: Store
    runs: tuple[Run, ...]

    def run_of(self, image: int) -> Run:
        """The run that a picture belongs to."""
        return self.runs[bisect.bisect_right(self.runs, image, key=lambda run: run.first) - 1]

    def region(self, image: int, y: slice, x: slice) -> Region:
        """Rows `y` and columns `x` of a picture (and maybe more columns)."""
        run = self.run_of(image)

        def fetch(i: int, j: int) -> Floats:
            return self._tile(run, image, i, j)

        return read_region(run.shape, run.tile, fetch, y, x)

    def _tile(self, run: Run, image: int, i: int, j: int) -> Floats:
        if run.plane is not None:
            return CACHE.get((self.store, image, i, j), lambda: (self._referred(run, i, j),))[0]
        step = run.chunks[0]
        chunk, member = divmod(image - run.first, step)
        key = (self.store, run.first, chunk, i, j)
        stored: Floats = CACHE.get(key, lambda: (self._stored(run, chunk * step, i, j),))[0]
        return np.asarray(stored[member])

    def _stored(self, run: Run, begin: int, i: int, j: int) -> Floats:
        assert run.stack is not None
        y, x = i * run.tile[0], j * run.tile[1]
        part = (begin, y, x)
        selection = tuple(slice(a, a + size) for a, size in zip(part, run.chunks, strict=True))
        return np.asarray(self.store.read(run.stack, selection), np.float32)

    def _referred(self, run: Run, i: int, j: int) -> Floats:
        assert run.plane is not None
        n_columns = -(-run.shape[1] // run.tile[1])
        y, x = i * run.tile[0], j * run.tile[1]
        y1, x1 = min(y + run.tile[0], run.shape[0]), min(x + run.tile[1], run.shape[1])
        pixels = to_grey(run.plane.read(y, y1, x, x1))
        if digest(pixels) != run.digests[i * n_columns + j]:
            raise DscError(
                f"{run.plane.url}: rows {y} to {y1}, columns {x} to {x1} are not what they were "
                f"when the patches in {self.store.url} were taken from them: bring the array back, "
                "or extract the patches again"
            )
        return pixels


@lru_cache(maxsize=16)
def open_album(store: Store) -> Album:
    """The pictures of a stored patch set."""
    table: list[dict[str, Any]] = store.group_attributes("pictures")["runs"]
    return Album(store, tuple(_run(entry) for entry in table))


def _run(entry: dict[str, Any]) -> Run:
    """A run from JSON, which has lists where there were tuples."""
    plane = None if entry["plane"] is None else Plane(**_tuples(entry["plane"]))
    return Run(**{**_tuples(entry), "plane": plane})


def _tuples(entry: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(v) if isinstance(v, list) else v for name, v in entry.items()}
