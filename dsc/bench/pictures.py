"""Real patches to time on: the paper's *cameraman* where it is at hand, else a CC0 picture."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from PIL import Image
from skimage import data

MIN_STD = 0.1  # the paper's filter: sample standard deviation of the square window


def bench_picture() -> tuple[str, NDArray[np.float64]]:
    """A name and a grey picture in [0, 1]."""
    folder = os.environ.get("DSC_DATA")
    if folder and (path := Path(folder) / "cameraman.tif").is_file():
        return "cameraman", np.asarray(Image.open(path)) / 255
    return "camera (CC0, scikit-image)", data.camera()[::2, ::2] / 255


def bench_patches(
    picture: NDArray[np.float64], diameter: int, n_patches: int
) -> NDArray[np.float64]:
    """Windows that pass the paper's filter, `n_patches` of them spread evenly over the picture."""
    windows = sliding_window_view(picture, (diameter, diameter)).reshape(-1, diameter, diameter)
    windows = windows[windows.std(axis=(1, 2), ddof=1) > MIN_STD]
    if len(windows) <= n_patches:
        return np.asarray(windows)
    return np.asarray(windows[np.linspace(0, len(windows) - 1, n_patches).astype(int)])
