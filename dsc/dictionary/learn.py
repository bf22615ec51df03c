"""`dsc.learn` and `dsc.learn_many`."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsc.basis import make_basis
from dsc.counter import choose
from dsc.dictionary.config import LearnConfig
from dsc.dictionary.loop import Part, Problem, State, code_part, learn_problems, plan_problems
from dsc.dictionary.model import Dictionary
from dsc.dictionary.run import RunFolder, check_finished
from dsc.engine import Engine, open_engine
from dsc.engine.numerics import numerics_fingerprint
from dsc.errors import DscError
from dsc.patches import StoredPatches, as_source, open_patches
from dsc.update import random_atoms

PICKS = 2**20  # patch numbers looked at together when atoms start from patches
CALIBRATION = 4096  # patches that the time of a plan is estimated from

Progress = Callable[[dict[str, Any]], None]


def learn(
    patches: Any,
    n_atoms: int = 20,
    sparsity: int = 4,
    *,
    run: str | Path | None = None,
    resume: bool = False,
    overwrite: bool = False,
    scheduler: Any = "threads",
    n_workers: int | None = None,
    memory_limit: str | int | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Dictionary:
    """Learn a dictionary whose atoms may appear in any orientation.

    Parameters
    ----------
    patches
        A patch set (or its path), or an array (patch, y, x) of NumPy, Dask, Zarr or xarray.
    n_atoms, sparsity
        Atoms in the dictionary, and at most in the code of a patch.
    run
        A folder for checkpoints, the log of events and the model. None keeps nothing on disk.
    resume
        Continue the run in that folder from its last complete iteration, if there is one.
    overwrite
        Start over in a folder that holds another run; otherwise that is refused.
    scheduler
        "threads", "synchronous", "processes", the address of a Dask scheduler (tcp://…), the path
        of a scheduler file, or a `distributed.Client`. The result has the same bits on all.
    n_workers, memory_limit
        Threads or processes of a local scheduler, and bytes ("1GB") that they may use.
    progress
        Called with a dict after every iteration: iteration, n_iterations, mse, seconds,
        patches_per_second.
    **options
        The other fields of `LearnConfig`: n_angles, n_iterations, basis ("disk", "annular",
        "pixels"), update ("ksvd", "mod"), init ("random", "patches"), replace_twins,
        min_improvement, seed.
    """
    config = LearnConfig.from_options({"n_atoms": n_atoms, "sparsity": sparsity, **options})
    problem = make_problem(patches, config)
    with open_engine(scheduler, n_workers, memory_limit) as engine:
        if run is None:
            return _learn([problem], [None], engine, [_describe(problem)], progress)[0]
        start = (resume, overwrite)
        return _learn_in_folder(problem, RunFolder(Path(run)), start, engine, progress, patches)


def learn_many(
    problems: Sequence[tuple[Any, LearnConfig]],
    *,
    scheduler: Any = "threads",
    n_workers: int | None = None,
    memory_limit: str | int | None = None,
    progress: Progress | None = None,
) -> list[Dictionary]:
    """Learn many dictionaries, advancing all of them in one graph per iteration.

    Parameters
    ----------
    problems
        (patches, config) of each dictionary, as in `learn`.
    scheduler, n_workers, memory_limit, progress
        As in `learn`; progress reports the mean error of all.
    """
    made = [make_problem(patches, config) for patches, config in problems]
    with open_engine(scheduler, n_workers, memory_limit) as engine:
        described = [_describe(problem) for problem in made]
        return _learn(made, [None] * len(made), engine, described, progress)


def plan_learning(
    patches: Any,
    config: LearnConfig,
    *,
    scheduler: Any = "threads",
    n_workers: int | None = None,
    memory_limit: str | int | None = None,
) -> dict[str, Any]:
    """The plan of `learn`, with the time estimated from a few patches; learns nothing."""
    problem = make_problem(patches, config)
    source = problem.source
    with open_engine(scheduler, n_workers, memory_limit) as engine:
        plan = plan_problems([problem], engine)[0]
        resources = engine.resources
    n_sample = min(source.n_patches, CALIBRATION)
    part = Part(source.part(0, n_sample), 0, n_sample, n_sample)
    atoms = start_atoms(problem)
    seconds = []
    for _ in range(2):  # the first one compiles
        begin = time.perf_counter()
        code_part(part, None, atoms=atoms, basis=problem.basis, config=config, need=(False, True))
        seconds.append(time.perf_counter() - begin)
    work = min(seconds) / n_sample * source.n_patches * (config.n_iterations + 1)
    return {
        **plan.summary(),
        "n_threads": resources.n_threads,
        "memory": resources.memory,
        "seconds": work / resources.n_threads,
    }


def make_problem(patches: Any, config: LearnConfig) -> Problem:
    """A problem whose parts are known to fit together."""
    source = as_source(patches)
    if source.n_patches < 1:
        raise DscError("patches: found none, need at least one")
    basis = make_basis(config.basis, source.diameter)
    stored = getattr(source, "basis", None)
    if stored is not None and stored.name == basis.name:
        basis = stored  # of a materialised set, to the bit
    source.read(basis, 0, 0)  # refuses a materialised set of another basis
    config.resolve(basis)
    return Problem(source, basis, config)


def start_atoms(problem: Problem) -> NDArray[np.float32]:
    """Where learning starts: random atoms, or patches of the set picked by their numbers."""
    config, basis = problem.config, problem.basis
    atoms = random_atoms(basis, config.n_atoms, config.seed)
    if config.init == "random":
        return atoms
    numbers = np.empty(0, np.int64)
    for begin in range(0, problem.source.n_patches, PICKS):  # choosing again among the chosen
        end = min(begin + PICKS, problem.source.n_patches)
        candidates = np.concatenate([numbers, np.arange(begin, end)])
        numbers = choose(config.seed, "init", candidates, config.n_atoms)
    for m, number in enumerate(numbers):
        coords = problem.source.read(basis, int(number), int(number) + 1)[0].astype(np.float64)
        norm = np.linalg.norm(coords)
        if norm > 0:  # else the random atom stays
            atoms[m] = coords / norm
    return atoms


def _describe(problem: Problem) -> dict[str, Any]:
    """What decides a result, for the model and for resuming."""
    source = problem.source
    return {
        "config": asdict(problem.config),
        "patches": {
            "fingerprint": source.fingerprint,
            "n_patches": source.n_patches,
            "center": source.center,
            "unit": source.unit,
        },
        "numerics": numerics_fingerprint(),
    }


def _learn_in_folder(
    problem: Problem,
    folder: RunFolder,
    start: tuple[bool, bool],
    engine: Engine,
    progress: Progress | None,
    patches: Any,
) -> Dictionary:
    identity = _describe(problem)
    plan = plan_problems([problem], engine)[0]  # refuses before anything is written
    folder.begin(*start)
    if folder.finished:
        model = Dictionary.load(folder.model)
        check_finished(model, str(folder.path), identity)
        return model
    state = None
    if (last := folder.last(identity)) is not None:
        state, basis = last
        problem = Problem(problem.source, basis, problem.config)
    folder.write_options({**_named(patches), **identity["config"]})
    folder.log("start", iteration=state.iteration if state else 0, plan=plan.summary(), **identity)

    def report(event: dict[str, Any]) -> None:
        folder.log("iteration", **event)
        if progress is not None:
            progress(event)

    def checkpoint(states: list[State]) -> None:
        if not states[0].finished:
            folder.save(states[0], problem.basis, identity)

    model = _learn([problem], [state], engine, [identity], report, checkpoint)[0]
    model.save(folder.model)
    folder.log("end", mse=model.mse, atoms_sha256=model.sha256)
    return model


def _named(patches: Any) -> dict[str, str]:
    """Where the patches are, for the options that repeat a run; nothing for arrays."""
    if isinstance(patches, StoredPatches):
        return {"patches": patches.store.url}
    if isinstance(patches, str | Path):
        return {"patches": open_patches(patches).store.url}
    return {}


def _learn(
    problems: list[Problem],
    states: Sequence[State | None],
    engine: Engine,
    identities: list[dict[str, Any]],
    progress: Progress | None,
    checkpoint: Callable[[list[State]], None] = lambda _: None,
) -> list[Dictionary]:
    """Start or continue all problems, and make dictionaries of the results."""
    n_patches = sum(problem.source.n_patches for problem in problems)
    began = time.perf_counter()

    def on_iteration(current: list[State]) -> None:
        nonlocal began
        checkpoint(current)
        seconds = time.perf_counter() - began
        began = time.perf_counter()
        if progress is not None:
            progress(_event(problems, current, seconds, n_patches))

    first = [
        state or State(0, start_atoms(problem))
        for problem, state in zip(problems, states, strict=True)
    ]
    final = learn_problems(problems, first, engine, on_iteration)
    return [
        _dictionary(problem, state, identity)
        for problem, state, identity in zip(problems, final, identities, strict=True)
    ]


def _event(
    problems: list[Problem], states: list[State], seconds: float, n_patches: int
) -> dict[str, Any]:
    return {
        "iteration": max(state.iteration for state in states),
        "n_iterations": max(problem.config.n_iterations for problem in problems),
        "finished": all(state.finished for state in states),
        "mse": float(np.mean([state.history[-1] for state in states])),
        "seconds": seconds,
        "patches_per_second": n_patches / seconds,
    }


def _dictionary(problem: Problem, state: State, identity: dict[str, Any]) -> Dictionary:
    assert state.count is not None
    return Dictionary(
        atoms=state.atoms,
        basis=problem.basis,
        config=problem.config,
        history=np.array(state.history),
        count=state.count,
        patches=identity["patches"],
        numerics=identity["numerics"],
    )
