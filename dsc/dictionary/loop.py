"""The outer loop: code all patches, sum statistics, solve for new atoms; one graph per iteration.

`learn_problems` advances a list of problems together, which is how the dictionaries of many classes
train in parallel. One dictionary is the list of one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from dsc.basis import SteerableBasis
from dsc.dictionary.config import SETTLE, LearnConfig
from dsc.engine import BLOCK, Engine, Job, Plan, check_plan, job_graph, make_plan, part_tasks
from dsc.engine.tree import merge_tree
from dsc.pursuit import encode
from dsc.update.solve import solve
from dsc.update.statistics import (
    Statistics,
    Usage,
    accumulate,
    measure,
    statistics_bytes,
    worth_merging,
)

Floats = NDArray[np.float32]


class PatchSource(Protocol):
    """Where patches come from; see `dsc.patches`."""

    @property
    def n_patches(self) -> int: ...  # noqa: D102
    @property
    def diameter(self) -> int: ...  # noqa: D102
    @property
    def center(self) -> bool: ...  # noqa: D102
    @property
    def unit(self) -> bool: ...  # noqa: D102
    @property
    def fingerprint(self) -> str: ...  # noqa: D102
    def part(self, start: int, stop: int) -> PatchSource: ...  # noqa: D102
    def read(self, basis: SteerableBasis, start: int, stop: int) -> Floats: ...  # noqa: D102
    def read_with_rest(  # noqa: D102
        self, basis: SteerableBasis, start: int, stop: int
    ) -> tuple[Floats, Floats]: ...


@dataclass(frozen=True, eq=False)
class Problem:
    """One dictionary to learn."""

    source: PatchSource
    basis: SteerableBasis
    config: LearnConfig

    @property
    def n_angles(self) -> int:
        """Size of the angle grid."""
        return self.config.resolve(self.basis)


@dataclass(frozen=True, eq=False)
class State:
    """Where the learning of one dictionary stands.

    Attributes
    ----------
    iteration
        Updates done.
    atoms
        (atom, coord) after them.
    history
        Mean squared error per pixel of the disk, of the atoms after 0, 1, … updates.
    count
        (atom,) uses in the last pass.
    rest
        Energy of all patches outside the span of the basis; None before the first pass.
    finished
        Whether the final coding pass has been made.
    """

    iteration: int
    atoms: Floats
    history: tuple[float, ...] = ()
    count: NDArray[np.int64] | None = None
    rest: float | None = None
    finished: bool = False


@dataclass(frozen=True, eq=False)
class Pass:
    """What one pass over the patches leaves: statistics (or their usage alone), and the rest."""

    statistics: Statistics | Usage
    rest: float

    def merge(self, other: Self) -> Self:
        """The pass over the patches of both."""
        merged = self.statistics.merge(other.statistics)  # type: ignore[arg-type]
        return type(self)(merged, self.rest + other.rest)


@dataclass(frozen=True)
class Part:
    """The patches of one task: an aligned run of leaves; no source where coordinates are kept."""

    source: PatchSource | None
    start: int
    stop: int
    leaf_size: int


def plan_problems(problems: Sequence[Problem], engine: Engine) -> list[Plan]:
    """The plan of every problem, checked against the memory."""
    plans = []
    for problem in problems:
        config, basis = problem.config, problem.basis
        plan = make_plan(
            problem.source.n_patches,
            basis.n_coords,
            basis.n_pixels,
            statistics_bytes(config.update, config.n_atoms, basis),
            worth_merging(config.n_atoms, config.sparsity),
            engine.resources,
            len(problems),
        )
        check_plan(plan, engine.resources)
        plans.append(plan)
    return plans


def learn_problems(
    problems: Sequence[Problem],
    states: Sequence[State],
    engine: Engine,
    on_iteration: Callable[[list[State]], None] = lambda _: None,
) -> list[State]:
    """Advance all problems from `states` to the end, final coding pass included."""
    plans = plan_problems(problems, engine)
    parts = [_parts(problem, plan) for problem, plan in zip(problems, plans, strict=True)]
    kept = [
        engine.persist(part_tasks(read_part, part, basis=problem.basis)) if plan.keep_coords else []
        for problem, plan, part in zip(problems, plans, parts, strict=True)
    ]
    parts = [
        [replace(part, source=None) for part in mine] if values else mine
        for mine, values in zip(parts, kept, strict=True)
    ]
    current = list(states)
    while active := [i for i, state in enumerate(current) if not state.finished]:
        jobs = [_job(problems[i], current[i], parts[i], kept[i], plans[i].fan_in) for i in active]
        outcomes = engine.compute([job_graph(job) for job in jobs])
        for i, outcome in zip(active, outcomes, strict=True):
            current[i] = _next_state(problems[i], current[i], outcome)
        on_iteration(current)
    return current


def _parts(problem: Problem, plan: Plan) -> list[Part]:
    return [
        Part(problem.source.part(start, stop), start, stop, plan.leaf_size)
        for start, stop in plan.spans()
    ]


def _is_last(problem: Problem, state: State) -> bool:
    """Whether the next pass only measures: all updates are done, or no longer help."""
    least, errors = problem.config.min_improvement, state.history
    stalled = least is not None and len(errors) > 1 and errors[-2] - errors[-1] < least * errors[-2]
    return stalled or state.iteration >= problem.config.n_iterations


def _job(problem: Problem, state: State, parts: list[Part], kept: list[Any], fan_in: int) -> Job:
    config = problem.config
    settling = state.iteration >= config.n_iterations - SETTLE
    shared = {
        "atoms": state.atoms,
        "basis": problem.basis,
        "config": replace(config, replace_twins=None) if settling else config,
        "need": (state.rest is None, not _is_last(problem, state)),
    }
    return Job(code_part, parts, solve_pass, shared, kept, fan_in)


def _next_state(problem: Problem, state: State, outcome: tuple[Floats, Usage, float]) -> State:
    atoms, usage, rest = outcome
    rest = rest if state.rest is None else state.rest
    error = (usage.pixel_sse + rest) / (usage.n_patches * problem.basis.n_pixels)
    last = _is_last(problem, state)
    return State(
        iteration=state.iteration + (not last),
        atoms=atoms,
        history=(*state.history, error),
        count=usage.count,
        rest=rest,
        finished=last,
    )


def read_part(part: Part, *, basis: SteerableBasis) -> tuple[Floats, Floats]:
    """Coordinates and rest of a task's patches, to be kept between iterations."""
    assert part.source is not None
    return part.source.read_with_rest(basis, part.start, part.stop)


