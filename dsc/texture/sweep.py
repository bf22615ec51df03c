"""`run_sweep`: many settings on the same images, compared by cross-validation as in the paper.

The dictionaries of a setting are learned once, on all training images, whose patches are then
labelled; only the last step, the classifier of histograms, is cross-validated. The log of the run
has every finished setting, and sweep.json everything.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from numbers import Real
from pathlib import Path

import numpy as np

from dsc.dictionary import Identity, Problem, Run, RunTarget, advance, make_problem
from dsc.engine import Engine, numerics_fingerprint
from dsc.errors import DscError, count_problem, raise_listed
from dsc.files import seal, write_whole
from dsc.patches import Grid, StoredPatches
from dsc.show import Event
from dsc.store import sha256
from dsc.texture.config import TextureConfig
from dsc.texture.dataset import Dataset, check_classes, label_indices
from dsc.texture.deciding import check_classifier, cross_validate
from dsc.texture.fit import extract_classes, plan_setting
from dsc.texture.histograms import (
    check_textured,
    count_labels,
    histograms_of,
    joined_counts,
    pruned_share,
)
from dsc.texture.labelling import Labellers
from dsc.texture.scale import Scale, make_labellers
from dsc.texture.settings import SWEPT, SettingResult, Sweep, SweepResult

RESULT = "sweep.json"
PROBLEMS = 4  # dictionaries per thread that are learned together, at least

Group = tuple[TextureConfig, ...]  # settings that are learned together


@dataclass(frozen=True)
class Setting(Event):
    """One setting is finished."""

    index: int  # how many are finished, and how many there are
    total: int
    result: SettingResult  # what was found for it

    def line(self) -> str:
        """One line for a log."""
        config = self.result.config
        return (
            f"setting {self.index} of {self.total}: {config.method}, M = {config.n_atoms}, "
            f"N = {config.sizes}, K = {config.sparsity}: accuracy {self.result.mean:.4f}, "
            f"{self.result.seconds:.0f} s"
        )

    def bar(self) -> tuple[float, str]:
        """The share that is done, and what is said beside it."""
        return self.index / self.total, self.line()


def run_sweep(data: Dataset, sweep: Sweep, engine: Engine, target: RunTarget) -> SweepResult:
    """Find out which setting tells the classes of the training images apart best.

    The result has the same bits on all engines. Of a run that is resumed, finished settings are not
    computed again; the grid may be another one, all else must be the same. With a cluster on other
    machines the folder must be on a file system that they share. The engine reports a
    `Setting` after every setting, and inside of them as in `fit_texture`.
    """
    settings = sweep.grid.settings(sweep.base)
    label_names = check_sweep(data, sweep)
    identity = sweep_identity(data, sweep)
    earlier = Run(Path(target.path))
    done = _finished(earlier) if target.resume and earlier.exists else {}
    todo = [config for config in settings if config not in done]
    groups = make_groups(todo, group_size(engine.resources.n_threads, len(label_names)))
    _check_memory(data, groups, engine)
    if todo:
        check_textured(data.images, engine)
    with Run.begin(target, identity, [RESULT]) as run:
        n_done = len(settings) - len(todo)
        try:
            work = _Work(data, label_names, sweep, engine.listening(run.show))
            for index, result in enumerate(work.results(groups, run.scratch), n_done + 1):
                event = Setting(index, len(settings), result)
                run.log(event)
                done[result.config] = result
                engine.report(event)
        finally:
            shutil.rmtree(run.scratch, ignore_errors=True)
        options = json.loads(json.dumps(target.options, default=str))
        results = tuple(done[config] for config in settings)
        found = SweepResult(run.path, sweep, identity, label_names, options, results)
        write_whole(run.path / RESULT, seal(found.to_dict(), indent=2) + "\n")
        return found


def check_sweep(data: Dataset, sweep: Sweep) -> tuple[str, ...]:
    """The names of the classes; refuses what cannot be swept, all of it at once."""
    label_names: tuple[str, ...] = ()
    held_out, repeats = sweep.validation.held_out, sweep.validation.repeats
    problems = [problem] if (problem := count_problem("repeats", repeats, 1)) else []
    try:
        check_classifier(sweep.base.classifier)
        label_names = check_classes(data)
        if isinstance(held_out, bool) or not isinstance(held_out, Real):
            raise DscError(f"held_out: found {held_out!r}, need a fraction between 0 and 1")
        labels = label_indices(data, label_names)
        cross_validate(np.ones((len(data), 1)), labels, float(held_out), 1)
    except DscError as error:
        problems.append(str(error))
    sizes: dict[int, str] = {}  # of each image, the largest patch that does not fit
    kinds = {patches_key(config): config for config in sweep.grid.settings(sweep.base)}
    for config in sorted(kinds.values(), key=lambda c: (-max(c.diameter), c.method != "augmented")):
        for index, image in enumerate(data.images):
            try:
                Grid.of(image.shape, config.patches(max(config.diameter)))
            except DscError as error:
                sizes.setdefault(index, f"{image.name}: {error}")
    try:
        raise_listed("images", list(sizes.values()))
    except DscError as error:
        problems.append(str(error))
    if problems:
        raise DscError("\n".join(problems))
    return label_names


def sweep_identity(data: Dataset, sweep: Sweep) -> Identity:
    """What decides the numbers of a setting besides itself, for resuming."""
    config = {name: value for name, value in asdict(sweep.base).items() if name not in SWEPT}
    return {
        "data": {
            "n_images": len(data),
            "images_sha256": sha256("".join(data.hashes).encode()),
            "labels_sha256": sha256(json.dumps(data.labels).encode()),
        },
        "config": config,
        "validation": asdict(sweep.validation),
        "numerics": numerics_fingerprint(),
    }


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


def patches_key(config: TextureConfig) -> tuple[str, tuple[int, ...]]:
    """What training patches depend on, within a sweep."""
    return config.method, config.diameter


def _finished(run: Run) -> dict[TextureConfig, SettingResult]:
    """The finished settings of a run."""
    records = [event["result"] for event in run.events() if event["event"] == "setting"]
    results = [SettingResult.from_record(record) for record in records]
    return {result.config: result for result in results}


def _check_memory(data: Dataset, groups: Sequence[Group], engine: Engine) -> None:
    """Refuse settings that do not fit into the memory, before anything is learned."""
    problems = []
    for group in groups:
        for config in group:
            try:
                plan_setting(data, config, engine, len(group))
            except DscError as error:
                problems.append(
                    f"{config.method}, {config.n_atoms} atoms, diameter {config.sizes}, "
                    f"sparsity {config.sparsity}: {error}"
                )
    raise_listed("settings", problems)


@dataclass(frozen=True, eq=False)
class _Work:
    """What all settings of a sweep share."""

    data: Dataset
    label_names: tuple[str, ...]
    sweep: Sweep
    engine: Engine

    def results(self, groups: Sequence[Group], folder: Path) -> Iterator[SettingResult]:
        """Learn, label and judge all settings, those with the same patches one after the other."""
        folder.mkdir(exist_ok=True)
        for (method, diameter), alike in groupby(groups, lambda group: patches_key(group[0])):
            path = folder / f"{method}-{'-'.join(f'{one:03d}' for one in diameter)}"
            sources: list[StoredPatches] = []
            for group in alike:
                if not sources:
                    names = self.label_names
                    sources = extract_classes(self.data, names, group[0], path, self.engine)
                began = time.perf_counter()
                labellers = self._learn(group, sources)
                seconds = (time.perf_counter() - began) / len(group)
                for config, some in zip(group, labellers, strict=True):
                    yield self._judge(config, some, seconds)
            shutil.rmtree(path)

    def _learn(self, group: Group, sources: list[StoredPatches]) -> list[Labellers]:
        """The dictionaries of all classes for all settings of a group, in one graph a pass."""
        bases = [make_problem(source, group[0].learning).basis for source in sources]
        names = group[0].names(self.label_names)
        problems = [
            Problem(source, basis, config.learning, name)
            for config in group
            for source, basis, name in zip(sources, bases, names, strict=True)
        ]
        models = advance(problems, self.engine)
        size, n_labels = len(sources), len(self.label_names)
        found = []
        for i, config in enumerate(group):
            own = models[i * size : (i + 1) * size]
            parts = [own[begin : begin + n_labels] for begin in range(0, size, n_labels)]
            found.append(make_labellers(config, [Scale.of(part) for part in parts]))
        return found

    def _judge(self, config: TextureConfig, labellers: Labellers, seconds: float) -> SettingResult:
        """Label the images, and hold some of them out."""
        began = time.perf_counter()
        images, validation = self.data.images, self.sweep.validation
        features = count_labels(images, labellers, self.engine)
        seconds_labelling = time.perf_counter() - began
        names = [image.name for image in images]
        table = histograms_of(joined_counts(features, names, labellers), config.histogram)
        labels = label_indices(self.data, self.label_names)
        accuracy = cross_validate(
            table, labels, validation.held_out, validation.repeats, config.seed, config.classifier
        )
        return SettingResult(
            config=config,
            accuracy=tuple(accuracy.tolist()),
            atoms_sha256=labellers.sha256,
            n_patches=sum(feature.n_patches for feature in features),
            pruned=pruned_share(features, labellers),
            seconds_learning=seconds,
            seconds_labelling=seconds_labelling,
        )
