"""Zarr arrays of others, read as images: plain arrays and the full size of an OME-Zarr."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from os import PathLike
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray

from dsc.errors import DscError
from dsc.store import normalize, read_object, reported, sha256, zarr_store

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

    def read(self, y: slice, x: slice) -> NDArray[Any]:
        """A window in the array's own type: (y, x), or (y, x, color)."""
        window: tuple[int | slice, ...] = (*self.index, y, x)
        part = f"rows {y.start} to {y.stop}, columns {x.start} to {x.stop}"
        with reported(f"{self.url}: array {self.path or '/'!r}", f"read at {part}"):
            return np.asarray(_open(self.url, self.path, self.metadata)[window])


def open_planes(url: str | PathLike[str]) -> list[Plane]:
    """All images of a Zarr array or of level 0 of an OME-Zarr.

    A 2-D array is one image, a 3-D one a stack of them, or one in color if its last axis has 3
    or 4 entries. In an OME-Zarr every time, channel and depth is an image.
    """
    place = normalize(url)
    with reported(place, "opened as Zarr"):
        node = zarr.open(zarr_store(place, read_only=True), mode="r", use_consolidated=False)
    if isinstance(node, zarr.Group):
        path = _full_size(place, dict(node.attrs))
        array, color = node.get(path), False
    else:
        path, array = "", node
        color = array.ndim == 3 and array.shape[-1] in COLORS
    if not isinstance(array, zarr.Array):
        raise DscError(f"{place}: its level 0, {path!r}, is no array")
    n_leading = array.ndim - 2 - color
    if n_leading < 0 or (n_leading > 1 and not path):
        raise DscError(
            f"{place}: found a {array.ndim}-D array, need (y, x), (image, y, x) or an OME-Zarr"
        )
    y, x = (int(size) for size in array.shape[n_leading : n_leading + 2])
    cy, cx = (int(size) for size in array.chunks[n_leading : n_leading + 2])
    digest = _metadata_hash(place, path)
    return [
        Plane(place, path, digest, index, (y, x), (cy, cx))
        for index in product(*map(range, array.shape[:n_leading]))
    ]


def _full_size(url: str, attributes: dict[str, Any]) -> str:
    """The path of level 0 in an OME-Zarr group (versions up to 0.4, and 0.5 on)."""
    if "dsc_kind" in attributes:
        raise DscError(f"{url}: found a store of {attributes['dsc_kind']}, need images")
    scales = attributes.get("ome", attributes).get("multiscales")
    try:
        level, axes = scales[0]["datasets"][0]["path"], scales[0].get("axes", "yx")
        axes = [axis if isinstance(axis, str) else axis["name"] for axis in axes]
    except (TypeError, KeyError, IndexError) as error:
        raise DscError(
            f"{url}: found a Zarr group, need an array or an OME-Zarr: name the array inside it"
        ) from error
    if axes[-2:] != ["y", "x"]:
        raise DscError(f"{url}: found axes {', '.join(axes)}, need y and x as the last two")
    return str(level)


@lru_cache(maxsize=64)
def _open(url: str, path: str, metadata: str) -> zarr.Array[Any]:
    if _metadata_hash(url, path) != metadata:
        raise DscError(
            f"{url}: array {path or '/'!r} is gone, or not the one the patches were taken from: "
            "bring it back, or extract the patches again"
        )
    return zarr.open_array(zarr_store(url, read_only=True), path=path, mode="r")


def _metadata_hash(url: str, path: str) -> str:
    prefix = f"{path}/" if path else ""
    for name in ("zarr.json", ".zarray"):
        if (text := read_object(url, prefix + name)) is not None:
            return sha256(text)
    return ""
