"""Fitting: patches of every class, all dictionaries in one graph per iteration, histograms."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from dsc.basis import SteerableBasis
from dsc.dictionary.learn import make_problem, start_atoms
from dsc.dictionary.loop import Problem, State, learn_problems, plan_problems
from dsc.dictionary.run import RunFolder, check_identity
from dsc.engine import Engine, open_engine
from dsc.engine.numerics import numerics_fingerprint
from dsc.patches import Picture, StoredPatches, extract_patches
from dsc.store import is_finished
from dsc.texture.config import TextureConfig
from dsc.texture.dataset import Labelled, check_classes, label_places
from dsc.texture.histograms import (
    FeatureLog,
    check_memory,
    check_pictures,
    check_textured,
    count_labels,
    joined_counts,
)
from dsc.texture.model import (
    TextureModel,
    identity_of,
    load_texture,
    make_labeller,
    save_texture,
)

Progress = Callable[[dict[str, Any]], None]
Checkpoint = tuple[list[State], SteerableBasis]


def _silent(_: dict[str, Any]) -> None:
    pass


def fit_texture(
    data: Labelled,
    config: TextureConfig,
    *,
    run: str | PathLike[str] | None = None,
    resume: bool = False,
    overwrite: bool = False,
    options: dict[str, Any] | None = None,
    scheduler: Any = "threads",
    n_workers: int | None = None,
    memory_limit: str | int | None = None,
    progress: Progress = _silent,
) -> TextureModel:
    """Learn a dictionary for every class, and label the patches of the training pictures.

    Parameters
    ----------
    data
        Training pictures with their classes.
    config
        The options.
    run
        A folder for checkpoints, the log and the model; None keeps nothing on disk. With a cluster
        on other machines it must be on a file system that they share.
    resume
        Continue what is in that folder; a finished model of the same problem is returned.
    overwrite
        Start over in a folder that holds another run; otherwise that is refused.
    options
        What stands in run.toml besides the options of the model.
    scheduler, n_workers, memory_limit
        Where to run, as in `dsc.learn`. The result has the same bits on all.
    progress
        Called with a dict after every iteration and every round of labelled pictures.
    """
    label_names = check_classes(data)
    check_pictures(data.pictures, config.diameter)
    with (
        open_engine(scheduler, n_workers, memory_limit) as engine,
        _folder(run, resume, overwrite) as folder,
    ):
        finished = TextureModel.load(folder.model) if folder.finished else None
        if finished is None:
            check_textured(data.pictures, engine)
        patches = folder.scratch
        try:
            sources = extract_classes(data, label_names, config, patches)
            problems = [make_problem(source, config.learning) for source in sources]
            plan = plan_problems(problems, engine)[0]  # refuses before anything is learned
            check_memory(label_bytes(data, config, len(problems), problems[0].basis), engine)
            identity = identity_of(
                config,
                label_names,
                data.order,
                {name: s.fingerprint for name, s in zip(label_names, sources, strict=True)},
                numerics_fingerprint(),
            )
            if finished is not None:
                check_identity(str(folder.path), finished.identity, identity)
                return finished
            last = _last_checkpoint(folder, identity)  # refused before anything is written
            folder.write_options({**(options or {}), **identity["config"]})
            folder.log("start", plan=plan.summary(), **identity)
            states, basis = learn_classes(problems, last, identity, folder, engine, progress)
        finally:
            shutil.rmtree(patches, ignore_errors=True)
        model = _model(data, label_names, config, identity, states, basis, engine, folder, progress)
        model.save(folder.model)
        folder.log("end", atoms_sha256=model.sha256)
        return model


def label_bytes(data: Labelled, config: TextureConfig, n_labels: int, basis: SteerableBasis) -> int:
    """Memory that labelling will need, before there are atoms."""
    atoms = np.empty((n_labels, config.n_atoms, basis.n_coords), np.float32)
    return make_labeller(config, atoms, basis).task_bytes(data.pictures)


@contextmanager
def _folder(run: str | PathLike[str] | None, resume: bool, overwrite: bool) -> Iterator[RunFolder]:
    """The run folder, or one that is gone at the end."""
    if run is not None:
        folder = RunFolder(Path(run))
        folder.begin(resume, overwrite)
        yield folder
        return
    with tempfile.TemporaryDirectory() as path:
        folder = RunFolder(Path(path) / "run")
        folder.begin(resume=False)
        yield folder


def extract_classes(
    data: Labelled, label_names: Sequence[str], config: TextureConfig, folder: Path
) -> list[StoredPatches]:
    """The training patches of every class, each in a patch set of its own."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    members: dict[str, list[Picture]] = {name: [] for name in label_names}
    for picture, label in zip(data.pictures, data.labels, strict=True):
        members[str(label)].append(picture)
    return [
        extract_patches(members[name], str(folder / f"{number:05d}.zarr"), config.patches)
        for number, name in enumerate(label_names)
    ]


