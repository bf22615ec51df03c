"""Zarr arrays of others, read as images: plain arrays and the full size of an OME-Zarr."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
import zarr
from numpy.typing import NDArray
from zarr.abc.buffer import Buffer
from zarr.storage import LocalStore

from dsc.errors import DscError
from dsc.images.limits import check_count, check_decoded
from dsc.images.reading import Stack
from dsc.images.shards import Shards, missing_chunk
from dsc.store import CheckedStore, normalize, read_object, reported, sha256, zarr_store

_METADATA = ("zarr.json", ".zarray", ".zattrs", ".zgroup", ".zmetadata")
COLORS = (3, 4)  # length of a last axis that is taken for red, green, blue (and alpha)


@dataclass(frozen=True)
class Plane:
    """One image inside a Zarr array that is not ours."""

    url: str  # the Zarr store, and the array in it ("" if the store is the array)
    path: str
    metadata: str  # SHA-256 of the array's metadata, by which a change is noticed
    index: tuple[int, ...]  # where the image is along the leading axes
    shape: tuple[int, int]  # (y, x) of the image and of the array's chunks
    chunks: tuple[int, int]
    missing_as_fill: bool = False  # whether a chunk that is not there has the array's fill value

    def read(self, y: slice, x: slice) -> NDArray[Any]:
        """A window in the array's own type: (y, x), or (y, x, color)."""
        window: tuple[int | slice, ...] = (*self.index, y, x)
        part = f"rows {y.start} to {y.stop}, columns {x.start} to {x.stop}"
        with reported(f"{self.url}: array {self.path or '/'!r}", f"read at {part}"):
            array = _open(self.url, self.path, self.metadata, self.missing_as_fill)
            if array.shards is not None and not self.missing_as_fill:
                _shards(self.url, self.path, self.metadata).check(window)
            return np.asarray(array[window])


class PixelSize(NamedTuple):
    """How large a pixel is and where the first one lies, (y, x), as an OME-Zarr says it."""

    scale: tuple[float, float]
    translation: tuple[float, float] = (0.0, 0.0)
    units: tuple[str, str] = ("", "")  # such as "micrometer"; empty if not known


def pixel_size_of(plane: Plane) -> PixelSize | None:
    """The size of the pixels of a level of an OME-Zarr; None if it says nothing that is valid."""
    try:
        node = zarr.open_group(
            zarr_store(plane.url, read_only=True), mode="r", use_consolidated=False
        )
        about = dict(node.attrs)
        image: Any = about.get("ome", about)["multiscales"][0]  # type: ignore[call-overload,index]
        (level,) = (one for one in image["datasets"] if one["path"] == plane.path)
        y, x = image["axes"][-2:]
        steps = [level["coordinateTransformations"], image.get("coordinateTransformations", [])]
        scale, origin = np.ones(2), np.zeros(2)
        for step in (one for some in steps for one in some):
            if step["type"] == "scale":
                factor = np.array(step["scale"][-2:], float)
                scale, origin = scale * factor, origin * factor
            elif step["type"] == "translation":
                origin = origin + np.array(step["translation"][-2:], float)
        if not (np.isfinite([*scale, *origin]).all() and (scale > 0).all()):
            return None
        (sy, sx), (oy, ox) = scale.tolist(), origin.tolist()
        return PixelSize((sy, sx), (oy, ox), (str(y.get("unit", "")), str(x.get("unit", ""))))
    except (FileNotFoundError, AttributeError, KeyError, IndexError, TypeError, ValueError):
        return None


def path_of(array: Any) -> str | None:
    """Where a Zarr array is that is open already; None if it is in no folder, or no Zarr array."""
    if not (isinstance(array, zarr.Array) and isinstance(array.store, LocalStore)):
        return None
    return str(array.store.root / array.path)


