"""Maps as xarray."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dsc.store import open_dataset
from dsc.tiling import KIND, VALUES, Tiled

if TYPE_CHECKING:
    import xarray


def maps_array(done: Tiled, channels: Sequence[str]) -> xarray.DataArray:
    """(channel, y, x) maps with named channels; those of a store are read when asked for."""
    import xarray

    names = list(channels)
    if done.store is None:
        return xarray.DataArray(done.values, dims=("channel", "y", "x"), coords={"channel": names})
    stored = open_dataset(done.store.url, KIND)[VALUES].rename(c="channel")
    return stored.assign_coords(channel=names)
