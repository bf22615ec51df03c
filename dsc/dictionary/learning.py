"""`dsc.learn` and `dsc.learn_many`."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from hashlib import sha256
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsc.basis import make_basis
from dsc.counter import choose
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
)
from dsc.dictionary.model import Dictionary
from dsc.dictionary.run import MODEL, Identity, Run, RunTarget
from dsc.engine import BLOCK, Engine, Plan, numerics_fingerprint, open_engine, readable
from dsc.errors import DscError
from dsc.patches import StoredPatches, as_source, open_patches
from dsc.show import Card, Notice
from dsc.store import is_finished
from dsc.update import UPDATES, random_atoms

PICKS = 2**20  # patch numbers looked at together when atoms start from patches
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
        `diameter`, images: arrays (y, x), files, folders, Zarr and OME-Zarr arrays, one or several,
        as `open_images` takes them.
    n_atoms, sparsity
        Atoms in the dictionary, and at most in the code of a patch.
    run
        A folder for checkpoints, the log of events and the model. None keeps nothing on disk.
    resume
        Continue the run in that folder from its last complete iteration, if there is one.
    progress
        As in `learn_many`: None, the default, shows a live card in a notebook.
    **options
        The other fields of `LearnConfig`: n_angles, n_iterations, basis ("disk", "bessel",
        "annular", "pixels"), pursuit ("ols", "omp"), refine, tolerance, update ("ksvd", "mod"),
        init ("random", "patches"), replace_twins, min_improvement, seed. And how to run, as in
        `learn_many`: scheduler, n_workers, memory_limit, patience, tls, overwrite. And for
        images, which patches to take, as in `PatchConfig`: diameter, stride, min_std, center, unit,
        per_image and so on; they are written beside the run folder, to RUN-patches.zarr, which the
        workers of a cluster must be able to read (without `run`, to a local temporary folder).

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
    with patches_of(patches, cut, config, target, progress) as source:
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
                folder.write_options({**_named(problems[0][0]), **identity["config"]})
            folder.log(Start(folder.iteration, plans[0].summary(), identity, engine.place, []))
            models = advance(made, engine, folder)
            for name, model in zip(names, models, strict=True):
                if not is_finished(folder.path / name):  # of many, some may be there already
                    model.save(folder.path / name)
            folder.log(end_of(models))
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
    began = time.perf_counter()
    for current in iterate(problems, states, engine):
        states = current
        finished = all(state.finished for state in states)
        if run is not None and not finished:
            run.save(problems, states)
        seconds, began = time.perf_counter() - began, time.perf_counter()
        event = Iteration(
            iteration=max(state.iteration for state in states),
            n_iterations=max(problem.config.n_iterations for problem in problems),
            finished=finished,
            mse=float(np.mean([state.history[-1] for state in states])),
            seconds=seconds,
            patches_per_second=n_patches / seconds,
            problems=problems,
            states=states,
        )
        engine.report(event)
    numerics = numerics_fingerprint()
    return [
        Dictionary(
            atoms=state.atoms,
            basis=problem.basis,
            config=problem.config,
            history=np.array(state.history),
            count=state.count,
            patches=problem.patches,
            numerics=numerics,
        )
        for problem, state in zip(problems, states, strict=True)
    ]


def end_of(models: Sequence[Dictionary]) -> End:
    """The last event of a run."""
    total = sha256("".join(model.sha256 for model in models).encode()).hexdigest()
    mse = float(np.mean([model.mse for model in models]))
    return End(mse, models[0].sha256 if len(models) == 1 else total)


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
    """

    plan: Plan
    n_threads: int
    memory: int
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        others = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "plan"}
        return {**self.plan.summary(), **others}

    def lines(self) -> dict[str, str]:
        """What people want to know, by name."""
        plan = self.plan
        kept = "kept in memory" if plan.keep_coords else "streamed anew in every iteration"
        return {
            "patches": f"{plan.n_patches:,}, in blocks of {BLOCK:,}",
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
    return LearnPlan(made, n_threads, memory, work / n_threads)


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


def identity_of(problems: Sequence[Problem]) -> Identity:
    """What decides the results; the parts of many problems are numbered."""
    identity: Identity = {}
    for i, problem in enumerate(problems):
        number = f" {i}" if len(problems) > 1 else ""
        identity[f"config{number}"] = asdict(problem.config)
        identity[f"patches{number}"] = problem.patches
    return {**identity, "numerics": numerics_fingerprint()}


def _named(patches: Any) -> dict[str, str]:
    """The path of the patches, for the options that repeat a run; nothing for arrays."""
    if isinstance(patches, StoredPatches):
        return {"patches": patches.store.url}
    if isinstance(patches, str | Path):
        return {"patches": open_patches(patches).store.url}
    return {}
