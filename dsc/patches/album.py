"""The images of a patch set, as they are stored: in stacks of one size, or by reference."""

from __future__ import annotations

import bisect
import math
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import cached_property, lru_cache
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dsc.errors import DscError
from dsc.images import CACHE, Image, Plane, Reading, Tile, tiles_of, to_grey
from dsc.patches.kernels import MARGIN
from dsc.patches.scan import LARGEST, Scan, digest
from dsc.store import Store, add_group, as_written

if TYPE_CHECKING:
    from dsc.patches.cut import Positions

URLS = "DSC_IMAGE_URLS"
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
    channel: int | None = None  # how its pixels become values, see `Reading`
    range: tuple[float, float] | None = None

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
    for number, (image, digests) in enumerate(zip(images, _digests(scans), strict=True)):
        if isinstance(image.source, Plane):
            here = (image.shape, image.tile, None, image.source, digests)
            runs.append(Run(number, 1, *here, *image.reading))
        elif runs and runs[-1].stack and runs[-1].shape == image.shape:
            runs[-1] = replace(runs[-1], count=runs[-1].count + 1)
        else:
            stack = f"images/stack_{n_stacks:05d}"
            runs.append(Run(number, 1, image.shape, image.tile, stack))
            n_stacks += 1
    return runs


class Pixels(NamedTuple):
    """A chunk of a stack: a tile of some images of one size."""

    stack: str
    begin: int  # the place of the first of them in the stack
    tile: Tile
    members: list[tuple[Image, tuple[str, ...]]]  # with the hashes of their tiles


def write_table(store: Store, images: list[Image], scans: list[Scan]) -> list[Run]:
    """Write the table of the images; those that are not referred to are still to be written."""
    runs = _runs(images, scans)
    stacks = {
        run.stack.removeprefix("images/"): ((run.count, *run.shape), run.chunks)
        for run in runs
        if run.stack
    }
    add_group(store, "images", stacks, {"runs": [asdict(run) for run in runs]})
    return runs


def pixels_of(runs: list[Run], images: list[Image], scans: list[Scan]) -> Iterator[Pixels]:
    """The chunks of the images that are to be written."""
    digests = _digests(scans)
    for run in runs:
        if run.stack is None:
            continue
        part = slice(run.first, run.first + run.count)
        members = list(zip(images[part], digests[part], strict=True))
        step = run.chunks[0]
        for begin, tile in product(range(0, run.count, step), tiles_of(run.shape, run.tile)):
            yield Pixels(run.stack, begin, tile, members[begin : begin + step])


def write_pixels(part: Pixels, store: Store) -> None:
    """One task: write a chunk of images, if they are what they were."""
    same = [_read_same(*member, part.tile) for member in part.members]
    store.write(part.stack, (part.begin, part.tile.y.start, part.tile.x.start), np.stack(same))


def _digests(scans: list[Scan]) -> list[tuple[str, ...]]:
    """Those of the tiles of each channel of each image."""
    return [digests for seen in scans for digests in seen.digests]


def _read_same(image: Image, digests: tuple[str, ...], tile: Tile) -> Floats:
    pixels = image.read(tile.y.start, tile.y.stop, tile.x.start, tile.x.stop)
    if digest(pixels) != digests[tile.number]:
        raise DscError(f"{image.name}: changed while it was being read: extract again")
    return pixels


@dataclass(frozen=True, eq=False)
class Album:
    """The images of a stored patch set, read by region."""

    store: Store
    runs: tuple[Run, ...]

    @cached_property
    def _bounds(self) -> NDArray[np.int64]:
        """(run, 3) number of the first image, and the shape of all, of every run."""
        return np.array([(run.first, *run.shape) for run in self.runs], np.int64)

    @property
    def n_images(self) -> int:
        """Images in all, each channel counted."""
        return self.runs[-1].first + self.runs[-1].count

    def check(self, at: Positions, diameter: int, start: int, n_channels: int = 1) -> None:
        """Refuse patches that are not inside their images; `start` is the number of the first."""
        n_images = self.n_images
        image = at.image.astype(np.int64) * n_channels
        run = np.searchsorted(self._bounds[:, 0], image, side="right") - 1
        height, width = self._bounds[run.clip(0), 1:].T
        margin = 0 if at.rotation is None else MARGIN
        most = diameter + margin
        bad = (image < 0) | (image > n_images - n_channels)
        bad |= (at.y < margin) | (at.x < margin) | (at.y > height - most) | (at.x > width - most)
        if at.rotation is not None:
            bad |= ~np.isfinite(at.rotation)
        if bad.any():
            row = int(bad.argmax())
            raise DscError(
                f"{self.store.url}: found patch {start + row} at row {at.y[row]}, column "
                f"{at.x[row]} of image {at.image[row]}, need places inside of the {n_images} "
                "images: extract the patches again"
            )

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
            reading = Reading(run.channel, run.range)
            pixels = to_grey(run.plane.read(tile.y, tile.x), reading)
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
    with as_written(store.url, "the table of images"):
        table = [_tuples(entry) for entry in store.group_attributes("images")["runs"]]
        for entry in table:
            entry["plane"] = entry["plane"] and Plane(**_tuples(entry["plane"]))
        runs = tuple(Run(**entry) for entry in table)
        first = 0
        for run in runs:
            if run.first != first or not _fits(run, store):
                raise DscError(f"found images {run.first} on with a table that does not fit them")
            first += run.count
        if not runs:
            raise DscError("found no image, need at least one")
        return Album(store, runs)


def _fits(run: Run, store: Store) -> bool:
    """Whether a run is one that `write_album` writes."""
    sizes = (run.count, *run.shape, *run.tile)
    if (len(run.shape), len(run.tile)) != (2, 2):
        return False
    if not all(type(size) is int and 0 < size <= LARGEST for size in sizes):
        return False
    if run.plane is None:
        return store.shape(str(run.stack)) == (run.count, *run.shape)
    n_tiles = math.prod(-(-size // step) for size, step in zip(run.shape, run.tile, strict=True))
    same = (run.plane.shape, run.count) == (run.shape, 1)
    return same and isinstance(run.plane.url, str) and len(run.digests) == n_tiles


def check_references(album: Album) -> None:
    """Refuse to fetch images from URLs that the user did not give, which a store may name.

    Those at the store's own host or bucket are its own; others must be in the environment
    variable `DSC_IMAGE_URLS`, as beginnings of URLs with spaces between.
    """
    own = "/".join(album.store.url.split("/")[:3]) if "://" in album.store.url else None
    allowed = os.environ.get(URLS, "").split()
    for run in album.runs:
        url = "" if run.plane is None else run.plane.url
        if ("://" not in url and "::" not in url) or (own and url.startswith(f"{own}/")):
            continue
        if not any(url.startswith(beginning) for beginning in allowed):
            raise DscError(
                f"{album.store.url}: its images are at {url}, which was not given here and is not "
                f"fetched unasked: if it is the right place, set {URLS}='{url}'"
            )


def _tuples(entry: dict[str, Any]) -> dict[str, Any]:
    """The same with tuples, of which JSON makes lists."""
    return {name: tuple(v) if isinstance(v, list) else v for name, v in entry.items()}
