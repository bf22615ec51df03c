"""Fitting: patches of every class, all dictionaries in one graph per iteration, histograms."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, replace
from itertools import product
from pathlib import Path

import numpy as np

from dsc.basis import make_basis
from dsc.dictionary import (
    End,
    Identity,
    Run,
    RunTarget,
    Start,
    advance,
    make_problem,
    plan_work,
    workload_of,
)
from dsc.engine import Engine, Plan, numerics_fingerprint
from dsc.images import Image
from dsc.patches import Grid, PatchConfig, StoredPatches, extract_many
from dsc.store import sha256
from dsc.texture.config import TextureConfig
from dsc.texture.dataset import Dataset, check_classes, label_indices, with_contents
from dsc.texture.deciding import check_classifier
from dsc.texture.histograms import (
    FeatureLog,
    check_images,
    check_memory,
    check_textured,
    count_labels,
    joined_counts,
)
from dsc.texture.model import TextureModel
from dsc.texture.scale import Scale, make_labeller, make_labellers


def fit_texture(
    data: Dataset,
    config: TextureConfig,
    engine: Engine,
    target: RunTarget | None = None,
) -> TextureModel:
    """Learn a dictionary for every class, and label the patches of the training images.

    The result has the same bits on all engines. `target` is a folder for checkpoints, the log and
    the model; a finished run that is resumed gives its model; None keeps nothing on disk. With a
    cluster on other machines it must be on a file system that they share. The engine reports an
    `Iteration` after every pass, and a `Labelling` after every round of labelled images.
    """
    if target is None:
        with tempfile.TemporaryDirectory() as folder:
            return fit_texture(data, config, engine, RunTarget(Path(folder) / "run"))
    label_names = check_classes(data)
    check_classifier(config.classifier)
    check_images(data.images, max(config.diameter))
    plan = plan_setting(data, config, engine)[0]  # refuses before anything is written
    if not (target.resume and Run(Path(target.path)).finished):
        check_textured(data.images, engine)
    identity = fit_identity(data, config, label_names)
    with Run.begin(target, identity, logs=["features.jsonl"]) as run:
        if run.finished:
            return TextureModel.load(run.model)
        run.write_options({**target.options, **asdict(config)})
        called = config.names(label_names)
        start = Start(run.iteration, plan.summary(), identity, engine.place, list(called))
        run.log(start)
        try:
            sources = extract_classes(data, label_names, config, run.scratch, engine)
            problems = [
                replace(make_problem(source, config.learning), name=name)
                for source, name in zip(sources, called, strict=True)
            ]
            models = advance(problems, engine, run)
        finally:
            shutil.rmtree(run.scratch, ignore_errors=True)
        scales = tuple(
            Scale.of(models[begin : begin + len(label_names)])
            for begin in range(0, len(models), len(label_names))
        )
        labellers = make_labellers(config, scales)
        log = FeatureLog(run.path / "features.jsonl", labellers.identity)
        features = count_labels(data.images, labellers, engine.listening(run.log), log)
        names = tuple(image.name for image in data.images)
        fingerprints = (str(model.patches["fingerprint"]) for model in models)
        fitted = TextureModel(
            scales=scales,
            config=config,
            label_names=label_names,
            patches=dict(zip(called, fingerprints, strict=True)),
            numerics=models[0].numerics,
            image_count=joined_counts(features, names, labellers),
            image_label=label_indices(data, label_names),
            image_names=names,
            order=data.order,
            image_contents=with_contents(data, engine).contents,
        )
        fitted.save(run.model)
        run.log(End(run.share, fitted.mse, fitted.sha256))
        return fitted


def fit_identity(data: Dataset, config: TextureConfig, label_names: Sequence[str]) -> Identity:
    """What decides the model, for resuming."""
    pairs = list(zip(data.hashes, data.labels, strict=True))
    joined = {name: "".join(code for code, label in pairs if label == name) for name in label_names}
    return {
        "config": asdict(config),
        "classes": {name: str(index) for index, name in enumerate(label_names)},
        "images": {name: sha256(codes.encode()) for name, codes in joined.items()},
        "order": {"sha256": data.order},
        "numerics": numerics_fingerprint(),
    }


def plan_setting(
    data: Dataset, config: TextureConfig, engine: Engine, n_alike: int = 1
) -> list[Plan]:
    """The plans of all classes, with `n_alike` settings learned together.

    Refuses what does not fit into the memory, in learning or in labelling.
    """
    bases = [make_basis(config.basis, diameter) for diameter in config.diameter]
    work = [
        workload_of(count, basis, config.learning)
        for basis in bases
        for count in expected_patches(data, config, basis.diameter)
    ]
    plans = plan_work(work * n_alike, engine)
    for basis in bases:
        atoms = np.empty((len(work) // len(bases), config.n_atoms, basis.n_coords), np.float32)
        check_memory(make_labeller(config, atoms, basis).task_bytes(data.images), engine)
    return plans


def expected_patches(data: Dataset, config: TextureConfig, diameter: int) -> list[int]:
    """Training patches of every class, before they are extracted."""
    counts = dict.fromkeys(sorted({str(label) for label in data.labels}), 0)
    for image, label in zip(data.images, data.labels, strict=True):
        grid = Grid.of(image.shape, config.patches(diameter))
        counts[str(label)] += min(config.patches_per_image, grid.n_y * grid.n_x)
    return list(counts.values())


def extract_classes(
    data: Dataset, label_names: Sequence[str], config: TextureConfig, folder: Path, engine: Engine
) -> list[StoredPatches]:
    """The training patches of every class at every diameter, each in a patch set of its own."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    jobs: list[tuple[list[Image], Path, PatchConfig]] = []
    for diameter, name in product(config.diameter, label_names):
        pairs = zip(data.images, data.labels, strict=True)
        members = [image for image, label in pairs if label == name]
        jobs.append((members, folder / f"{len(jobs):05d}.zarr", config.patches(diameter)))
    return extract_many(jobs, engine)
