"""Evaluation: fit, classify test pictures, count, compare, and write the report."""

from __future__ import annotations

import json
import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsc.engine import Engine, open_engine, part_tasks
from dsc.errors import DscError
from dsc.model.runs import RunFolder
from dsc.patches import Picture
from dsc.texture.config import TextureConfig
from dsc.texture.features import Feature, FeatureLog, count_labels, histograms
from dsc.texture.fit import fit_texture
from dsc.texture.inputs import Labelled
from dsc.texture.lbp import SCALES, lbp_histogram
from dsc.texture.model import TextureModel
from dsc.texture.neighbours import chi_square, nearest
from dsc.texture.page import KIND, ClassMap, ConfusedPair, Pictures, write_texture_report
from dsc.version import __version__

N_MAPS = 6  # pictures whose class map is shown
N_PAIRS = 8  # most confused pairs shown with pictures
LBP_PICTURES = 16  # in a task
CITED = (  # what the paper prints for Outex_TC_00010, whose lamp is another one
    ("standard K-SVD", 0.44, "M = 100, N = 11, K = 3"),
    ("augmented K-SVD", 0.56, "M = 100, N = 15, K = 1"),
    ("DenseNet169", 0.9983, ""),
)

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
    seconds
        How long labelling took.
    """

    model: TextureModel
    test: Labelled
    truth: Integers
    predicted: Integers
    neighbour: Integers
    features: Sequence[Feature]
    seconds: float

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
        if self.model.config.sparsity > 1:
            return None
        n_atoms = self.model.atoms.shape[0] * self.model.atoms.shape[1]
        n_patches = sum(feature.n_patches for feature in self.features)
        evaluated = sum(feature.evaluated for feature in self.features)
        return float(1 - evaluated / (n_patches * n_atoms))


def evaluate_model(
    model: TextureModel,
    test: Labelled,
    engine: Engine,
    log: FeatureLog | None = None,
    progress: Progress | None = None,
) -> Evaluation:
    """Classify pictures whose classes are known."""
    truth = check_labels(test, model.label_names)
    begin = time.perf_counter()
    features = count_labels(test.pictures, model.labeller, engine, log, progress)
    seconds = time.perf_counter() - begin
    shares = histograms(features, [picture.name for picture in test.pictures])
    predicted, _, neighbour = model.classify(shares)
    return Evaluation(model, test, truth, predicted, neighbour, features, seconds)


def check_labels(data: Labelled, label_names: Sequence[str]) -> Integers:
    """The classes of pictures as places in `label_names`, refused if the model has not seen one."""
    unknown = sorted({str(label) for label in data.labels if label not in label_names})
    if unknown:
        raise DscError(
            f"labels: found {', '.join(unknown)}, which the model has not learned; need some of "
            f"{', '.join(label_names)}"
        )
    return np.array([label_names.index(str(label)) for label in data.labels], np.int64)


def evaluate_texture(
    train: Labelled,
    test: Labelled,
    config: TextureConfig,
    run: str | Path,
    *,
    name: str,
    resume: bool = False,
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
        Run folder. What is finished in it is not done again with `resume`.
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
    others = [_other(path, name) for path in compare]
    names = tuple(sorted({str(label) for label in train.labels}))
    check_labels(test, names)
    spent = {"learning": 0.0}

    def watch(event: dict[str, Any]) -> None:
        spent["learning"] += event["seconds"] if "iteration" in event else 0.0
        progress(event)

    with open_engine(scheduler, n_workers, memory_limit) as engine:
        model = fit_texture(
            train, config, run=run, resume=resume, options=options, scheduler=engine, progress=watch
        )
        log = FeatureLog(RunFolder(Path(run)).path / "features.jsonl", model.labeller.identity)
        done = evaluate_model(model, test, engine, log, progress)
        methods = [_own_row(done), *others]
        if lbp:
            started = time.perf_counter()
            methods += _lbp_rows(train, test, names, engine)
            spent["lbp"] = time.perf_counter() - started
    if name.startswith("Outex"):
        methods += [
            {
                "method": method,
                "accuracy": accuracy,
                "setting": setting,
                "source": "the paper, on Outex_TC_00010: cited, not run",
            }
            for method, accuracy, setting in CITED
        ]
    seconds = {"total": time.perf_counter() - begin, **spent, "labelling the test": done.seconds}
    facts = _facts(done, train, name, methods, seconds)
    write_texture_report(Path(run) / "report", facts, _pictures(done, train, facts))
    return facts


def _own_row(done: Evaluation) -> dict[str, Any]:
    config = done.model.config
    return {
        "method": f"{config.method} dictionaries",
        "accuracy": done.accuracy,
        "setting": f"N = {config.diameter}, M = {config.n_atoms}, K = {config.sparsity}, stride "
        f"{config.stride}, {config.patches_per_image:,} patches per picture",
        "source": "this run",
    }


def _other(path: str | Path, name: str) -> dict[str, Any]:
    """The row of another evaluation."""
    file = Path(path) / "report" / "report.json"
    try:
        facts = json.loads(file.read_text(encoding="utf-8"))
        row: dict[str, Any] = {**facts["methods"][0], "source": f"the run {Path(path).name}"}
    except (OSError, ValueError, KeyError, IndexError, TypeError) as error:
        raise DscError(f"compare: found no report of an evaluation at {file}") from error
    if facts.get("suite") != name:
        raise DscError(f"compare: {path} is of {facts.get('suite')}, need one of {name}")
    return row


def _facts(
    done: Evaluation,
    train: Labelled,
    name: str,
    methods: list[dict[str, Any]],
    seconds: dict[str, float],
) -> dict[str, Any]:
    model = done.model
    names = model.label_names
    wrong = Counter(
        (names[t], names[p]) for t, p in zip(done.truth, done.predicted, strict=True) if t != p
    )
    n_patches = sum(feature.n_patches for feature in done.features)
    return {
        "kind": KIND,
        "title": f"Texture classification of {name}",
        "suite": name,
        "data": f"{len(train)} training and {len(done.test)} test pictures of {name}",
        "config": {**asdict(model.config), "n_angles": model.labeller.n_angles},
        "label_names": list(names),
        "n_train": len(train),
        "n_test": len(done.test),
        "accuracy": done.accuracy,
        "accuracy_by_angle": done.accuracy_by_angle,
        "confusion": done.confusion.tolist(),
        "confused_pairs": [
            {"true": t, "predicted": p, "count": count}
            for (t, p), count in sorted(wrong.items(), key=lambda item: (-item[1], item[0]))
        ],
        "methods": methods,
        "seconds": seconds,
        "patches_per_second": n_patches / done.seconds,
        "n_patches_labelled": n_patches + _n_windows(train, model),
        "pruned": done.pruned,
        "atoms_sha256": model.sha256,
        "numerics": model.numerics,
        "version": __version__,
        "history": model.history.tolist(),
    }


def _n_windows(data: Labelled, model: TextureModel) -> int:
    return sum(math.prod(model.labeller.grid(picture.shape)) for picture in data.pictures)


def _pictures(done: Evaluation, train: Labelled, facts: dict[str, Any]) -> Pictures:
    model = done.model
    order = np.argsort(-model.count, axis=1, kind="stable")
    side = model.basis.diameter
    images = model.basis.to_image(model.atoms.reshape(-1, model.basis.n_coords))
    images = images.reshape(*model.count.shape, side, side)
    return Pictures(
        atoms=np.take_along_axis(images, order[:, :, None, None], axis=1),
        count=np.take_along_axis(model.count, order, axis=1),
        maps=[_map(done, place) for place in _shown_places(done)],
        confused=[_pair(done, train, pair) for pair in facts["confused_pairs"][:N_PAIRS]],
    )


def _shown_places(done: Evaluation) -> list[int]:
    """Test pictures to show: some that are wrong, then one of each class while there is room."""
    wrong = np.flatnonzero(done.truth != done.predicted)[: N_MAPS // 2].tolist()
    right = np.flatnonzero(done.truth == done.predicted)
    _, first = np.unique(done.truth[right], return_index=True)
    step = max(1, len(first) // N_MAPS)
    return [*wrong, *right[first][::step].tolist()][:N_MAPS]


def _map(done: Evaluation, place: int) -> ClassMap:
    model, picture = done.model, done.test.pictures[place]
    labels, _ = model.labeller.label_picture(picture)
    return ClassMap(
        name=picture.name,
        true=model.label_names[done.truth[place]],
        predicted=model.label_names[done.predicted[place]],
        grey=read_whole(picture),
        labels=labels,
        offset=model.basis.diameter // 2,
        stride=model.config.stride,
    )


def _pair(done: Evaluation, train: Labelled, pair: dict[str, Any]) -> ConfusedPair:
    names = done.model.label_names
    true, predicted = names.index(pair["true"]), names.index(pair["predicted"])
    place = int(np.flatnonzero((done.truth == true) & (done.predicted == predicted))[0])
    query, near = done.test.pictures[place], train.pictures[done.neighbour[place]]
    example = train.pictures[train.labels.index(pair["true"])]
    return ConfusedPair(
        true=pair["true"],
        predicted=pair["predicted"],
        count=pair["count"],
        query=read_whole(query),
        query_name=query.name,
        nearest=read_whole(near),
        nearest_name=near.name,
        true_example=read_whole(example),
    )


def read_whole(picture: Picture) -> NDArray[np.float32]:
    """All grey values of a picture."""
    return picture.read(0, picture.shape[0], 0, picture.shape[1])


def _lbp_rows(
    train: Labelled, test: Labelled, names: tuple[str, ...], engine: Engine
) -> list[dict[str, Any]]:
    """Local binary patterns with the same nearest neighbour: the smallest scale, and all."""
    pictures = [*train.pictures, *test.pictures]
    parts = [tuple(pictures[i : i + LBP_PICTURES]) for i in range(0, len(pictures), LBP_PICTURES)]
    results = engine.compute(part_tasks(lbp_part, parts))
    features = np.concatenate(results)
    truth = check_labels(train, names), check_labels(test, names)
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
    return np.stack([lbp_histogram(_unit_range(read_whole(picture))) for picture in pictures])


def _unit_range(grey: NDArray[np.float32]) -> NDArray[np.float32]:
    low, high = float(grey.min()), float(grey.max())
    return grey if low >= 0 and high <= 1 else (grey - low) / (high - low)