def learn_classes(
    problems: list[Problem],
    last: Checkpoint | None,
    identity: dict[str, Any],
    folder: RunFolder,
    engine: Engine,
    progress: Progress,
) -> Checkpoint:
    """Learn the dictionaries of all classes, from the last checkpoint if there is one."""
    if last is None:
        basis = problems[0].basis
        states = [State(0, start_atoms(problem)) for problem in problems]
    else:
        states, basis = last
    problems = [Problem(problem.source, basis, problem.config) for problem in problems]
    n_patches = sum(problem.source.n_patches for problem in problems)
    began = time.perf_counter()

    def on_iteration(current: list[State]) -> None:
        nonlocal began
        seconds, began = time.perf_counter() - began, time.perf_counter()
        if not current[0].finished:
            _save_checkpoint(folder, current, basis, identity)
        event = {
            "iteration": current[0].iteration,
            "n_iterations": problems[0].config.n_iterations,
            "finished": current[0].finished,
            "mse": float(np.mean([state.history[-1] for state in current])),
            "seconds": seconds,
            "patches_per_second": n_patches / seconds,
        }
        folder.log("iteration", **event)
        progress(event)

    return learn_problems(problems, states, engine, on_iteration), basis


def _save_checkpoint(
    folder: RunFolder, states: list[State], basis: SteerableBasis, identity: dict[str, Any]
) -> None:
    path = folder.path / "checkpoints" / f"{states[0].iteration:06d}.zarr"
    about = {
        "identity": identity,
        "iteration": states[0].iteration,
        "rest": [state.rest for state in states],
    }
    save_texture(path, basis, _arrays(states), about)
    folder.drop_old_checkpoints()


def _last_checkpoint(folder: RunFolder, identity: dict[str, Any]) -> Checkpoint | None:
    for path in reversed(folder.checkpoints()):
        if not is_finished(path):
            continue
        arrays, attributes, basis = load_texture(path)
        check_identity(str(folder.path), attributes["identity"], identity)
        states = [
            State(
                iteration=int(attributes["iteration"]),
                atoms=atoms,
                history=tuple(history.tolist()),
                count=count,
                rest=float(rest),
            )
            for atoms, history, count, rest in zip(
                arrays["atoms"],
                arrays["history"],
                arrays["atom_count"],
                attributes["rest"],
                strict=True,
            )
        ]
        return states, basis
    return None


def _arrays(states: list[State]) -> dict[str, Any]:
    return {
        "atoms": np.stack([state.atoms for state in states]),
        "history": np.array([state.history for state in states]),
        "atom_count": np.stack([state.count for state in states if state.count is not None]),
    }


def _model(
    data: Labelled,
    label_names: tuple[str, ...],
    config: TextureConfig,
    identity: dict[str, Any],
    states: list[State],
    basis: SteerableBasis,
    engine: Engine,
    folder: RunFolder,
    progress: Progress,
) -> TextureModel:
    """Label the training pictures with the learned dictionaries."""
    arrays = _arrays(states)
    labeller = make_labeller(config, arrays["atoms"], basis)
    log = FeatureLog(folder.path / "features.jsonl", labeller.identity)
    names = tuple(picture.name for picture in data.pictures)
    features = count_labels(data.pictures, labeller, engine, log, progress)
    counts = joined_counts(features, names, len(label_names))
    return TextureModel(
        atoms=arrays["atoms"],
        basis=basis,
        config=config,
        label_names=label_names,
        history=arrays["history"],
        atom_count=arrays["atom_count"],
        patches=identity["patches"],
        numerics=identity["numerics"],
        image_count=counts,
        image_label=label_places(data, label_names),
        picture_names=names,
        order=data.order,
    )
