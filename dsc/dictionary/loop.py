"""The outer loop: code all patches, sum statistics, solve for new atoms; one graph per iteration.

`iterate` advances a list of problems together, which is how the dictionaries of many classes train
in parallel. One dictionary is the list of one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsc.basis import SteerableBasis
from dsc.dictionary.config import SETTLE, LearnConfig
from dsc.engine import (
    BLOCK,
    Engine,
    Job,
    MergeTree,
    Plan,
    Workload,
    check_plan,
    job_graph,
    make_plan,
    part_tasks,
)
from dsc.images import CACHE_BYTES
from dsc.patches import PatchSource
from dsc.pursuit import Coder, coder_bytes
from dsc.show import Stage
from dsc.update import (
    UPDATES,
    AnyStatistics,
    MeasureStatistics,
    Usage,
    measure,
    merge_patches,
    solve,
    solve_bytes,
    statistics_bytes,
)

Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Problem:
    """One dictionary to learn."""

    source: PatchSource
    basis: SteerableBasis
    config: LearnConfig
    name: str = ""  # what people call it, where there are many

    @property
    def patches(self) -> dict[str, Any]:
        """What it is learned from, for the model and for resuming."""
        source = self.source
        return {
            "fingerprint": source.fingerprint,
            "n_patches": source.n_patches,
            "center": source.center,
            "unit": source.unit,
        }


@dataclass(frozen=True, eq=False)
class State:
    """Where the learning of one dictionary stands."""

    iteration: int  # updates done
    atoms: Floats  # (atom, coord) after them
    # mean squared error per pixel of the disk, of the atoms after 0, 1, … updates
    history: tuple[float, ...]
    count: NDArray[np.int64]  # (atom,) uses in the last pass; zeros before the first
    # energy of all patches outside the span of the basis; NaN before the first pass
    rest: float = np.nan
    finished: bool = False  # whether the final coding pass has been made

    @staticmethod
    def start(atoms: Floats) -> State:
        """Before the first pass."""
        return State(0, atoms, (), np.zeros(len(atoms), np.int64))


@dataclass(frozen=True, eq=False)
class Step:
    """What all tasks of one pass of one problem share."""

    coder: Coder  # codes with the atoms of this pass
    statistics: type[AnyStatistics]  # what is summed: for an update, or only to measure
    replace_twins: float | None  # as in `solve`
    with_rest: bool  # whether the energy outside the span is summed too
    tolerance: float = 0.0  # residual energy at which the coding of a patch stops

    def is_measuring(self) -> bool:
        """Whether atoms stay as they are."""
        return self.statistics is MeasureStatistics


@dataclass(frozen=True)
class Part:
    """The patches of one task: an aligned run of leaves, read in every pass."""

    source: PatchSource
    start: int
    stop: int
    leaf_size: int

    def read(
        self, basis: SteerableBasis, start: int, stop: int, with_rest: bool
    ) -> tuple[Floats, float]:
        """Coordinates (patch, coord), and their energy outside the span if it is asked for."""
        if not with_rest:
            return self.source.read(basis, start, stop), 0.0
        coords, rest = self.source.read_with_rest(basis, start, stop)
        return coords, float(rest.sum(dtype=np.float64))


@dataclass(frozen=True, eq=False)
class MemoryPart:
    """The same with coordinates that are kept in memory between passes."""

    coords: Floats
    rest: Floats
    start: int
    stop: int
    leaf_size: int

    def read(
        self,
        basis: SteerableBasis,  # noqa: ARG002 (the other kind of part uses both)
        start: int,
        stop: int,
        with_rest: bool,  # noqa: ARG002
    ) -> tuple[Floats, float]:
        """Coordinates (patch, coord), and their energy outside the span."""
        rows = slice(start - self.start, stop - self.start)
        return self.coords[rows], float(self.rest[rows].sum(dtype=np.float64))

    def __sizeof__(self) -> int:
        return self.coords.nbytes + self.rest.nbytes  # what Dask counts


def workload_of(n_patches: int, basis: SteerableBasis, config: LearnConfig) -> Workload:
    """What a pass over so many patches takes."""
    n_atoms, entries = config.n_atoms, basis.n_pixels * basis.n_coords
    coding = coder_bytes(n_atoms, basis, config.resolve(basis), config.sparsity, config.refine)
    solving = solve_bytes(config.update, n_atoms, basis, config.replace_twins is not None)
    return Workload(
        n_patches,
        basis.n_coords,
        basis.n_pixels,
        statistics_bytes(config.update, n_atoms, basis),
        merge_patches(n_atoms, config.sparsity),
        shared_bytes=coding.shared + 16 * entries + CACHE_BYTES,  # the basis as kernels want it
        own_bytes=coding.own,
        thread_bytes=coding.thread,
        solve_bytes=max(solving, 32 * entries),  # a checkpoint copies the basis
    )


def plan_work(work: Sequence[Workload], engine: Engine) -> list[Plan]:
    """The plan of each of the workloads that run together, checked against the memory."""
    plans = [make_plan(one, engine.resources, len(work)) for one in work]
    for plan in plans:
        check_plan(plan, engine.resources)
    return plans


def plan_problems(problems: Sequence[Problem], engine: Engine) -> list[Plan]:
    """The plan of every problem, checked against the memory."""
    return plan_work(
        [workload_of(one.source.n_patches, one.basis, one.config) for one in problems], engine
    )


def iterate(
    problems: Sequence[Problem], states: Sequence[State], engine: Engine
) -> Iterator[list[State]]:
    """Advance all problems from `states` to the end, final coding pass included.

    Yields the states after every pass.
    """
    plans = plan_problems(problems, engine)
    parts = [_parts(problem, plan, engine) for problem, plan in zip(problems, plans, strict=True)]
    current = list(states)
    while active := [i for i, state in enumerate(current) if not state.finished]:
        steps = [_step(problems[i], current[i]) for i in active]
        jobs = [
            Job(code_part, parts[i], solve_pass, step, plans[i].fan_in, problems[i].name)
            for i, step in zip(active, steps, strict=True)
        ]
        outcomes = engine.compute([job_graph(job) for job in jobs], _stage(problems, current))
        for i, step, outcome in zip(active, steps, outcomes, strict=True):
            current[i] = _next_state(current[i], step, *outcome)
        yield list(current)


def _parts(problem: Problem, plan: Plan, engine: Engine) -> list[Any]:
    """Parts of the patches, or delayed parts whose coordinates the cluster keeps."""
    parts = [
        Part(problem.source.part(start, stop), start, stop, plan.leaf_size)
        for start, stop in plan.spans()
    ]
    if plan.keep_coords:
        stage = Stage("read the patches", problem.source.n_patches)
        return engine.persist(part_tasks(load_part, parts, problem.basis), stage)
    return parts


def _stage(problems: Sequence[Problem], states: Sequence[State]) -> Stage:
    """The next pass over the patches of all problems that are not finished, for a progress bar."""
    active = [pair for pair in zip(problems, states, strict=True) if not pair[1].finished]
    index = max(state.iteration for _, state in active)
    total = max(problem.config.n_iterations for problem, _ in active)
    name = "final pass" if index >= total else f"iteration {index + 1} of {total}"
    n_patches = sum(problem.source.n_patches for problem, _ in active)
    return Stage(name, n_patches, index, total + 1)


def _step(problem: Problem, state: State) -> Step:
    """The next pass: the last one only measures, once all updates are done or no longer help."""
    config, errors = problem.config, state.history
    least = config.min_improvement
    stalled = least is not None and len(errors) > 1 and errors[-2] - errors[-1] < least * errors[-2]
    is_last = stalled or state.iteration >= config.n_iterations
    settles = state.iteration >= config.n_iterations - SETTLE
    return Step(
        config.coder(state.atoms, problem.basis),
        MeasureStatistics if is_last else UPDATES[config.update],
        None if settles else config.replace_twins,
        with_rest=bool(np.isnan(state.rest)),
        tolerance=config.stop(problem.basis),
    )


def _next_state(state: State, step: Step, atoms: Floats, usage: Usage) -> State:
    rest = usage.rest if step.with_rest else state.rest
    error = (usage.pixel_sse + rest) / (usage.n_patches * step.coder.basis.n_pixels)
    return State(
        iteration=state.iteration + (not step.is_measuring()),
        atoms=atoms,
        history=(*state.history, error),
        count=usage.count,
        rest=rest,
        finished=step.is_measuring(),
    )


def load_part(part: Part, basis: SteerableBasis) -> MemoryPart:
    """A task's patches with their coordinates."""
    coords, rest = part.source.read_with_rest(basis, part.start, part.stop)
    return MemoryPart(coords, rest, part.start, part.stop, part.leaf_size)


