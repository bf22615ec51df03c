"""Evaluation: fit, classify test images, count, and compare with local binary patterns."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dsc.dictionary import Run, RunTarget
from dsc.engine import Engine, part_tasks
from dsc.files import read_records
from dsc.images import Image
from dsc.show import Stage
from dsc.texture.config import BINS, HISTOGRAMS, TextureConfig
from dsc.texture.dataset import Dataset, label_indices
from dsc.texture.fit import fit_texture
from dsc.texture.histograms import check_images, pruned_share
from dsc.texture.lbp import SCALES, lbp_histogram, lbp_side, unit_range
from dsc.texture.model import Prediction, TextureModel
from dsc.texture.neighbours import chi_square, nearest

LBP_IMAGES = 16  # in a task

Doubles = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Method:
    """One row of a table of methods."""

    method: str  # what it is
    setting: str
    accuracy: float | None  # its share of right images; None where it is not known
    source: str  # where the number is from, for people
    group: str  # "ours", "compared" (run here on the same images) or "cited"
    suite: str  # the data that it is on


@dataclass(frozen=True, eq=False)
class Benchmark:
    """A named data set, cut into training and test images."""

    name: str
    train: Dataset
    test: Dataset

    @property
    def label_names(self) -> tuple[str, ...]:
        """The classes."""
        return tuple(sorted({str(label) for label in self.train.labels}))


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Test images and what the model made of them."""

    data: Benchmark  # the images with their true classes
    model: TextureModel  # the classifier
    truth: Integers  # (image,) indices in the model's `label_names`
    prediction: Prediction  # what the model makes of the test images
    # time in all, of learning and of labelling, earlier sessions included
    seconds: dict[str, float]

    def with_other_histograms(self) -> list[Evaluation]:
        """The same counts with other bins, for comparison."""
        config, names = self.model.config, [image.name for image in self.data.test.images]
        others = [
            replace(self.model, config=replace(config, histogram=kind))
            for kind in HISTOGRAMS
            if kind != config.histogram
        ]
        features = self.prediction.features
        return [
            replace(self, model=model, prediction=model.classify(features, names))
            for model in others
        ]

    @property
    def accuracy(self) -> float:
        """The share of images whose class is right."""
        return float((self.truth == self.prediction.labels).mean())

    @property
    def accuracy_by_angle(self) -> list[dict[str, float]]:
        """The same for every angle; empty where angles are not known."""
        angles = np.array([np.nan if a is None else a for a in self.data.test.angles])
        right = self.truth == self.prediction.labels
        return [
            {
                "angle": float(angle),
                "n": int((angles == angle).sum()),
                "accuracy": float(right[angles == angle].mean()),
            }
            for angle in np.unique(angles[~np.isnan(angles)])
        ]

    @property
    def confusion(self) -> Integers:
        """(true label, predicted label) images."""
        n_labels = len(self.model.label_names)
        pairs = self.truth * n_labels + self.prediction.labels
        return np.bincount(pairs, minlength=n_labels**2).reshape(n_labels, n_labels)

    @property
    def confused_pairs(self) -> list[tuple[str, str, int]]:
        """(true class, predicted class, images) of what is wrong, most often first."""
        names = self.model.label_names
        wrong = Counter(
            (names[t], names[p])
            for t, p in zip(self.truth, self.prediction.labels, strict=True)
            if t != p
        )
        ordered = sorted(wrong.items(), key=lambda item: (-item[1], item[0]))
        return [(true, predicted, count) for (true, predicted), count in ordered]

    @property
    def n_patches(self) -> int:
        """Patches of the test images."""
        return sum(feature.n_patches for feature in self.prediction.features)

    @property
    def patches_per_second(self) -> float:
        """How fast they were labelled."""
        return self.n_patches / sum(feature.seconds for feature in self.prediction.features)

    @property
    def pruned(self) -> float | None:
        """The share of (atom, patch) pairs passed over by a bound; None without pruning."""
        return pruned_share(self.prediction.features, self.model.labeller)

    def as_method(self, group: str, source: str) -> Method:
        """The row of this evaluation in a table of methods."""
        config = self.model.config
        return Method(
            method=f"{config.method} dictionaries, histograms of {BINS[config.histogram]}",
            setting=f"N = {config.diameter}, M = {config.n_atoms}, K = {config.sparsity}, stride "
            f"{config.stride}, {config.patches_per_image:,} patches per image",
            accuracy=self.accuracy,
            source=source,
            group=group,
            suite=self.data.name,
        )


def evaluate_texture(
    data: Benchmark,
    config: TextureConfig,
    engine: Engine,
    target: RunTarget,
) -> Evaluation:
    """Fit on the training images and classify the test images, in a run folder.

    What is finished in it is not done again when it is resumed.
    """
    begin = time.perf_counter()
    run = Run(Path(target.path))
    earlier = sum(_spent(run).values()) if target.resume and run.exists else 0.0
    truth = label_indices(data.test, data.label_names)  # refuses unknown ones
    check_images(data.test.images, config.diameter)  # before anything is learned
    with run.locked():
        model = fit_texture(data.train, config, engine, target)
        log = run.path / "features.jsonl"
        prediction = model.predict(data.test.images, engine.listening(run.log), log)
    seconds = {"total": earlier + time.perf_counter() - begin, **_spent(run)}
    return Evaluation(data, model, truth, prediction, seconds)


def _spent(run: Run) -> dict[str, float]:
    """Seconds of learning and of labelling, in all sessions of a run."""
    passes = [event for event in run.events() if event["event"] == "iteration"]
    images = read_records(run.path / "features.jsonl")
    return {
        "learning": sum(event["seconds"] for event in passes),
        "labelling": sum(record.get("seconds", 0.0) for record in images),
    }


def lbp_methods(data: Benchmark, engine: Engine) -> list[Method]:
    """Local binary patterns with the same nearest neighbour: the smallest scale, and all.

    None where an image is too small for the largest scale.
    """
    train, test, names = data.train, data.test, data.label_names
    images = [*train.images, *test.images]
    if min(min(image.shape) for image in images) < lbp_side():
        return []
    parts = [tuple(images[i : i + LBP_IMAGES]) for i in range(0, len(images), LBP_IMAGES)]
    features = np.concatenate(
        engine.compute(part_tasks(lbp_part, parts), Stage("local binary patterns", 0))
    )
    known, truth = label_indices(train, names), label_indices(test, names)
    methods = []
    first = SCALES[0][0] + 2  # bins of the smallest scale
    for columns, scales in ((slice(0, first), SCALES[:1]), (slice(None), SCALES)):
        a, b = features[: len(train), columns], features[len(train) :, columns]
        predicted, _ = nearest(chi_square(b, a), known, len(names))
        methods.append(
            Method(
                method="LBP, rotation-invariant uniform",
                setting=", ".join(f"{points} points at {radius}" for points, radius in scales),
                accuracy=float((predicted == truth).mean()),
                source="run here, same χ² nearest neighbour",
                group="compared",
                suite=data.name,
            )
        )
    return methods


def lbp_part(images: tuple[Image, ...], _: None = None) -> Doubles:
    """LBP histograms of a task's images, each scaled to [0, 1] if it is not."""
    return np.stack([lbp_histogram(unit_range(image.whole())) for image in images])
