"""Files of microscopes (CZI, LIF, ND2), plane by plane: by bioio, of the extra `formats`."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dsc.errors import DscError
from dsc.images.limits import WHOLE, check_count, check_decoded
from dsc.images.reading import Stack

# The module of each, and what reads a plane: that of LIF would read all planes, but for Dask.
READERS = {
    ".czi": ("bioio_czi", "get_image_data"),
    ".lif": ("bioio_lif", "get_image_dask_data"),
    ".nd2": ("bioio_nd2", "get_image_data"),
}
_lock = Lock()  # a reader has a state


class Scene(NamedTuple):
    """A scene or position of a file: planes along further axes."""

    axes: str  # such as TCZ
    sizes: tuple[int, ...]
    shape: tuple[int, int]  # (y, x)
    colors: str  # S if a pixel has several values
    is_mosaic: bool  # whether a plane is joined from tiles
    by_window: bool  # whether only the tiles that a window touches are read
    channel_names: tuple[str, ...]


def probe_microscope(path: Path) -> list[tuple[int, tuple[int, int]]]:
    """(page, (y, x)) of every plane of every scene in a file, without its pixels."""
    shapes = [scene.shape for scene in _scenes(path) for _ in range(math.prod(scene.sizes))]
    return list(enumerate(shapes))


def microscope_stack(path: Path) -> Stack:
    """How the planes of a file are stacked, if its scenes have the same axes."""
    scenes = _scenes(path)
    first = scenes[0]
    if any(scene[:2] != first[:2] for scene in scenes):
        return Stack((), ())
    axes = ("scene", *first.axes.lower())
    return Stack(axes, (len(scenes), *first.sizes), first.channel_names)


def decode_microscope(path: Path, page: int) -> NDArray[Any]:
    """The pixels of one plane: (y, x) or (y, x, channel), in their own type."""
    number, scene, index = _plane(path, page)
    if scene.is_mosaic:
        return _read_mosaic(path, page, slice(None), slice(None))
    with _lock:
        reader = _reader(path, *_stamp(path))
        reader.set_scene(number)
        read = getattr(reader, READERS[path.suffix.lower()][1])
        pixels = read(f"YX{scene.colors}", **index)
        if not isinstance(pixels, np.ndarray):
            pixels = pixels.compute(scheduler="synchronous")
    if pixels.shape[:2] != scene.shape:
        raise DscError(f"found a plane of shape {pixels.shape}, need {scene.shape}, as it says")
    return np.asarray(pixels)


def open_mosaic(path: Path, page: int) -> Callable[[slice, slice], NDArray[Any]] | None:
    """What reads a window of a large mosaic; None if the plane is decoded as a whole."""
    return partial(_read_mosaic, path, page) if _plane(path, page)[1].by_window else None


def _read_mosaic(path: Path, page: int, y: slice, x: slice) -> NDArray[Any]:
    number, scene, index = _plane(path, page)
    with _lock:
        reader = _reader(path, *_stamp(path))
        reader.set_scene(number)
        plane = reader.mosaic_xarray_dask_data.isel(**index).transpose("Y", "X", *scene.colors)
        return np.asarray(plane.data[y, x].compute(scheduler="synchronous"))


def _plane(path: Path, page: int) -> tuple[int, Scene, dict[str, int]]:
    """The number of the scene of a page, the scene, and where the page is along its axes."""
    for number, scene in enumerate(_scenes(path)):
        n_planes = math.prod(scene.sizes)
        if page < n_planes:
            index = np.unravel_index(page, scene.sizes) if scene.sizes else ()
            return number, scene, dict(zip(scene.axes, map(int, index), strict=True))
        page -= n_planes
    raise DscError(f"found {page} planes fewer than before: extract the patches again")


def _stamp(path: Path) -> tuple[int, int]:
    """Time and size of a file, which make another call of another file."""
    status = path.stat()
    return status.st_mtime_ns, status.st_size


def _scenes(path: Path) -> tuple[Scene, ...]:
    with _lock:
        return _list_scenes(path, *_stamp(path))


@lru_cache(maxsize=16)
def _list_scenes(path: Path, *stamp: int) -> tuple[Scene, ...]:
    reader = _reader(path, *stamp)
    scenes = []
    for number in range(len(reader.scenes)):
        reader.set_scene(number)
        scenes.append(_scene(reader))
    check_count(sum(math.prod(scene.sizes) for scene in scenes))
    return tuple(scenes)


def _scene(reader: Any) -> Scene:
    """The scene that a reader is at."""
    sizes = {axis: int(n) for axis, n in zip(reader.dims.order, reader.dims.shape, strict=True)}
    if not {"Y", "X"} <= sizes.keys():
        raise DscError(f"found axes {reader.dims.order}, need Y and X among them")
    n_tiles, n_colors = sizes.pop("M", 1), sizes.pop("S", 0)
    shape, n_bytes = (sizes.pop("Y"), sizes.pop("X")), np.dtype(reader.dtype).itemsize
    n_bytes *= max(n_colors, 1)
    check_decoded(math.prod(shape) * n_bytes, "an image" if n_tiles == 1 else "tiles")
    if n_tiles > 1:
        whole = reader.mosaic_xarray_dask_data.sizes
        shape = (int(whole["Y"]), int(whole["X"]))
    by_window = n_tiles > 1 and math.prod(shape) * n_bytes > WHOLE
    names = tuple(map(str, reader.channel_names or ()))
    colors = "S" * (n_colors > 0)
    return Scene(
        "".join(sizes), tuple(sizes.values()), shape, colors, n_tiles > 1, by_window, names
    )


@lru_cache(maxsize=4)
def _reader(path: Path, *_: int) -> Any:
    suffix = path.suffix.lower()
    try:
        module = importlib.import_module(READERS[suffix][0])
    except ImportError as error:
        kind = suffix[1:].upper()
        raise DscError(
            f"found a {kind} file, need bioio for it: pip install 'dsc[formats]'"
        ) from error
    return module.Reader(path)