def code_part(part: Part | MemoryPart, step: Step) -> AnyStatistics:
    """Code a task's patches and sum their statistics, leaf by leaf.

    Within a leaf, blocks are added one after the other to the statistics of the first.
    """
    coder = step.coder
    tree = MergeTree[AnyStatistics]()
    for start in range(part.start, part.stop, part.leaf_size):
        stop = min(start + part.leaf_size, part.stop)
        statistics: Any = None
        for begin in range(start, stop, BLOCK):
            end = min(begin + BLOCK, stop)
            coords, rest = part.read(coder.basis, begin, end, step.with_rest)
            codes = coder.encode(coords, step.tolerance)
            usage, residual = measure(coder, coords, codes, begin, rest)
            if statistics is None:
                statistics = step.statistics.zero(usage, coder)
            else:
                statistics = replace(statistics, usage=statistics.usage.merge(usage))
            statistics.add(residual, codes, coder)
        tree.add(statistics)
    return tree.total()


def solve_pass(statistics: AnyStatistics, step: Step) -> tuple[Floats, Usage]:
    """New atoms from the merged statistics, or the same ones after a pass that only measures."""
    coder = step.coder
    if isinstance(statistics, MeasureStatistics):
        return coder.atoms, statistics.usage
    new = solve(statistics, coder.atoms, coder.basis, step.replace_twins)
    return new, statistics.usage
