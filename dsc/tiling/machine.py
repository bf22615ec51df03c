"""The tile machine: a function of windows over an image, on any scheduler, with the same bits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsc.engine import Engine, open_engine, part_tasks, readable
from dsc.errors import DscError
from dsc.images import Image, PixelSize, Tile, tiles_of
from dsc.show import Notice, Stage, percent
from dsc.store import Store, remove_store
from dsc.tiling.output import Output, identity_of, ome_metadata
from dsc.tiling.schema import MEANS, MEASURES, VALUES
from dsc.tiling.sums import CELL, Sums, cell_sums, merge_cells
from dsc.tiling.windows import Window, check_finite, cut_window, image_identity

TILE = 256  # pixels across a tile, at most; a power of two times CELL
TASKS = 4  # tiles per thread, at least, while they are not smaller than SMALL
SMALL = 128
BOUNDS = 3  # numbers kept of a map: its sum, its least and its largest value

Maps = NDArray[Any]  # (map, y, x)
TileFunction = Callable[[Window, Any], Maps | tuple[Maps, Maps]]
Measure = Callable[[Window, Maps], Maps]
Finish = Callable[[NDArray[np.float32], Any], NDArray[Any]]


@dataclass(frozen=True, eq=False)
class TileJob:
    """What is done with each tile.

    Attributes
    ----------
    name
        What it does, in words for people, such as "rebuild the image".
    function
        Module-level `function(window, step)`: (map, y, x) of the window's tile, alone or with its
        measures (measure, y, x).
    step
        What all tiles share; it travels to other processes.
    margin
        Pixels around a tile that its values depend on.
    channels
        Names of the maps.
    pixel_bytes
        Memory that the function takes for each pixel of a window.
    measure
        Module-level `measure(window, maps)`: measures, of which only sums, least and largest values
        are kept; not if the function gives them.
    n_measures
        How many measures a store has of each tile, so that a resumed run has those of all; 0 if
        `measure` gives them again.
    finish
        Module-level `finish(maps, step)`: what is kept of float32 maps, in `dtype`, once they are
        measured; by default they are kept as they are.
    identity
        What of `step` decides the values, as text: by it an unfinished store is continued.
    tile
        Pixels across a tile; by default as memory and threads ask.
    raw
        Whether windows have the pixels in their own type, instead of grey values.
    checked
        Whether pixels that are no finite numbers are refused, before anything is written.
    missing
        Whether NaN is a missing pixel, which is not refused. The first map is NaN where it has no
        value.
    beside
        A second image of the same shape: windows have it, too.
    dtype
        Type of the maps.
    ome
        More of the metadata that viewers of OME-Zarr read, such as the colors of labels.
    means
        Whether a store has the mean of each map, too.
    size
        Size of the pixels; by default that of the image.
    """

    name: str
    function: TileFunction
    step: Any
    margin: int
    channels: tuple[str, ...]
    pixel_bytes: int = 64
    measure: Measure | None = None
    n_measures: int = 0
    finish: Finish | None = None
    identity: str = ""
    tile: int | None = None
    raw: bool = False
    checked: bool = True
    missing: bool = False
    beside: Image | None = None
    dtype: str = "float32"
    ome: dict[str, Any] = field(default_factory=dict)
    means: bool = False
    size: PixelSize | None = None

    def cut(self, image: Image, y: slice, x: slice) -> Window:
        """What the function sees of a tile."""
        window = cut_window(image, y, x, self.margin, self.raw, self.beside)
        if self.checked:
            check_finite(window, image.name, self.missing)
        return window


@dataclass(frozen=True, eq=False)
class Tiled:
    """The maps of an image.

    Attributes
    ----------
    values
        (channel, y, x); None if they are in a store.
    store
        The finished store, None if they are in memory.
    sums, low, high
        (map,) of all maps, then of the measures: the sum over the image, the least and the largest
        value.
    n_missing
        Pixels at which the first map is NaN.
    n_pixels
        Pixels of the image.
    """

    values: NDArray[Any] | None
    store: Store | None
    sums: Sums
    low: Sums
    high: Sums
    n_missing: int
    n_pixels: int

    @property
    def means(self) -> Sums:
        """(map,) means over the pixels that are not missing."""
        return self.sums / max(1, self.n_pixels - self.n_missing)


@dataclass(frozen=True, eq=False)
class _Shared:
    """What all tasks share."""

    job: TileJob
    image: Image | None  # None where tiles bring their pixels
    place: NDArray[Any] | Store | None  # where values go; None if they are returned
    resume: bool


@dataclass(frozen=True, eq=False)
class _Part:
    """One tile: rows and columns, and the pixels around it if they are in memory."""

    y: slice
    x: slice
    window: Window | None


@dataclass(frozen=True, eq=False)
class _Done:
    """What a task returns."""

    sums: Sums
    low: Sums
    high: Sums
    n_missing: int
    values: NDArray[Any] | None


def map_tiles(
    image: Image, job: TileJob, out: Output | None = None, **engine_options: Any
) -> Tiled:
    """Maps of an image, tile by tile.

    Parameters
    ----------
    image
        The image, wherever it is; one that is no array is read by window.
    job
        What is done with each tile.
    out
        Where the maps go; None keeps them in memory.
    **engine_options
        scheduler, n_workers, memory_limit, progress, patience and tls, as in `dsc.learn_many`.

    The values do not depend on the size of the tiles if those of a tile are a function of the
    pixels up to `job.margin` away.
    """
    out = out or Output()
    out.check(image)
    with open_engine(**engine_options) as engine:
        tile = _tile_size(image, job, engine, in_memory=out.url is None)
        if out.url is None:
            done = _run(image, replace(job, tile=tile), engine, None, False)
            _tell_missing(image, job, done, engine)
            return done
        if job.checked:
            _check_pixels(image, tile, job, engine)
        shape = (len(job.channels), *image.shape)
        about, n_numbers = _attributes(image, job), BOUNDS * job.n_measures
        store = out.open(shape, job.dtype, tile, about, n_numbers, job.means)
        if out.resume:  # in the tiles it was begun with; those of a small image end with it
            tile = CELL * _power_of_two(-(-max(store.chunks(VALUES)[1:]) // CELL))
        with store.writing():
            done = _run(image, replace(job, tile=tile), engine, store, out.resume)
            try:
                _tell_missing(image, job, done, engine)
            except DscError:
                remove_store(store.url)  # to resume it would not help
                raise
            shown = slice(len(job.channels))
            size = job.size or image.pixel_size
            seen = ome_metadata(job.name, job.channels, done.low[shown], done.high[shown], size)
            if job.means:
                store.write(MEANS, 0, done.means[shown])
            store.describe({"ome": {**seen, **job.ome}})
            return replace(done, store=store.finish())


def _tell_missing(image: Image, job: TileJob, done: Tiled, engine: Engine) -> None:
    """Say how much of the maps has no value; refuse them if that is all."""
    n_pixels = image.shape[0] * image.shape[1]
    if not (job.missing and done.n_missing):
        return
    if done.n_missing == n_pixels:
        raise DscError(
            f"{image.name}: found missing pixels (NaN) in every disk, need some without: fill them "
            "with `inpaint`"
        )
    share = percent(done.n_missing / n_pixels)
    engine.report(
        Notice(f"{image.name}: no value (NaN) at {share} of the pixels: `inpaint` fills them")
    )


def _check_pixels(image: Image, tile: int, job: TileJob, engine: Engine) -> None:
    """Refuse pixels that are no numbers before anything is written, or replaced."""
    tiles = list(tiles_of(image.shape, (tile, tile)))
    how = (image, job.raw, job.missing)
    if image.in_memory:
        for one in tiles:
            check_tile(one, how)
    else:
        stage = Stage("look at the pixels", image.shape[0] * image.shape[1])
        engine.compute(part_tasks(check_tile, tiles, how), stage)


def check_tile(tile: Tile, shared: tuple[Image, bool, bool]) -> None:
    """One task of the look at all pixels."""
    image, raw, missing = shared
    check_finite(cut_window(image, tile.y, tile.x, 0, raw), image.name, missing)


def _run(image: Image, job: TileJob, engine: Engine, store: Store | None, resume: bool) -> Tiled:
    """Compute all tiles, and put together what is kept in memory."""
    tile = job.tile
    assert tile is not None
    travels = engine.is_cluster and image.in_memory
    tiles = list(tiles_of(image.shape, (tile, tile)))
    parts = [_Part(t.y, t.x, job.cut(image, t.y, t.x) if travels else None) for t in tiles]
    if travels:
        job = replace(job, beside=None)
    values = None
    if store is None:
        values = np.empty((len(job.channels), *image.shape), job.dtype)
    place = values if store is None and not engine.is_cluster else store
    shared = _Shared(job, None if travels else image, place, resume)
    stage = Stage(job.name, image.shape[0] * image.shape[1])
    results: Sequence[_Done] = engine.compute(part_tasks(run_tile, parts, shared), stage)
    if values is not None:
        for part, done in zip(parts, results, strict=True):
            if done.values is not None:
                values[:, part.y, part.x] = done.values
    grid = [-(-n // tile) for n in image.shape]
    sums = np.stack([done.sums for done in results], -1)  # (map, tile)
    return Tiled(
        values,
        None,
        merge_cells(sums.reshape(len(sums), *grid))[:, 0, 0],
        np.fmin.reduce([done.low for done in results]),
        np.fmax.reduce([done.high for done in results]),
        sum(done.n_missing for done in results),
        image.shape[0] * image.shape[1],
    )


def run_tile(part: _Part, shared: _Shared) -> _Done:
    """One task: read the window, apply the function, keep what it gives."""
    job, place = shared.job, shared.place
    assert job.tile is not None
    window = part.window
    if window is None:
        assert shared.image is not None
        window = job.cut(shared.image, part.y, part.x)
    kept, seen = _written(part, shared)
    if kept is None:
        found = job.function(window, job.step)
        maps, measures = found if isinstance(found, tuple) else (found, None)
        maps = maps.astype(np.float32 if job.finish else job.dtype, copy=False)
        seen = _measured(window, maps, job) if measures is None else _bounds(measures, job.tile)
        kept = maps if job.finish is None else np.asarray(job.finish(maps, job.step), job.dtype)
        if isinstance(place, Store):
            if job.n_measures:
                at = (0, part.y.start // job.tile, part.x.start // job.tile)
                place.write(MEASURES, at, seen.reshape(-1, 1, 1))
            place.write(VALUES, (0, part.y.start, part.x.start), kept)
    elif seen is None:
        seen = _measured(window, kept, job)
    if isinstance(place, np.ndarray):
        place[:, part.y, part.x] = kept
    sums, low, high = np.concatenate([_bounds(kept, job.tile), seen], 1)
    n_missing = int(np.isnan(kept[0]).sum()) if job.missing else 0
    return _Done(sums, low, high, n_missing, kept if place is None else None)


def _measured(window: Window, maps: NDArray[Any], job: TileJob) -> Sums:
    """(3, measure) the bounds of what is measured of a tile."""
    assert job.tile is not None
    if job.measure is None:
        return np.empty((BOUNDS, 0))
    return _bounds(np.asarray(job.measure(window, maps)), job.tile)


def _bounds(maps: NDArray[Any], tile: int) -> Sums:
    """(3, map) the sum, the least and the largest value of each map of a tile."""
    sums = merge_cells(cell_sums(maps), (tile // CELL).bit_length() - 1)[..., 0, 0]
    low, high = (bound.reduce(maps, (1, 2)) for bound in (np.fmin, np.fmax))
    return np.stack([sums, low, high]).astype(np.float64)


def _written(part: _Part, shared: _Shared) -> tuple[NDArray[Any] | None, Sums | None]:
    """What an earlier run wrote of a tile, and its measures if they are kept.

    None if it is not there, or not whole.
    """
    job, store = shared.job, shared.place
    if not (shared.resume and isinstance(store, Store)):
        return None, None
    assert job.tile is not None
    row, column = part.y.start // job.tile, part.x.start // job.tile
    every = slice(0, BOUNDS * job.n_measures), slice(row, row + 1), slice(column, column + 1)
    try:
        seen = store.read(MEASURES, every).reshape(BOUNDS, -1) if job.n_measures else None
        return store.read(VALUES, (slice(0, len(job.channels)), part.y, part.x)), seen
    except DscError:
        return None, None


def _attributes(image: Image, job: TileJob) -> dict[str, Any]:
    return {
        "channels": list(job.channels),
        "identity": identity_of(
            job.name, job.identity, *(image_identity(i) for i in (image, job.beside) if i)
        ),
    }


def _tile_size(image: Image, job: TileJob, engine: Engine, in_memory: bool) -> int:
    """Pixels across a tile: tiles for all threads, and each within the memory of one."""
    resources = engine.resources
    memory = resources.memory
    if in_memory:
        kept = _map_bytes(job) * image.shape[0] * image.shape[1]
        memory -= kept
        if memory < 0:
            raise DscError(
                f"{image.name}: its {len(job.channels)} maps take {readable(kept)}, but "
                f"{resources.memory_of} has {readable(resources.memory)}: write them to a store "
                "(out=…), or give more memory"
            )
    tile = job.tile or TILE
    while job.tile is None and tile > SMALL and _n_tiles(image, tile) < TASKS * resources.n_threads:
        tile //= 2
    while (size := _window_bytes(image, job, tile)) > memory // resources.n_threads:
        if tile <= CELL:
            raise DscError(
                f"memory_limit: one tile of {CELL} × {CELL} pixels takes {readable(size)} for each "
                f"of {resources.n_threads} threads, but {resources.memory_of} has "
                f"{readable(max(0, memory))}: use fewer threads, or give more memory"
            )
        tile //= 2
    if tile % CELL or tile != CELL * _power_of_two(tile // CELL):
        raise DscError(f"tile: found {tile}, need {CELL}, or twice, four times … as much")
    return tile


def _n_tiles(image: Image, tile: int) -> int:
    return -(-image.shape[0] // tile) * -(-image.shape[1] // tile)


def _window_bytes(image: Image, job: TileJob, tile: int) -> int:
    """Memory of a running task: its window, and what the function makes of it."""
    sides = [min(size, tile + 2 * job.margin) for size in image.shape]
    return sides[0] * sides[1] * (4 + _map_bytes(job) + job.pixel_bytes)


def _map_bytes(job: TileJob) -> int:
    return len(job.channels) * np.dtype(job.dtype).itemsize


def _power_of_two(value: int) -> int:
    return 1 << max(0, value - 1).bit_length()
