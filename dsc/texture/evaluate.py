"""Evaluation: fit, classify test images, and count."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsc.dictionary import Run, RunTarget
from dsc.engine import Engine, numerics_fingerprint
from dsc.files import read_records
from dsc.show import Notice
from dsc.store import sha256
from dsc.texture.config import BINS, HISTOGRAMS, TextureConfig
from dsc.texture.dataset import Dataset, check_classes, label_indices, with_contents
from dsc.texture.deciding import check_classifier
from dsc.texture.fit import fit_texture
from dsc.texture.histograms import check_images, pruned_share
from dsc.texture.model import Prediction, TextureModel
from dsc.texture.parts import check_apart

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
    train: Dataset | None  # None where the model was fitted before, and they are not at hand
    test: Dataset


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
    def predictions(self) -> list[dict[str, Any]]:
        """What every test image is taken for, in their order, as plain values.

        With the name of the nearest training image, and the distances by class.
        """
        names, made = self.model.label_names, self.prediction
        likely = self.model.probabilities(made)
        return [
            {
                "image": image.name,
                "true": names[self.truth[i]],
                "predicted": names[made.labels[i]],
                "probability": float(likely[i, made.labels[i]]),
                "nearest": self.model.image_names[made.neighbours[i]],
                "distances": dict(zip(names, made.distances[i].tolist(), strict=True)),
            }
            for i, image in enumerate(self.data.test.images)
        ]

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
        return pruned_share(self.prediction.features, self.model.labellers)

    def as_method(self, group: str, source: str) -> Method:
        """The row of this evaluation in a table of methods."""
        config = self.model.config
        return Method(
            method=f"{config.method} dictionaries, histograms of {BINS[config.histogram]}",
            setting=f"N = {config.sizes}, M = {config.n_atoms}, K = {config.sparsity}, stride "
            f"{config.stride}, {config.patches_per_image:,} patches per image, {config.classifier}"
            + (", norm one" if config.unit else "")
            + (", rotated as in the paper" if config.rotations == "paper" else ""),
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
    assert data.train is not None
    run = Run(Path(target.path))
    earlier = sum(_spent(run).values()) if target.resume and run.exists else 0.0
    truth = label_indices(data.test, check_classes(data.train))  # refuses unknown ones
    check_images(data.test.images, max(config.diameter))  # before anything is learned
    train, test = with_contents(data.train, engine), with_contents(data.test, engine)
    check_apart(test, [image.name for image in train.images], train.contents)
    with run.locked():
        model = fit_texture(train, config, engine, target)
        log = run.path / "features.jsonl"
        prediction = model.predict(data.test.images, engine.listening(run.log), log)
    seconds = {"total": earlier + time.perf_counter() - begin, **_spent(run)}
    return Evaluation(data, model, truth, prediction, seconds)


def evaluate_model(
    model: TextureModel, data: Benchmark, engine: Engine, target: RunTarget
) -> Evaluation:
    """Classify the test images with a fitted model; nothing is learned.

    The run folder has the counted images, by which it is resumed, and at the end the model, too.
    """
    begin = time.perf_counter()
    truth = label_indices(data.test, model.label_names)
    check_classifier(model.config.classifier)
    check_images(data.test.images, model.labellers.diameter)
    if model.image_contents:
        check_apart(with_contents(data.test, engine), model.image_names, model.image_contents)
    else:
        text = "the model is of an earlier version: whether it has learned from test images, it "
        engine.report(Notice(f"{text}cannot tell"))
    identity = {
        "model": {"atoms_sha256": model.sha256, "order": model.order, **asdict(model.config)},
        "test": {"images": sha256("".join(data.test.hashes).encode()), "order": data.test.order},
        "numerics": numerics_fingerprint(),
    }
    earlier = Run(Path(target.path))
    spent = _spent(earlier)["labelling"] if target.resume and earlier.exists else 0.0
    with Run.begin(target, identity, logs=["features.jsonl"]) as run:
        last = {"histogram": model.config.histogram, "classifier": model.config.classifier}
        run.write_options({**target.options, **last})
        log = run.path / "features.jsonl"
        prediction = model.predict(data.test.images, engine.listening(run.log), log)
        if not run.finished:
            model.save(run.model)
    labelling = _spent(run)["labelling"]
    seconds = {"total": spent + time.perf_counter() - begin, "labelling": labelling}
    return Evaluation(data, model, truth, prediction, seconds)


def _spent(run: Run) -> dict[str, float]:
    """Seconds of learning and of labelling, in all sessions of a run."""
    passes = [event for event in run.events() if event["event"] == "iteration"]
    images = read_records(run.path / "features.jsonl")
    return {
        "learning": sum(event["seconds"] for event in passes),
        "labelling": sum(record.get("seconds", 0.0) for record in images),
    }
