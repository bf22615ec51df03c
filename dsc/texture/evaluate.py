"""Evaluation: fit, classify test pictures, count, compare, and write the report."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsc.dictionary.run import RunFolder
from dsc.engine import Engine, open_engine, part_tasks
from dsc.files import read_records
from dsc.patches import Picture
from dsc.report.texture import write_texture_report
from dsc.report.texture_facts import (
    cited_rows,
    other_row,
    own_row,
    report_facts,
    report_pictures,
)
from dsc.texture.config import HISTOGRAMS, TextureConfig
from dsc.texture.dataset import Labelled, label_places
from dsc.texture.fit import fit_texture
from dsc.texture.histograms import (
    Feature,
    FeatureLog,
    check_pictures,
    count_labels,
    pruned_share,
)
from dsc.texture.lbp import SCALES, lbp_histogram, lbp_side, unit_range
from dsc.texture.model import TextureModel
from dsc.texture.neighbours import chi_square, nearest

LBP_PICTURES = 16  # in a task

Progress = Callable[[dict[str, Any]], None]
Doubles = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Test pictures and what the model made of them.

    Attributes
    ----------
    model
        The classifier.
    test
        The pictures with their true classes.
    truth, predicted
        (image,) places in the model's `label_names`.
    neighbour
        (image,) the nearest training picture.
    features
        What was counted in each.
    """

    model: TextureModel
    test: Labelled
    truth: Integers
    predicted: Integers
    neighbour: Integers
    features: Sequence[Feature]

    @staticmethod
    def of(model: TextureModel, test: Labelled, features: Sequence[Feature]) -> Evaluation:
        """What the model makes of counted pictures."""
        truth = label_places(test, model.label_names)
        names = [picture.name for picture in test.pictures]
        predicted, _, neighbour = model.classify(model.describe(features, names))
        return Evaluation(model, test, truth, predicted, neighbour, features)

    def with_other_histograms(self) -> list[Evaluation]:
        """The same counts with other bins, for comparison."""
        config = self.model.config
        others = [
            replace(self.model, config=replace(config, histogram=kind))
            for kind in HISTOGRAMS
            if kind != config.histogram
        ]
        return [Evaluation.of(model, self.test, self.features) for model in others]

    @property
    def seconds(self) -> float:
        """How long labelling took, earlier sessions included."""
        return sum(feature.seconds for feature in self.features)

    @property
    def accuracy(self) -> float:
        """The share of pictures whose class is right."""
        return float((self.truth == self.predicted).mean())

    @property
    def accuracy_by_angle(self) -> list[dict[str, float]]:
        """The same for every angle; empty where angles are not known."""
        angles = np.array([np.nan if a is None else a for a in self.test.angles])
        right = self.truth == self.predicted
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
        """(true label, predicted label) pictures."""
        n_labels = len(self.model.label_names)
        pairs = self.truth * n_labels + self.predicted
        return np.bincount(pairs, minlength=n_labels**2).reshape(n_labels, n_labels)

    @property
    def pruned(self) -> float | None:
        """The share of (atom, patch) pairs whose angles were never tried; None without pruning."""
        return pruned_share(self.features, self.model.labeller)


def evaluate_model(
    model: TextureModel,
    test: Labelled,
    engine: Engine,
    log: FeatureLog | None = None,
    progress: Progress | None = None,
) -> Evaluation:
    """Classify pictures whose classes are known."""
    label_places(test, model.label_names)  # refuses unknown ones
    features = count_labels(test.pictures, model.labeller, engine, log, progress)
    return Evaluation.of(model, test, features)


