"""Training images of several suites, cut into known and unseen ones, and how unseen ones are seen.

Nothing but training images of a suite is used. An unseen image is looked at upright, rotated,
nearer or farther, and under another light, all of it made from its pixels.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage
from skimage import data as free
from skimage.color import rgb2gray

from dsc.experiments.data import LabelledImage
from dsc.experiments.textures import rotated_grid
from dsc.images import Image, open_images
from dsc.texture import Dataset, part_of, read_inputs, split_dataset

OUTEX = ("Outex_TC_00010", "Outex_tl84")
FREE = (  # photographs with texture that come with scikit-image, free to use
    "brick", "grass", "gravel", "immunohistochemistry", "hubble_deep_field", "moon", "chelsea",
    "coffee", "retina", "camera",
)  # fmt: skip
SIDE = 96  # pixels across the squares that free photographs are cut into
SQUARES = 12  # of each, at most
ANGLES = (20.0, 50.0, 80.0)  # degrees
SCALES = (0.75, 4 / 3)  # times as large, and rotated by the angle below
SCALED_ANGLE = 35.0
GAMMAS = (0.6, 1.6)  # powers of the grey values, under a light that falls off along x
LIGHT = (1.3, 0.5)  # of its strongest and weakest
UPRIGHT, ROTATED, SCALED, LIT = VIEWS = ("upright", "rotated", "scaled", "lit")

Grey = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Halves:
    """The training images of a suite: to learn from, and unseen."""

    name: str
    known: Dataset
    unseen: Dataset

    def views(self) -> Iterator[tuple[str, list[Image]]]:
        """The name of a view, and all unseen images in it."""
        yield UPRIGHT, list(self.unseen.images)
        greys = [np.asarray(image.whole(), np.float64) for image in self.unseen.images]
        for angle in ANGLES:
            yield ROTATED, open_images([resampled(grey, angle, 1.0) for grey in greys])
        for scale in SCALES:
            yield SCALED, open_images([resampled(grey, SCALED_ANGLE, scale) for grey in greys])
        for gamma in GAMMAS:
            yield LIT, open_images([relit(grey, gamma) for grey in greys])


def suites(n_classes: int | None, outex: bool = True) -> Iterator[Halves]:
    """Both halves of every suite at hand, each half known in turn; `outex`: not only free ones."""
    for name in OUTEX if outex else ():
        folder = Path(os.environ.get("DSC_DATA", "")) / name
        if os.environ.get("DSC_DATA") and folder.is_dir():
            data = read_inputs(folder)
            names = sorted({str(label) for label in data.labels})[:n_classes]
            keep = np.flatnonzero([label in names for label in data.labels])
            yield from _halves(name, part_of(data, keep))
    yield from _halves("free photographs", free_squares(n_classes))


def _halves(name: str, data: Dataset) -> Iterator[Halves]:
    first, second = split_dataset(data, 0.5)
    yield Halves(name, first, second)
    yield Halves(name, second, first)


def free_squares(n_classes: int | None) -> Dataset:
    """Squares of free photographs, a class each."""
    cuts: list[Grey] = []
    labels: list[str] = []
    for name in FREE[:n_classes]:
        photo = getattr(free, name)()
        grey = np.asarray(rgb2gray(photo) if photo.ndim == 3 else photo / 255, np.float32)
        places = [
            (y, x)
            for y in range(0, grey.shape[0] - SIDE + 1, SIDE)
            for x in range(0, grey.shape[1] - SIDE + 1, SIDE)
            if grey[y : y + SIDE, x : x + SIDE].std() > 0.02
        ]
        rng = np.random.default_rng(len(labels))
        for y, x in (places[i] for i in np.sort(rng.permutation(len(places))[:SQUARES])):
            cuts.append(grey[y : y + SIDE, x : x + SIDE])
            labels.append(name)
    return read_inputs(cuts, labels)


def resampled(grey: NDArray[np.floating], angle: float, scale: float) -> Grey:
    """The middle of an image, rotated (degrees) and so many times as large, by a spline.

    As large as fits into the image at any angle. What becomes smaller is blurred first.
    """
    step = 1 / scale
    y, x = rotated_grid(int(min(grey.shape) / np.sqrt(2) / max(1.0, step)), angle)
    blurred = ndimage.gaussian_filter(np.asarray(grey, np.float64), 0.5 * max(0.0, step - 1))
    height, width = grey.shape
    at = LabelledImage("", blurred).at(step * y + (height - 1) / 2, step * x + (width - 1) / 2)
    return at.astype(np.float32)


def relit(grey: NDArray[np.floating], gamma: float) -> Grey:
    """An image under a light that falls off along x, seen by a camera of another gamma."""
    light = np.linspace(*LIGHT, grey.shape[1])
    return np.asarray((np.clip(grey, 0, 1) ** gamma * light).clip(0, 1), np.float32)
