"""Trials of `texture-bins`: what is counted in training images that a model has not learned from.

The dictionaries are learned from half of the training images; the other half is labelled as it
is, rotated by a spline, and rotated with a part of the patches, as strides of 2 and 4 leave.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dsc.bench import PAPER_FILES, paper_file
from dsc.engine import Engine, open_engine
from dsc.experiments.data import LabelledImage, check_paper
from dsc.experiments.textures import rotated_grid, write_suite
from dsc.images import Image, open_images
from dsc.texture import (
    Dataset,
    TextureConfig,
    count_labels,
    fit_texture,
    joined_counts,
    label_indices,
    read_inputs,
)

SUITE = PAPER_FILES["textures"].split("/")[0]
ANGLES = (20.0, 50.0, 80.0)  # degrees
STRIDES = (2, 4)  # of stride² patches one is kept
UPRIGHT, ROTATED = "upright", "rotated"
PARTS = {ROTATED: 1} | {f"rotated, 1 of {n**2} patches": n**2 for n in STRIDES}
COLUMNS = (UPRIGHT, *PARTS)

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Size:
    """How large the experiment is."""

    config: TextureConfig
    n_classes: int | None
    n_seeds: int
    neighbours: tuple[int, ...]


LARGE = TextureConfig(diameter=(15,), unit=False, patches_per_image=2000)
SMALL = replace(LARGE, n_atoms=4, diameter=(7,), patches_per_image=200, stride=3, n_iterations=3)
FULL = Size(LARGE, None, 2, (2, 5))
QUICK = Size(SMALL, 4, 1, (1, 3))


@dataclass(frozen=True, eq=False)
class Trial:
    """Images that were learned from, and the others."""

    # (image,) and (image, label, atom): classes and counts of the images learned from
    known_label: Integers
    known_count: Integers
    places: Integers  # (image,) of the other images: their places among all, and their classes
    truth: Integers
    upright: Integers  # (image, label, atom): their counts as they are, and at every angle
    rotated: tuple[Integers, ...]

    def comparisons(self) -> Iterator[tuple[str, Integers, Integers]]:
        """The column, the counts of images, and those of their neighbours."""
        rng = np.random.default_rng(1)
        yield UPRIGHT, self.upright, self.known_count
        for counts in self.rotated:
            for column, part in PARTS.items():
                yield column, _thin(counts, part, rng), _thin(self.known_count, part, rng)


def run_trials(data: Dataset, size: Size) -> Iterator[Trial]:
    """Learn from each half for every seed."""
    with open_engine(progress=False) as engine:
        for seed in range(size.n_seeds):
            for half in (0, 1):
                yield _trial(data, half, replace(size.config, seed=seed), engine)


def _trial(data: Dataset, half: int, config: TextureConfig, engine: Engine) -> Trial:
    places = np.arange(len(data))
    learned, unseen = places[places % 2 == half], places[places % 2 != half]
    model = fit_texture(_some(data, learned), config, engine)
    held = _some(data, unseen)

    def counted(images: Sequence[Image]) -> Integers:
        features = count_labels(images, model.labellers, engine)
        names = [image.name for image in images]
        found: Integers = joined_counts(features, names, model.labellers)[0]
        return found

    greys = [image.whole() for image in held.images]
    rotated = (open_images([rotated_middle(grey, angle) for grey in greys]) for angle in ANGLES)
    return Trial(
        model.image_label,
        model.image_count[0],
        unseen,
        label_indices(held, model.label_names),
        counted(held.images),
        tuple(counted(images) for images in rotated),
    )


def _some(data: Dataset, places: Integers) -> Dataset:
    columns = (data.images, data.labels, data.angles)
    return Dataset(*(tuple(column[i] for i in places) for column in columns))


def rotated_middle(grey: NDArray[np.floating], angle: float) -> NDArray[np.float32]:
    """The largest square that stays inside an image at any angle, rotated about its middle."""
    y, x = rotated_grid(int(min(grey.shape) / np.sqrt(2)), angle)
    height, width = grey.shape
    image = LabelledImage("", grey.astype(np.float64))
    return image.at(y + (height - 1) / 2, x + (width - 1) / 2).astype(np.float32)


def _thin(counts: Integers, part: int, rng: np.random.Generator) -> Integers:
    """What is counted in a random part of the patches; at least one."""
    if part == 1:
        return counts
    thin = rng.binomial(counts, 1 / part)
    thin[thin.sum(axis=(1, 2)) == 0, 0, 0] = 1
    return thin


@contextmanager
def open_textures(choice: str, n_classes: int | None) -> Iterator[tuple[str, Dataset]]:
    """The training images of the suite, or drawn ones in their place."""
    if choice == "paper":
        check_paper(["textures"])
    train = paper_file("textures")
    if train is not None and choice in ("auto", "paper"):
        data = read_inputs(train.parents[1])
        names = sorted({str(label) for label in data.labels})[:n_classes]
        keep = np.flatnonzero([label in names for label in data.labels])
        yield f"{SUITE}, {len(keep)} training images of {len(names)} classes", _some(data, keep)
        return
    with tempfile.TemporaryDirectory() as scratch:
        suite = write_suite(Path(scratch) / "suite", n_train=12, n_test=1, angles=(0,), size=48)
        data = read_inputs(suite)
        yield f"synthetic, {len(data)} training images of 4 classes", data
