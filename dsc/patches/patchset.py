"""`as_source`: anything that holds patches, as a `PatchSource`."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from dsc.errors import DscError
from dsc.patches.arrays import ArrayPatches
from dsc.patches.source import PatchSource
from dsc.patches.stored import open_patches

_METHODS = ("part", "pixels", "read", "read_with_rest")


def as_source(patches: Any) -> PatchSource:
    """A source of patches.

    Parameters
    ----------
    patches
        A source; the path or URL of a patch set; or an array (patch, y, x) of NumPy, Dask, Zarr or
        xarray, whose values are taken as they are.

    Examples
    --------
    >>> import numpy as np
    >>> as_source(np.zeros((4, 11, 11))).n_patches
    4
    """
    if all(callable(getattr(type(patches), name, None)) for name in _METHODS):
        source: PatchSource = patches
        return source
    if isinstance(patches, str | os.PathLike):
        return open_patches(patches)
    if isinstance(patches, list | tuple):
        patches = np.asarray(patches)
    if hasattr(patches, "data_vars"):
        raise DscError(
            "patches: found an xarray dataset, need one array (patch, y, x) of it, or the path of "
            "a patch set"
        )
    if not (hasattr(patches, "shape") and hasattr(patches, "dtype")):
        raise DscError(
            f"patches: found {type(patches).__name__}, need a patch set or its path, or an array "
            "(patch, y, x) of NumPy, Dask, Zarr or xarray"
        )
    return ArrayPatches(patches)
