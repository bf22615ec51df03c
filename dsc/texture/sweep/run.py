"""`run_sweep`: many settings on the same pictures, compared by cross-validation as in the paper.

The dictionaries of a setting are learned once, on all training pictures, whose patches are then
labelled; only the nearest-neighbour step is cross-validated.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, cast

import numpy as np

from dsc.basis import make_basis
from dsc.dictionary.learn import make_problem, start_atoms
from dsc.dictionary.loop import PatchSource, Problem, State, learn_problems, plan_problems
from dsc.engine import Engine, open_engine
from dsc.errors import DscError, raise_listed
from dsc.patches import StoredPatches
from dsc.patches.scan import Grid
from dsc.texture.config import TextureConfig
from dsc.texture.dataset import Labelled, label_places
from dsc.texture.fit import extract_classes, label_bytes
from dsc.texture.histograms import (
    check_memory,
    check_textured,
    count_labels,
    histograms,
    joined_counts,
    pruned_share,
)
from dsc.texture.labelling import Labeller
from dsc.texture.model import make_labeller
from dsc.texture.neighbours import cross_validate
from dsc.texture.sweep.check import check_sweep, patches_key, sweep_identity
from dsc.texture.sweep.folder import PATCHES, SweepFolder
from dsc.texture.sweep.results import SettingResult, SweepGrid, SweepResult

PROBLEMS = 4  # dictionaries per thread that are learned together, at least

Group = tuple[TextureConfig, ...]  # settings that are learned together
Progress = Callable[[dict[str, Any]], None]


def _silent(_: dict[str, Any]) -> None:
    pass


def run_sweep(
    data: Labelled,
    base: TextureConfig,
    grid: SweepGrid | None = None,
    *,
    folder: str | Path,
    resume: bool = False,
    held_out: float = 0.88,
    repeats: int = 100,
    options: dict[str, Any] | None = None,
    scheduler: Any = "threads",
    n_workers: int | None = None,
    memory_limit: str | int | None = None,
    progress: Progress = _silent,
) -> SweepResult:
    """Find out which setting tells the classes of the training pictures apart best.

    Parameters
    ----------
    data
        Training pictures with their classes.
    base
        The options that all settings share.
    grid
        The settings; those of the paper by default.
    folder
        Where the log and the results go. With a cluster on other machines it must be on a file
        system that they share.
    resume
        Continue what is in that folder: finished settings are not computed again. The grid may be
        another one, all else must be the same.
    held_out, repeats
        Of the cross-validation; see `cross_validate`.
    options
        What stands in sweep.json and on the page besides, such as where the pictures are.
    scheduler, n_workers, memory_limit
        Where to run, as in `dsc.learn`. The result has the same bits on all.
    progress
        Called with a dict after every setting: how many are finished (`setting`) of how many
        (`total`), and its config, accuracy and seconds. Also after every iteration and every round
        of labelled pictures, with the `phase` "learning" or "labelling".
    """
    grid = SweepGrid() if grid is None else grid
    settings = grid.settings(base)
    label_names = check_sweep(data, settings, held_out, repeats)
    held_out, repeats = float(held_out), int(repeats)
    identity = sweep_identity(data, base, held_out, repeats)
    place = SweepFolder(Path(folder))
    done = place.look(identity, resume)
    todo = [config for config in settings if config not in done]
    with open_engine(scheduler, n_workers, memory_limit) as engine:
        groups = make_groups(todo, group_size(engine.resources.n_threads, len(label_names)))
        work = _Work(data, label_names, held_out, repeats, engine, progress)
        work.check_memory(groups)
        if todo:
            check_textured(data.pictures, engine)
        place.make(identity, resume)
        n_done = len(settings) - len(todo)
        for number, result in enumerate(work.results(groups, place.path / PATCHES), n_done + 1):
            place.append(result)
            done[result.config] = result
            progress(
                {
                    "setting": number,
                    "total": len(settings),
                    "config": asdict(result.config),
                    "accuracy": result.mean,
                    "seconds": result.seconds,
                }
            )
    place.drop_patches()
    plain = json.loads(json.dumps(options or {}, default=str))
    results = tuple(done[config] for config in settings)
    sweep = SweepResult(place.path, grid, identity, label_names, plain, results)
    from dsc.report.sweep import write_sweep

    write_sweep(sweep, place)
    return sweep


def group_size(n_threads: int, n_classes: int) -> int:
    """How many settings are learned together: enough to keep all threads busy.

    Examples
    --------
    >>> group_size(2, 24), group_size(64, 24)
    (1, 11)
    """
    return max(1, -(-PROBLEMS * n_threads // n_classes))


def make_groups(settings: Sequence[TextureConfig], size: int) -> list[Group]:
    """At most `size` settings at a time, with the same training patches."""
    groups: list[Group] = []
    for _, alike in groupby(settings, patches_key):
        some = tuple(alike)
        groups += [some[begin : begin + size] for begin in range(0, len(some), size)]
    return groups


@dataclass(frozen=True, eq=False)
class _Work:
    """What all settings of a sweep share."""

    data: Labelled
    label_names: tuple[str, ...]
    held_out: float
    repeats: int
    engine: Engine
    progress: Progress

    def results(self, groups: Sequence[Group], folder: Path) -> Iterator[SettingResult]:
        """Learn, label and judge all settings, those with the same patches one after the other."""
        for (method, diameter), alike in groupby(groups, lambda group: patches_key(group[0])):
            path = folder / f"{method}-{diameter:03d}"
            sources: list[StoredPatches] = []
            for group in alike:
                if not sources:
                    sources = extract_classes(self.data, self.label_names, group[0], path)
                yield from self._group(group, sources)
            shutil.rmtree(path)

    def _group(self, group: Group, sources: list[StoredPatches]) -> Iterator[SettingResult]:
        began = time.perf_counter()
        labellers = self._learn(group, sources)
        seconds = (time.perf_counter() - began) / len(group)
        for config, labeller in zip(group, labellers, strict=True):
            yield self._judge(config, labeller, seconds)

    def _learn(self, group: Group, sources: list[StoredPatches]) -> list[Labeller]:
        """The dictionaries of all classes for all settings of a group, in one graph a pass."""
        basis = make_problem(sources[0], group[0].learning).basis
        problems = [
            Problem(source, basis, config.learning) for config in group for source in sources
        ]
        n_patches = sum(problem.source.n_patches for problem in problems)
        began = time.perf_counter()

        def on_iteration(states: list[State]) -> None:
            nonlocal began
            seconds, began = time.perf_counter() - began, time.perf_counter()
            self.progress(
                {
                    "phase": "learning",
                    "settings": [asdict(config) for config in group],
                    "iteration": states[0].iteration,
                    "n_iterations": group[0].n_iterations,
                    "finished": states[0].finished,
                    "mse": float(np.mean([state.history[-1] for state in states])),
                    "seconds": seconds,
                    "patches_per_second": n_patches / seconds,
                }
            )

        start = [State(0, start_atoms(problem)) for problem in problems]
        atoms = [s.atoms for s in learn_problems(problems, start, self.engine, on_iteration)]
        n_labels = len(sources)
        return [
            make_labeller(config, np.stack(atoms[place * n_labels : (place + 1) * n_labels]), basis)
            for place, config in enumerate(group)
        ]

    def _judge(
        self, config: TextureConfig, labeller: Labeller, seconds_learning: float
    ) -> SettingResult:
        """Label the pictures, and hold some of them out."""

        def on_round(event: dict[str, Any]) -> None:
            self.progress({"phase": "labelling", "config": asdict(config), **event})

        began = time.perf_counter()
        pictures = self.data.pictures
        features = count_labels(pictures, labeller, self.engine, progress=on_round)
        seconds = time.perf_counter() - began
        names = [picture.name for picture in pictures]
        table = histograms(joined_counts(features, names, len(self.label_names)), config.histogram)
        known = label_places(self.data, self.label_names)
        judged = cross_validate(table, known, self.held_out, self.repeats, config.seed)
        return SettingResult(
            config=config,
            accuracy=tuple(judged.accuracy.tolist()),
            atoms_sha256=str(labeller.identity["atoms_sha256"]),
            n_patches=sum(feature.n_patches for feature in features),
            pruned=pruned_share(features, labeller),
            seconds_learning=seconds_learning,
            seconds_labelling=seconds,
        )

    def check_memory(self, groups: Sequence[Group]) -> None:
        """Refuse settings that do not fit into the memory, before anything is learned."""
        problems = []
        for group in groups:
            basis = make_basis(group[0].basis, group[0].diameter)
            counts = expected_patches(self.data, self.label_names, group[0])
            sources = [cast(PatchSource, _Expected(count)) for count in counts]
            for config in group:
                alike = [Problem(source, basis, config.learning) for source in sources]
                try:
                    plan_problems(alike * len(group), self.engine)
                    labels = label_bytes(self.data, config, len(self.label_names), basis)
                    check_memory(labels, self.engine)
                except DscError as error:
                    problems.append(f"{_named(config)}: {error}")
        raise_listed("settings", problems)


@dataclass(frozen=True)
class _Expected:
    """Patches that are not extracted yet: all that a plan needs to know of them."""

    n_patches: int


def expected_patches(
    data: Labelled, label_names: Sequence[str], config: TextureConfig
) -> list[int]:
    """Training patches of every class."""
    counts = dict.fromkeys(label_names, 0)
    for picture, label in zip(data.pictures, data.labels, strict=True):
        windows = Grid.of(picture.shape, config.patches)
        counts[str(label)] += min(config.patches_per_image, windows.n_y * windows.n_x)
    return list(counts.values())


def _named(config: TextureConfig) -> str:
    return (
        f"{config.method}, {config.n_atoms} atoms, diameter {config.diameter}, sparsity "
        f"{config.sparsity}"
    )
