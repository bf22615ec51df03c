"""What restoring gives: an image in memory, or an OME-Zarr of its type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsc.engine import Engine
from dsc.images import Image
from dsc.restore.pixels import Subject
from dsc.store import Store, open_dataset
from dsc.tiling import KIND, VALUES, Output, Tiled, TileJob, Window, map_tiles


@dataclass(frozen=True, eq=False)
class Restored:
    """A restored image, and what is known of it."""

    facts: dict[str, Any]  # by name, for people and JSON
    dtype: np.dtype[Any]
    _place: NDArray[Any] | Store

    @staticmethod
    def of(subject: Subject, done: Tiled, facts: dict[str, Any]) -> Restored:
        """What the tiles of a subject have become."""
        if done.store is not None:
            return Restored(facts, subject.dtype, done.store)
        assert done.values is not None
        return Restored(facts, subject.dtype, subject.assemble(done.values))

    @property
    def array(self) -> Any:
        """(y, x) or (y, x, color) in memory; of a store (channel, y, x), read when asked for."""
        if isinstance(self._place, Store):
            stored = open_dataset(self._place.url, KIND)[VALUES].rename(c="channel")
            return stored.assign_coords(channel=self._place.attributes["channels"])
        return self._place


def keep(
    subject: Subject,
    channels: NDArray[Any],
    facts: dict[str, Any],
    out: Output,
    engine: Engine,
    name: str,
) -> Restored:
    """A restored image (channel, y, x) that is in memory, there or written to a store.

    `name` says what was done to it.
    """
    image = subject.assemble(channels)
    if out.url is None:
        return Restored(facts, subject.dtype, image)
    job = TileJob(
        name,
        copy_tile,
        None,
        margin=0,
        channels=subject.channels,
        raw=True,
        checked=False,
        dtype=subject.dtype.name,
        size=subject.image.pixel_size,
    )
    whole = Image(subject.image.name, None, subject.image.shape, image)
    done = map_tiles(whole, job, out, scheduler=engine)
    return Restored.of(subject, done, facts)


def copy_tile(window: Window, _: None) -> NDArray[Any]:
    """(channel, y, x) a tile as it is."""
    return np.moveaxis(np.atleast_3d(window.pixels), 2, 0)
