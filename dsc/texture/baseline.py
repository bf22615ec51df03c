"""Local binary patterns of the images of an evaluation, with the same nearest neighbour."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dsc.engine import Engine, part_tasks
from dsc.images import Image
from dsc.show import Notice, Stage
from dsc.texture.dataset import check_classes, label_indices
from dsc.texture.evaluate import Benchmark, Method
from dsc.texture.lbp import SCALES, lbp_histogram, lbp_side, unit_range
from dsc.texture.neighbours import chi_square, nearest

LBP_IMAGES = 16  # in a task
NAME = "LBP, rotation-invariant uniform"

Doubles = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Patterns:
    """Local binary patterns at some scales."""

    setting: str  # the scales, in words
    train: Doubles  # (image, bin) histograms of the training images
    test: Doubles  # of the test images


def lbp_patterns(data: Benchmark, engine: Engine) -> list[Patterns]:
    """Local binary patterns at the smallest scale, and at all.

    None, which is said, where an image is too small for the largest scale, or training images are
    not at hand.
    """
    if data.train is None:
        engine.report(Notice("not compared with LBP: the training images are not at hand"))
        return []
    images = [*data.train.images, *data.test.images]
    if min(min(image.shape) for image in images) < lbp_side():
        side = lbp_side()
        engine.report(Notice(f"not compared with LBP: an image is below {side} × {side} pixels"))
        return []
    parts = [tuple(images[i : i + LBP_IMAGES]) for i in range(0, len(images), LBP_IMAGES)]
    features = np.concatenate(
        engine.compute(part_tasks(lbp_part, parts), Stage("local binary patterns", 0))
    )
    train, test = features[: len(data.train)], features[len(data.train) :]
    first = slice(0, SCALES[0][0] + 2)  # bins of the smallest scale
    return [
        Patterns(
            ", ".join(f"{points} points at {radius}" for points, radius in scales),
            train[:, columns],
            test[:, columns],
        )
        for columns, scales in ((first, SCALES[:1]), (slice(None), SCALES))
    ]


def lbp_methods(data: Benchmark, patterns: list[Patterns]) -> list[Method]:
    """How well the nearest neighbour does by them."""
    if data.train is None:
        return []
    names = check_classes(data.train)
    known, truth = label_indices(data.train, names), label_indices(data.test, names)
    methods = []
    for one in patterns:
        predicted, _ = nearest(chi_square(one.test, one.train), known, len(names))
        methods.append(
            Method(
                method=NAME,
                setting=one.setting,
                accuracy=float((predicted == truth).mean()),
                source="run here, χ² nearest neighbour",
                group="compared",
                suite=data.name,
            )
        )
    return methods


def lbp_part(images: tuple[Image, ...], _: None = None) -> Doubles:
    """LBP histograms of a task's images, each scaled to [0, 1] if it is not."""
    return np.stack([lbp_histogram(unit_range(image.whole())) for image in images])
