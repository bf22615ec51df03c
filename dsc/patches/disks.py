"""Where the pixels of a disk are in its window."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dsc.basis import disk_mask

Indices = NDArray[np.int64]


@lru_cache(maxsize=16)
def disk_pixels(diameter: int) -> Indices:
    """(pixel, 2): rows and columns of the disk's pixels in its window."""
    return np.argwhere(disk_mask(diameter))


def disk_offsets(diameter: int, width: int) -> Indices:
    """(pixel,): from the first pixel of a window to those of its disk, in rows of `width`."""
    dy, dx = disk_pixels(diameter).T
    return np.asarray(dy * width + dx)


def channel_offsets(diameter: int, width: int, n_channels: int) -> Indices:
    """The same in rows of `width` pixels of several channels, one channel after the other."""
    one = n_channels * disk_offsets(diameter, width)
    return np.concatenate([one + channel for channel in range(n_channels)])
