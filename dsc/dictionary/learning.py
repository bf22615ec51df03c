"""`dsc.learn` and `dsc.learn_many`."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from hashlib import sha256
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from dsc.basis import make_basis
from dsc.dictionary.batches import Batches
from dsc.dictionary.config import LearnConfig
from dsc.dictionary.events import End, Iteration, Start
from dsc.dictionary.inputs import PATCH_OPTIONS, patches_of
from dsc.dictionary.loop import (
    Part,
    Problem,
    State,
    Step,
    code_part,
    iterate,
    plan_problems,
    share_left,
)
from dsc.dictionary.model import Dictionary
from dsc.dictionary.notes import notes_of
from dsc.dictionary.run import MODEL, Identity, Run, RunTarget
from dsc.dictionary.start import given_atoms, start_atoms
from dsc.engine import BLOCK, Engine, Plan, numerics_fingerprint, open_engine, readable
from dsc.errors import DscError
from dsc.patches import StoredPatches, as_source, open_patches
from dsc.show import Card, Notice
from dsc.store import is_finished
from dsc.update import UPDATES

SAVING = 20  # times what a checkpoint inside a pass took go by before the next: 5 % at most
CALIBRATION = 4096  # patches that the time of a plan is estimated from
ENGINE_OPTIONS = ("scheduler", "n_workers", "memory_limit", "patience", "tls")
RUN_OPTIONS = (*ENGINE_OPTIONS, "overwrite")


def learn(
    patches: Any,
    n_atoms: int = 20,
    sparsity: int = 4,
    *,
    run: str | PathLike[str] | None = None,
    resume: bool = False,
    progress: Callable[[Any], None] | bool | None = None,
    **options: Any,
) -> Dictionary:
    """Learn a dictionary whose atoms may appear in any orientation.

    Parameters
    ----------
    patches
        A patch set (or its path), or an array (patch, y, x) of NumPy, Dask, Zarr or xarray. With a
        `diameter`, images: arrays (y, x) of the same kinds, files, folders, Zarr and OME-Zarr
        arrays, one or several. With `channel`, arrays (y, x, channel) of any number of them.
    n_atoms, sparsity
        Atoms in the dictionary, and at most in the code of a patch.
    run
        A folder for checkpoints, the log of events and the model. None keeps nothing on disk.
    resume
        Continue the run in that folder from its last complete iteration, if there is one.
    progress
        As in `learn_many`: None, the default, shows a live card in a notebook.
    **options
        The other fields of `LearnConfig`: n_angles, n_iterations, mode ("batch", "online"),
        batch_size, forget, basis ("disk", "bessel", "annular", "pixels"), pursuit ("ols", "omp"),
        refine, tolerance, update ("ksvd", "mod"), init ("random", "patches", or a `Dictionary` or
        the path of a run or a model, whose atoms learning starts from), replace_twins,
        min_improvement, seed. And how to run, as in `learn_many`: scheduler, n_workers,
        memory_limit, patience, tls, overwrite. And for images, which patches to take, as in
        `PatchConfig`: diameter, stride, min_std, center, unit, per_image and so on; they are
        written beside the run folder, to RUN-patches.zarr, which the workers of a cluster must be
        able to read (without `run`, to a local temporary folder).

    Examples
    --------
    >>> import numpy as np
    >>> image = np.random.default_rng(0).random((40, 40))
    >>> learn(image, n_atoms=3, sparsity=2, diameter=7, center=True, n_iterations=2).n_angles
    60
    """
    how = {name: options.pop(name) for name in RUN_OPTIONS if name in options}
    cut = {name: options.pop(name) for name in PATCH_OPTIONS if name in options}
    config = LearnConfig.from_options(
        {"n_atoms": n_atoms, "sparsity": sparsity, **options}, (*RUN_OPTIONS, *PATCH_OPTIONS)
    )
    target = None if run is None else RunTarget(run, resume, bool(how.get("overwrite")))
    on = {name: how[name] for name in ENGINE_OPTIONS if name in how}
    with patches_of(patches, cut, config, target, progress, **on) as source:
        return learn_many([(source, config)], run=run, resume=resume, progress=progress, **how)[0]


def learn_many(
    problems: Sequence[tuple[Any, LearnConfig]],
    *,
    run: str | PathLike[str] | None = None,
    resume: bool = False,
    overwrite: bool = False,
    progress: Callable[[Any], None] | bool | None = None,
    **engine_options: Any,
) -> list[Dictionary]:
    """Learn many dictionaries, advancing all of them in one graph per iteration.

    Parameters
    ----------
    problems
        (patches, config) of each dictionary, as in `learn`.
    run
        A folder for checkpoints, the log of events and the models (models/00000.zarr, …). None
        keeps nothing on disk.
    resume
        Continue the run in that folder from its last complete iteration, if there is one.
    overwrite
        Start over in a folder that holds another run; otherwise that is refused.
    progress
        Called with an `Iteration` after every pass; its error is the mean of all. None shows a live
        card in a notebook and nothing elsewhere, True a bar on a terminal, too, False nothing.
    **engine_options
        scheduler: None (the default) is the active `distributed.Client`, or "threads" if there is
        none; "threads", "synchronous", "processes", the address of a Dask
        scheduler (tcp://…), the path of a scheduler file, or a `distributed.Client`; the result
        has the same bits on all. n_workers, memory_limit: threads or processes of a local
        scheduler, and bytes ("1GB") that they may use. patience: seconds to wait for the workers
        of a cluster, if there are none or one does not answer. tls: {"ca": …, "cert": …,
        "key": …}, files in PEM format for a scheduler at tls://….
    """
    made = [make_problem(patches, config) for patches, config in problems]
    if not made:
        return []
    names = [MODEL] if len(made) == 1 else [f"models/{i:05d}.zarr" for i in range(len(made))]
    with open_engine(**engine_options, progress=progress) as engine:
        plans = plan_problems(made, engine)  # refuses before anything is written
        if run is None:
            return advance(made, engine)
        identity = identity_of(made)
        with Run.begin(RunTarget(run, resume, overwrite), identity, names) as folder:
            if folder.finished:
                return [Dictionary.load(folder.path / name) for name in names]
            if len(made) == 1:
                folder.write_options(
                    {**_named(problems[0][0]), **identity["config"], **_init(problems[0][1])}
                )
            planned = {**plans[0].summary(), **_batch_summary(online_batches(made[0]))}
            folder.log(Start(folder.iteration, planned, identity, engine.place, []))
            models = advance(made, engine, folder)
            for name, model in zip(names, models, strict=True):
                if not is_finished(folder.path / name):  # of many, some may be there already
                    model.save(folder.path / name)
            folder.log(end_of(models, folder.share))
            return models


def advance(
    problems: Sequence[Problem],
    engine: Engine,
    run: Run | None = None,
) -> list[Dictionary]:
    """Learn all problems, from the last checkpoint of a run if there is one."""
    if run is not None:
        engine = engine.listening(run.log)
    last = None if run is None else run.last(lambda text: engine.report(Notice(text)))
    if last is not None:
        states, bases = last
        problems = [
            replace(problem, basis=basis) for problem, basis in zip(problems, bases, strict=True)
        ]
    else:
        states = [State.start(start_atoms(problem)) for problem in problems]
    n_patches = sum(problem.source.n_patches for problem in problems)
    began = saved = time.perf_counter()
    saving = 0.0
    for current in iterate(problems, states, engine):
        states, now = current, time.perf_counter()
        finished, inside = all(s.finished for s in states), any(s.batch for s in states)
        if run is not None and not finished and (not inside or now - saved >= SAVING * saving):
            run.save(problems, states)
            saved = time.perf_counter()
            saving = saved - now
        if inside:
            continue
        seconds, began = time.perf_counter() - began, time.perf_counter()
        event = Iteration(
            iteration=max(state.iteration for state in states),
            n_iterations=max(problem.config.n_iterations for problem in problems),
            finished=finished,
            share=_share_of_all(problems, states),
            mse=float(np.mean([state.history[-1] for state in states])),
            seconds=seconds,
            patches_per_second=n_patches / seconds,
            notes=notes_of(problems, states) if finished else [],
            problems=problems,
            states=states,
        )
        engine.report(event)
    return [dictionary_of(problem, state) for problem, state in zip(problems, states, strict=True)]


def dictionary_of(problem: Problem, state: State) -> Dictionary:
    """What was learned."""
    return Dictionary(
        atoms=state.atoms,
        basis=problem.basis,
        config=problem.config,
        history=np.array(state.history),
        count=state.count,
        patches=problem.patches,
        numerics=numerics_fingerprint(),
        energy=state.energy,
        variation=state.variation,
    )


def learn_more(
    patches: Any, config: LearnConfig, last: State | None = None, **engine_options: Any
) -> tuple[Dictionary, State]:
    """One online pass over some patches, from where those before have left off; none measures.

    Errors in the history are those of each patch when its batch was coded.
    """
    done = 0 if last is None else last.iteration
    problem = make_problem(patches, replace(config, n_iterations=done + 1))
    state = State.start(start_atoms(problem)) if last is None else last
    if state.atoms.shape != (config.n_atoms, problem.basis.n_coords):
        raise DscError(
            f"atoms: found {state.atoms.shape} learned so far (atoms, coordinates), need "
            f"{(config.n_atoms, problem.basis.n_coords)}: begin anew"
        )
    state = replace(state, rest=np.nan, energy=np.nan, variation=np.nan)  # of these patches
    with open_engine(**engine_options) as engine:
        states = iterate([problem], [state], engine)
        state = next(state for (state,) in states if not state.batch)
    return dictionary_of(problem, state), state


def _share_of_all(problems: Sequence[Problem], states: Sequence[State]) -> float:
    """Share of the energy of all patches that the last pass left: errors over energies."""
    sizes = [problem.source.n_patches * problem.basis.n_pixels for problem in problems]
    error, energy = (
        math.fsum(size * value for size, value in zip(sizes, values, strict=True))
        for values in ([one.history[-1] for one in states], [one.energy for one in states])
    )
    return share_left(error, energy)


def end_of(models: Sequence[Dictionary], share: float) -> End:
    """The last event of a run."""
    total = sha256("".join(model.sha256 for model in models).encode()).hexdigest()
    mse = float(np.mean([model.mse for model in models]))
    return End(share, mse, models[0].sha256 if len(models) == 1 else total)


@dataclass(frozen=True)
class LearnPlan:
    """How `learn` would go: tasks, memory, and the time estimated from a few patches.

    Attributes
    ----------
    plan
        How the patches are cut into tasks, and what a task needs.
    n_threads, memory
        What the tasks would run on: threads, and bytes for all of them.
    seconds
        The estimated time.
    batches
        How an online pass is taken; None in batch mode.
    """

    plan: Plan
    n_threads: int
    memory: int
    seconds: float
    batches: Batches | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        names = [f.name for f in fields(self) if f.name not in ("plan", "batches")]
        others = {name: getattr(self, name) for name in names}
        return {**self.plan.summary(), **others, **_batch_summary(self.batches)}

    def lines(self) -> dict[str, str]:
        """What people want to know, by name."""
        plan = self.plan
        kept = "kept in memory" if plan.keep_coords else "streamed anew in every iteration"
        online = {}
        if (cut := self.batches) is not None:
            online["batches"] = (
                f"{cut.n_batches:,} in a pass, of {cut.size:,} patches in {cut.n_tasks} tasks; "
                "tasks below are those of the final pass"
            )
        return {
            "patches": f"{plan.n_patches:,}, in blocks of {BLOCK:,}",
            **online,
            "leaves": f"{plan.n_leaves:,} of {plan.leaf_size:,} patches",
            "tasks": f"{plan.n_tasks} over the patches, {plan.graph_size} in the graph of one "
            f"iteration, on {self.n_threads} threads",
            "statistics": readable(plan.statistics_bytes),
            "memory of a task": f"{readable(plan.task_bytes)}; of all together "
            f"{readable(plan.total_bytes)} of {readable(self.memory)}",
            "coordinates": f"{readable(plan.coords_bytes)}, {kept}",
            "estimated time": f"{self.seconds:.1f} s",
        }

    def __str__(self) -> str:
        return "\n".join(f"{name:<18} {text}" for name, text in self.lines().items())

    def _repr_html_(self) -> str:
        return Card("plan", numbers=self.lines()).html()


def plan(patches: Any, n_atoms: int = 20, sparsity: int = 4, **options: Any) -> LearnPlan:
    """How `learn` would go with these arguments; learns nothing.

    Refuses what does not fit into the memory, as `learn` does.

    Examples
    --------
    >>> import numpy as np
    >>> patches = np.random.default_rng(0).random((500, 7, 7))
    >>> plan(patches, n_atoms=5, sparsity=2, n_workers=2).plan.n_tasks
    2
    """
    how = {name: options.pop(name) for name in ENGINE_OPTIONS if name in options}
    cut = {name: options.pop(name) for name in PATCH_OPTIONS if name in options}
    config = LearnConfig.from_options(
        {"n_atoms": n_atoms, "sparsity": sparsity, **options}, (*ENGINE_OPTIONS, *PATCH_OPTIONS)
    )
    with patches_of(patches, cut, config) as some:
        return _plan(make_problem(some, config), how)


def _plan(problem: Problem, how: dict[str, Any]) -> LearnPlan:
    source, basis, config = problem.source, problem.basis, problem.config
    with open_engine(**how, progress=False) as engine:
        made = plan_problems([problem], engine)[0]
        resources = engine.resources
    n_sample = min(source.n_patches, CALIBRATION)
    part = Part(source.part(0, n_sample), 0, n_sample, n_sample)
    coder = config.coder(start_atoms(problem), basis)
    step = Step(coder, UPDATES[config.update], None, False, config.stop(basis))
    seconds = []
    for _ in range(2):  # the first one compiles
        begin = time.perf_counter()
        code_part(part, step)
        seconds.append(time.perf_counter() - begin)
    work = min(seconds) / n_sample * source.n_patches * (config.n_iterations + 1)
    n_threads, memory = resources.n_threads, resources.memory
    return LearnPlan(made, n_threads, memory, work / n_threads, online_batches(problem))


def online_batches(problem: Problem) -> Batches | None:
    """How an online pass is taken; None in batch mode."""
    return problem.batches if problem.config.mode == "online" else None


def _batch_summary(cut: Batches | None) -> dict[str, int]:
    """The batches of an online pass as plain values."""
    if cut is None:
        return {}
    return {"n_batches": cut.n_batches, "batch_patches": cut.size, "batch_tasks": cut.n_tasks}


def make_problem(patches: Any, config: LearnConfig) -> Problem:
    """A problem whose parts are known to fit together."""
    source = as_source(patches)
    if source.n_patches < 1:
        raise DscError("patches: found none, need at least one")
    n_channels = getattr(source, "n_channels", 1)  # sources of others may not know of channels
    basis = make_basis(config.basis, source.diameter).for_channels(n_channels)
    stored = getattr(source, "basis", None)
    if stored is not None and stored.name == basis.name:
        basis = stored  # of a materialised set, to the bit
    source.read(basis, 0, 0)  # refuses a materialised set of another basis
    config.resolve(basis)
    given = given_atoms(config, basis)
    if given is None:
        return Problem(source, basis, config)
    return Problem(source, basis, replace(config, init=given.name), start=given.atoms)


def identity_of(problems: Sequence[Problem]) -> Identity:
    """What decides the results; the parts of many problems are numbered."""
    identity: Identity = {}
    for i, problem in enumerate(problems):
        number = f" {i}" if len(problems) > 1 else ""
        identity[f"config{number}"] = problem.config.to_dict()
        identity[f"patches{number}"] = problem.patches
    return {**identity, "numerics": numerics_fingerprint()}


def _init(config: LearnConfig) -> dict[str, str]:
    """The path of the dictionary that learning starts from, for the options that repeat a run."""
    given: Any = config.init
    return {"init": os.fspath(given)} if isinstance(given, str | PathLike) else {}


def _named(patches: Any) -> dict[str, str]:
    """The path of the patches, for the options that repeat a run; nothing for arrays."""
    if isinstance(patches, StoredPatches):
        return {"patches": patches.store.url}
    if isinstance(patches, str | Path):
        return {"patches": open_patches(patches).store.url}
    return {}