def evaluate_texture(
    train: Labelled,
    test: Labelled,
    config: TextureConfig,
    run: str | Path,
    *,
    name: str,
    resume: bool = False,
    overwrite: bool = False,
    options: dict[str, Any] | None = None,
    lbp: bool = True,
    compare: Sequence[str | Path] = (),
    scheduler: Any = "threads",
    n_workers: int | None = None,
    memory_limit: str | int | None = None,
    progress: Progress = lambda _: None,
) -> dict[str, Any]:
    """Fit on `train`, classify `test`, and write the run folder with its report.

    Parameters
    ----------
    train, test
        Pictures with their classes.
    config
        The options.
    run
        Run folder. What is finished in it is not done again with `resume`; `overwrite` starts over.
    name
        Of the data, for the report.
    options
        What stands in run.toml besides the options of the model.
    lbp
        Compare with rotation-invariant local binary patterns.
    compare
        Run folders of other evaluations on the same data, for the table of methods.
    scheduler, n_workers, memory_limit, progress
        As in `fit_texture`.

    Returns
    -------
    The numbers of the report.
    """
    begin = time.perf_counter()
    folder = RunFolder(Path(run))
    earlier = sum(_spent(folder).values()) if resume else 0.0
    names = tuple(sorted({str(label) for label in train.labels}))
    same = {"suite": name, "label_names": list(names), "n_train": len(train), "n_test": len(test)}
    others = [other_row(path, same) for path in compare]
    label_places(test, names)
    check_pictures(test.pictures, config.diameter)  # before anything is learned
    with open_engine(scheduler, n_workers, memory_limit) as engine:
        model = fit_texture(
            train,
            config,
            run=run,
            resume=resume,
            overwrite=overwrite,
            options=options,
            scheduler=engine,
            progress=progress,
        )
        log = FeatureLog(folder.path / "features.jsonl", model.labeller.identity)
        done = evaluate_model(model, test, engine, log, progress)
        alike = done.with_other_histograms()
        methods = [own_row(done), *(own_row(one, "the same labels") for one in alike), *others]
        if lbp:
            methods += _lbp_rows(train, test, names, engine)
    if name.startswith("Outex"):
        methods += cited_rows()
    seconds = {"total": earlier + time.perf_counter() - begin, **_spent(folder)}
    facts = report_facts(done, train, name, methods, seconds)
    write_texture_report(Path(run) / "report", facts, report_pictures(done, train, facts))
    return facts


def _spent(folder: RunFolder) -> dict[str, float]:
    """Seconds of learning and of labelling, in all sessions of a run."""
    passes = [event for event in folder.events() if event["event"] == "iteration"]
    pictures = read_records(folder.path / "features.jsonl")
    return {
        "learning": sum(event["seconds"] for event in passes),
        "labelling": sum(record.get("seconds", 0.0) for record in pictures),
    }


def _lbp_rows(
    train: Labelled, test: Labelled, names: tuple[str, ...], engine: Engine
) -> list[dict[str, Any]]:
    """Local binary patterns with the same nearest neighbour: the smallest scale, and all.

    None where a picture is too small for the largest scale.
    """
    pictures = [*train.pictures, *test.pictures]
    if min(min(picture.shape) for picture in pictures) < lbp_side():
        return []
    parts = [tuple(pictures[i : i + LBP_PICTURES]) for i in range(0, len(pictures), LBP_PICTURES)]
    results = engine.compute(part_tasks(lbp_part, parts))
    features = np.concatenate(results)
    truth = label_places(train, names), label_places(test, names)
    rows = []
    first = SCALES[0][0] + 2  # bins of the smallest scale
    for columns, scales in ((slice(0, first), SCALES[:1]), (slice(None), SCALES)):
        a, b = features[: len(train), columns], features[len(train) :, columns]
        predicted, _ = nearest(chi_square(b, a), truth[0], len(names))
        rows.append(
            {
                "method": "LBP, rotation-invariant uniform",
                "accuracy": float((predicted == truth[1]).mean()),
                "setting": ", ".join(f"{points} points at {radius}" for points, radius in scales),
                "source": "run here, same χ² nearest neighbour",
            }
        )
    return rows


def lbp_part(pictures: tuple[Picture, ...]) -> Doubles:
    """LBP histograms of a task's pictures, each scaled to [0, 1] if it is not."""
    return np.stack([lbp_histogram(unit_range(picture.whole())) for picture in pictures])
