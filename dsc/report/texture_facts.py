"""What the report of an evaluation shows: its numbers and its pictures."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dsc.errors import DscError
from dsc.report.texture import KIND
from dsc.report.texture_images import ClassMap, ConfusedPair, Pictures
from dsc.texture.config import BINS
from dsc.texture.dataset import Labelled
from dsc.texture.model import TextureModel
from dsc.version import __version__

if TYPE_CHECKING:
    from dsc.texture.evaluate import Evaluation

N_MAPS = 6  # pictures whose class map is shown
N_PAIRS = 8  # most confused pairs shown with pictures
CITED = (  # what the paper prints for Outex_TC_00010, whose lamp is another one
    ("standard K-SVD", 0.44, "M = 100, N = 11, K = 3"),
    ("augmented K-SVD", 0.56, "M = 100, N = 15, K = 1"),
    ("DenseNet169", 0.9983, ""),
    ("FV-CNN, other CNNs, the literature", None, ""),  # in its table, which is not repeated here
)


def cited_rows() -> list[dict[str, Any]]:
    """Accuracies that the paper prints, for the table of methods."""
    return [
        {
            "method": method,
            "accuracy": accuracy,
            "setting": setting,
            "source": "the paper, on Outex_TC_00010: cited, not run",
        }
        for method, accuracy, setting in CITED
    ]


def own_row(done: Evaluation, source: str = "this run") -> dict[str, Any]:
    """The row of an evaluation in the table of methods."""
    config = done.model.config
    return {
        "method": f"{config.method} dictionaries, histograms of {BINS[config.histogram]}",
        "accuracy": done.accuracy,
        "setting": f"N = {config.diameter}, M = {config.n_atoms}, K = {config.sparsity}, stride "
        f"{config.stride}, {config.patches_per_image:,} patches per picture",
        "source": source,
    }


def other_row(path: str | Path, data: dict[str, Any]) -> dict[str, Any]:
    """The row of another evaluation."""
    file = Path(path) / "report" / "report.json"
    try:
        facts = json.loads(file.read_text(encoding="utf-8"))
        row: dict[str, Any] = {**facts["methods"][0], "source": f"the run {Path(path).name}"}
    except (OSError, ValueError, KeyError, IndexError, TypeError) as error:
        raise DscError(f"compare: found no report of an evaluation at {file}") from error
    found = {key: facts.get(key) for key in data}
    if found != data:
        raise DscError(
            f"compare: {path} is of other pictures ({found}), need those of this run ({data})"
        )
    return row


def report_facts(
    done: Evaluation,
    train: Labelled,
    name: str,
    methods: list[dict[str, Any]],
    seconds: dict[str, float],
) -> dict[str, Any]:
    """All numbers of the report."""
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
        "data": f"{len(train):,} training and {len(done.test):,} test pictures of {name}",
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


def report_pictures(done: Evaluation, train: Labelled, facts: dict[str, Any]) -> Pictures:
    """Atoms, class maps and confused pairs."""
    model = done.model
    order = np.argsort(-model.atom_count, axis=1, kind="stable")
    side = model.basis.diameter
    images = model.basis.to_image(model.atoms.reshape(-1, model.basis.n_coords))
    images = images.reshape(*model.atom_count.shape, side, side)
    return Pictures(
        atoms=np.take_along_axis(images, order[:, :, None, None], axis=1),
        count=np.take_along_axis(model.atom_count, order, axis=1),
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
        grey=picture.whole(),
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
        query=query.whole(),
        query_name=query.name,
        nearest=near.whole(),
        nearest_name=near.name,
        true_example=example.whole(),
    )
