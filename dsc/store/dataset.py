"""Stores as xarray datasets."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING

from dsc.store.store import open_store

if TYPE_CHECKING:
    import xarray


def open_dataset(url: str | PathLike[str], kind: str | None = None) -> xarray.Dataset:
    """Open any store of ours as a dataset with named dimensions.

    Arrays are read from the store when they are asked for, and checked as they are read.

    Parameters
    ----------
    url
        A local path or a URL.
    kind
        Refuse other kinds than this one.
    """
    import xarray  # takes a while, and few processes need it

    store = open_store(url, kind)
    dataset: xarray.Dataset = xarray.open_zarr(
        store.zarr(), consolidated=False, chunks=None, zarr_format=3
    )
    return dataset