def code_part(
    part: Part,
    kept: tuple[Floats, Floats] | None,
    *,
    atoms: Floats,
    basis: SteerableBasis,
    config: LearnConfig,
    need: tuple[bool, bool],
) -> Pass:
    """Code a task's patches and sum their statistics, leaf by leaf; need = (rest, update)."""

    def leaves() -> Iterator[Pass]:
        for start in range(part.start, part.stop, part.leaf_size):
            stop = min(start + part.leaf_size, part.stop)
            blocks = _blocks(part, kept, basis, start, stop, need[0])
            yield _leaf(blocks, atoms, basis, config, update=need[1])

    return merge_tree(leaves())


def _blocks(
    part: Part,
    kept: tuple[Floats, Floats] | None,
    basis: SteerableBasis,
    start: int,
    stop: int,
    with_rest: bool,
) -> Iterator[tuple[int, Floats, float]]:
    """(first patch, coordinates, rest) of each block of a leaf."""
    assert kept is not None or part.source is not None
    for begin in range(start, stop, BLOCK):
        end = min(begin + BLOCK, stop)
        if kept is not None:
            span = slice(begin - part.start, end - part.start)
            yield begin, kept[0][span], float(kept[1][span].sum(dtype=np.float64))
        elif with_rest and part.source is not None:
            coords, rest = part.source.read_with_rest(basis, begin, end)
            yield begin, coords, float(rest.sum(dtype=np.float64))
        elif part.source is not None:
            yield begin, part.source.read(basis, begin, end), 0.0


def _leaf(
    blocks: Iterator[tuple[int, Floats, float]],
    atoms: Floats,
    basis: SteerableBasis,
    config: LearnConfig,
    update: bool,
) -> Pass:
    """The statistics of a leaf, its blocks added one after the other."""
    statistics: Any = None
    total_rest = 0.0
    for first, coords, rest in blocks:
        total_rest += rest
        codes = encode(coords, atoms, basis, config.sparsity, config.n_angles)
        if update:
            statistics = accumulate(coords, codes, atoms, basis, config.update, first, statistics)
        else:
            usage, _ = measure(coords, codes, atoms, basis, first)
            statistics = usage if statistics is None else statistics.merge(usage)
    return Pass(statistics, total_rest)


def solve_pass(
    merged: Pass,
    *,
    atoms: Floats,
    basis: SteerableBasis,
    config: LearnConfig,
    need: tuple[bool, bool],  # noqa: ARG001 (shared with the maps)
) -> tuple[Floats, Usage, float]:
    """New atoms from the merged statistics (or the same ones after a measuring pass)."""
    if isinstance(merged.statistics, Usage):
        return atoms, merged.statistics, merged.rest
    new = solve(merged.statistics, atoms, basis, config.replace_twins)
    return new, merged.statistics.usage, merged.rest