def open_planes(
    url: str | PathLike[str], missing_as_fill: bool = False, level: int = 0
) -> tuple[list[Plane], Stack]:
    """All images of a Zarr array or of a level of an OME-Zarr, and how they are stacked.

    A 2-D array is one image, a 3-D one a stack of them, or one in color if its last axis has 3
    or 4 entries. In an OME-Zarr every time, channel and depth is an image. A chunk that is not
    there is an error when it is read, unless it shall have the array's fill value.
    """
    place = normalize(url)
    with reported(place, "opened as Zarr"):
        node = zarr.open(zarr_store(place, read_only=True), mode="r", use_consolidated=False)
    if isinstance(node, zarr.Group):
        path, axes, names = _level_of(place, dict(node.attrs), level)
        array, color = node.get(path), False
    else:
        path, array, axes, names = "", node, (), ()
        color = array.ndim == 3 and array.shape[-1] in COLORS
        if level:
            raise DscError(f"level: found {level}, need 0: {place} is an array, no OME-Zarr")
    if not isinstance(array, zarr.Array):
        raise DscError(f"{place}: its level {level}, {path!r}, is no array")
    n_leading = array.ndim - 2 - color
    if n_leading < 0 or (n_leading > 1 and not path):
        raise DscError(
            f"{place}: found a {array.ndim}-D array, need (y, x), (image, y, x) or an OME-Zarr"
        )
    check_count(math.prod(array.shape[:n_leading]))
    check_decoded(math.prod(array.chunks) * array.dtype.itemsize, "chunks")
    y, x = (int(size) for size in array.shape[n_leading : n_leading + 2])
    cy, cx = (int(size) for size in array.chunks[n_leading : n_leading + 2])
    digest = _metadata_hash(place, path)
    planes = [
        Plane(place, path, digest, index, (y, x), (cy, cx), missing_as_fill)
        for index in product(*map(range, array.shape[:n_leading]))
    ]
    return planes, Stack(axes[:n_leading], array.shape[:n_leading], names)


def _level_of(
    url: str, attributes: dict[str, Any], level: int
) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """Path, axes and names of channels of a level of an OME-Zarr (up to 0.4, and 0.5 on)."""
    if "dsc_kind" in attributes and "ome" not in attributes:
        raise DscError(f"{url}: found a store of {attributes['dsc_kind']}, need images")
    about = attributes.get("ome", attributes)
    scales = about.get("multiscales")
    try:
        paths, axes = [one["path"] for one in scales[0]["datasets"]], scales[0].get("axes", "yx")
        axes = [axis if isinstance(axis, str) else axis["name"] for axis in axes]
        channels = about.get("omero", {}).get("channels", [])
        names = tuple(str(channel.get("label", "")) for channel in channels)
        _ = paths[0]
    except (TypeError, KeyError, IndexError, AttributeError) as error:
        raise DscError(
            f"{url}: found a Zarr group, need an array or an OME-Zarr: name the array inside it"
        ) from error
    if axes[-2:] != ["y", "x"]:
        raise DscError(f"{url}: found axes {', '.join(axes)}, need y and x as the last two")
    if level >= len(paths):
        raise DscError(f"level: found {level}, need at most {len(paths) - 1}: those of {url}")
    return str(paths[level]), tuple(axes), names


class _WholeStore(CheckedStore):
    """A Zarr store whose chunks must be there: Zarr would read others as the fill value."""

    def _checked(self, key: str, value: Buffer | None) -> Buffer | None:
        if value is None and key.rsplit("/", 1)[-1] not in _METADATA:
            raise missing_chunk(self._url, f"chunk {key}")
        return value


@lru_cache(maxsize=64)
def _open(url: str, path: str, metadata: str, missing_as_fill: bool) -> zarr.Array[Any]:
    if _metadata_hash(url, path) != metadata:
        raise DscError(
            f"{url}: array {path or '/'!r} is gone, or not the one the patches were taken from: "
            "bring it back, or extract the patches again"
        )
    store = zarr_store(url, read_only=True)
    whole = store if missing_as_fill else _WholeStore(store, url)
    return zarr.open_array(whole, path=path, mode="r")


@lru_cache(maxsize=64)
def _shards(url: str, path: str, metadata: str) -> Shards:
    return Shards.of(url, path, _open(url, path, metadata, False))


def _metadata_hash(url: str, path: str) -> str:
    prefix = f"{path}/" if path else ""
    for name in ("zarr.json", ".zarray"):
        if (text := read_object(url, prefix + name)) is not None:
            return sha256(text)
    return ""
