"""Images to time on: the paper's where they are at hand, else CC0 ones of about their size."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from PIL import Image
from skimage import data

MIN_STD = 0.1  # the paper's filter; gives its 17,330 and 396,855 patches exactly
PAPER_FILES = {  # the paper's images in the folder DSC_DATA
    "cameraman": "cameraman.tif",
    "net": "brodatz_D103.gif",
    "textures": "Outex_tl84/000/train.txt",
}

Grey = NDArray[np.float64]


def paper_file(name: str) -> Path | None:
    """The file of an image of the paper, if it is at hand."""
    path = Path(os.environ.get("DSC_DATA", "")) / PAPER_FILES[name]
    return path if os.environ.get("DSC_DATA") and path.is_file() else None


def read_cameraman() -> tuple[str, Grey]:
    """Name and grey values in [0, 1]."""
    if path := paper_file("cameraman"):
        return "cameraman", np.asarray(Image.open(path)) / 255
    return "camera (CC0, scikit-image)", data.camera()[::2, ::2] / 255


def net_file(folder: Path) -> tuple[str, Path]:
    """Name and file; the one in its place is written into the folder."""
    if path := paper_file("net"):
        return "net (Brodatz D103)", path
    path = folder / "gravel.png"
    Image.fromarray(data.gravel()).save(path)
    return "gravel (CC0, scikit-image)", path


def cut_windows(image: Grey, diameter: int, n_patches: int) -> Grey:
    """Windows that pass the paper's filter, `n_patches` of them spread evenly over the image."""
    windows = sliding_window_view(image, (diameter, diameter)).reshape(-1, diameter, diameter)
    windows = windows[windows.std(axis=(1, 2), ddof=1) > MIN_STD]
    if len(windows) > n_patches:
        windows = windows[np.linspace(0, len(windows) - 1, n_patches).astype(int)]
    return np.asarray(windows)
