"""The images of a patch set, as they are stored: in stacks of one size, or by reference."""

from __future__ import annotations

import bisect
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dsc.errors import DscError
from dsc.images import CACHE, Image, Plane, Tile, tiles_of, to_grey
from dsc.patches.scan import Scan, digest
from dsc.store import Store, add_group

CHUNK_PIXELS = 2**18  # in a chunk of a stack of small images

Floats = NDArray[np.float32]


class Region(NamedTuple):
    """A window of an image, C-contiguous, and the place of its first pixel."""

    pixels: Floats
    y: int
    x: int


@dataclass(frozen=True)
class Run:
    """Consecutive images of one shape."""

    first: int  # which images
    count: int
    shape: tuple[int, int]  # (y, x) of each, and of its tiles
    tile: tuple[int, int]
    stack: str | None = None  # the array that holds them, if they are stored here
    plane: Plane | None = None  # the one image of a Zarr array that is referred to, otherwise
    digests: tuple[str, ...] = ()  # SHA-256 of its tiles, by which a change is noticed

    @property
    def chunks(self) -> tuple[int, int, int]:
        """(image, y, x) of a chunk of the stack."""
        fit = max(1, CHUNK_PIXELS // (self.tile[0] * self.tile[1]))
        whole = self.tile == self.shape
        return (min(fit, self.count) if whole else 1, *self.tile)


def _runs(images: list[Image], scans: list[Scan]) -> list[Run]:
    """Group images: equal shapes in a row share a stack, Zarr arrays are referred to."""
    runs: list[Run] = []
    n_stacks = 0
    for number, (image, seen) in enumerate(zip(images, scans, strict=True)):
        if isinstance(image.source, Plane):
            runs.append(Run(number, 1, image.shape, image.tile, None, image.source, seen.digests))
        elif runs and runs[-1].stack and runs[-1].shape == image.shape:
            runs[-1] = replace(runs[-1], count=runs[-1].count + 1)
        else:
            stack = f"images/stack_{n_stacks:05d}"
            runs.append(Run(number, 1, image.shape, image.tile, stack))
            n_stacks += 1
    return runs


def write_album(store: Store, images: list[Image], scans: list[Scan]) -> None:
    """Write the table of the images, and those that are not referred to."""
    runs = _runs(images, scans)
    stacks = {
        run.stack.removeprefix("images/"): ((run.count, *run.shape), run.chunks)
        for run in runs
        if run.stack
    }
    add_group(store, "images", stacks, {"runs": [asdict(run) for run in runs]})
    for run in runs:
        if run.stack is None:
            continue
        members = list(zip(images, scans, strict=True))[run.first : run.first + run.count]
        step = run.chunks[0]
        for begin, tile in product(range(0, run.count, step), tiles_of(run.shape, run.tile)):
            same = [_read_same(*member, tile) for member in members[begin : begin + step]]
            store.write(run.stack, (begin, tile.y.start, tile.x.start), np.stack(same))


def _read_same(image: Image, seen: Scan, tile: Tile) -> Floats:
    pixels = image.read(tile.y.start, tile.y.stop, tile.x.start, tile.x.stop)
    if digest(pixels) != seen.digests[tile.number]:
        raise DscError(f"{image.name}: changed while it was being read: extract again")
    return pixels


@dataclass(frozen=True, eq=False)
class Album:
    """The images of a stored patch set, read by region."""

    store: Store
    runs: tuple[Run, ...]

    def run_of(self, image: int) -> Run:
        """The run that an image belongs to."""
        return self.runs[bisect.bisect_right(self.runs, image, key=lambda run: run.first) - 1]

    def region(self, image: int, y: slice, x: slice) -> Region:
        """Rows `y` and columns `x` of an image (and maybe more columns)."""
        run = self.run_of(image)
        first, *others = tiles_of(run.shape, run.tile, y, x)
        if not others:
            rows = slice(y.start - first.y.start, y.stop - first.y.start)
            pixels = np.ascontiguousarray(self._read_tile(run, image, first)[rows])
            return Region(pixels, y.start, first.x.start)
        pixels = np.empty((y.stop - y.start, x.stop - x.start), np.float32)
        for tile in (first, *others):
            here, there = tile.shared(y, x)
            pixels[here] = self._read_tile(run, image, tile)[there]
        return Region(pixels, y.start, x.start)

    def _read_tile(self, run: Run, image: int, tile: Tile) -> Floats:
        if run.stack is not None:  # a chunk holds this tile of several small images
            step = run.chunks[0]
            begin, member = divmod(image - run.first, step)
            key = (self.store.url, self.store.token, run.stack, begin, tile.number)
            if (stack := CACHE.get(key)) is None:
                part = (slice(begin * step, (begin + 1) * step), tile.y, tile.x)
                stack = CACHE.put(key, self.store.read(run.stack, part))
            return np.asarray(stack[member])
        assert run.plane is not None
        key = (self.store.url, self.store.token, "plane", image, tile.number)
        if (pixels := CACHE.get(key)) is None:
            pixels = to_grey(run.plane.read(tile.y, tile.x))
            if digest(pixels) != run.digests[tile.number]:
                raise DscError(
                    f"{run.plane.url}: rows {tile.y.start} to {tile.y.stop}, columns "
                    f"{tile.x.start} to {tile.x.stop} are not what they were when the patches in "
                    f"{self.store.url} were taken from them: bring the array back, or extract the "
                    "patches again"
                )
            CACHE.put(key, pixels)
        return pixels


@lru_cache(maxsize=16)
def open_album(store: Store) -> Album:
    """The images of a stored patch set."""
    table = [_tuples(entry) for entry in store.group_attributes("images")["runs"]]
    for entry in table:
        entry["plane"] = entry["plane"] and Plane(**_tuples(entry["plane"]))
    return Album(store, tuple(Run(**entry) for entry in table))


def _tuples(entry: dict[str, Any]) -> dict[str, Any]:
    """The same with tuples, of which JSON makes lists."""
    return {name: tuple(v) if isinstance(v, list) else v for name, v in entry.items()}
