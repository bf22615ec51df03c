"""The outer loop: code all patches, sum statistics, solve for new atoms; one graph per update.

An update follows every pass over the patches, or online every batch of a pass. `iterate` advances a
list of problems together, which is how the dictionaries of many classes train in parallel. One
dictionary is the list of one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsc.basis import SteerableBasis
from dsc.dictionary.batches import Batches
from dsc.dictionary.config import FORGET, SETTLE, LearnConfig
from dsc.engine import (
    BLOCK,
    Engine,
    Job,
    MergeTree,
    Piece,
    Plan,
    Workload,
    check_plan,
    job_graph,
    leaf_size,
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
    ModStatistics,
    Running,
    Usage,
    measure,
    merge_patches,
    patch_energy,
    solve,
    solve_bytes,
    statistics_bytes,
    update_online,
)

Floats = NDArray[np.float32]
RUNNING = 5  # copies of the running statistics of an online update: kept, sent, faded, new, saved


@dataclass(frozen=True, eq=False)
class Problem:
    """One dictionary to learn."""

    source: PatchSource
    basis: SteerableBasis
    config: LearnConfig
    name: str = ""  # what people call it, where there are many
    start: Floats | None = None  # atoms of another dictionary that learning starts from

    @property
    def patches(self) -> dict[str, Any]:
        """What it is learned from, for the model and for resuming."""
        source = self.source
        reading = getattr(source, "reading", {})
        return {
            "fingerprint": source.fingerprint,
            "n_patches": source.n_patches,
            "center": source.center,
            "unit": source.unit,
            **({"reading": reading} if reading else {}),
        }

    @cached_property
    def batches(self) -> Batches:
        """How a pass is taken."""
        n_patches, config = self.source.n_patches, self.config
        return Batches.of(n_patches, leaf_size(workload_of(n_patches, self.basis, config)), config)


@dataclass(frozen=True)
class PassSums:
    """Sums over the patches of a pass so far, as in `Usage`."""

    n_patches: int = 0
    pixel_sse: float = 0.0
    rest: float = 0.0
    energy: float = 0.0
    variation: float = 0.0

    def add(self, usage: Usage) -> PassSums:
        """With some more patches."""
        return PassSums(*(getattr(self, f) + getattr(usage, f) for f in self.__match_args__))


@dataclass(frozen=True, eq=False)
class State:
    """Where the learning of one dictionary stands."""

    iteration: int  # passes with updates that are done
    atoms: Floats  # (atom, coord) after them
    # mean squared error per pixel of the disk, of the atoms after 0, 1, … updates; online that of
    # each patch of a pass when its batch was coded
    history: tuple[float, ...]
    # (atom,) uses in the last pass, or in the batches of this one; zeros before the first
    count: NDArray[np.int64]
    # energy of all patches outside the span of the basis; NaN before the first pass
    rest: float = np.nan
    # mean energy per pixel of the disk, of the patches as prepared; and that about the mean of each
    energy: float = np.nan
    variation: float = np.nan
    finished: bool = False  # whether the final coding pass has been made
    batch: int = 0  # batches of this pass that are done
    sums: PassSums = field(default_factory=PassSums)  # over their patches
    running: Running | None = None  # what an online update keeps

    @staticmethod
    def start(atoms: Floats) -> State:
        """Before the first pass."""
        return State(0, atoms, (), np.zeros(len(atoms), np.int64))

    @property
    def share(self) -> float:
        """Share of the energy of the patches that the last pass left; NaN if it is not known."""
        return share_left(self.history[-1], self.energy) if self.history else np.nan


def share_left(mse: float, energy: float) -> float:
    """Share of the energy left, both per pixel: 0 of nothing, NaN of what is not known."""
    return 0.0 if energy == 0 else mse / energy


@dataclass(frozen=True, eq=False)
class Step:
    """What all tasks of one pass of one problem share."""

    coder: Coder  # codes with the atoms of this pass
    statistics: type[AnyStatistics]  # what is summed: for an update, or only to measure
    replace_twins: float | None  # as in `solve`
    with_rest: bool  # whether the energies of the patches are summed too, in and outside the span
    tolerance: float = 0.0  # residual energy at which the coding of a patch stops
    is_online: bool = False  # whether an update follows a batch

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
    summed = statistics_bytes(config.update, n_atoms, basis)
    running = RUNNING * summed if config.mode == "online" else 0
    work = Workload(
        n_patches,
        basis.n_coords,
        basis.n_pixels,
        summed,
        merge_patches(n_atoms, config.sparsity),
        shared_bytes=coding.shared + 16 * entries + CACHE_BYTES,  # the basis as kernels want it
        own_bytes=coding.own + running,
        thread_bytes=coding.thread,
        solve_bytes=max(solving, 32 * entries),  # a checkpoint copies the basis
    )
    if config.mode == "batch":
        return work
    return replace(work, n_pieces=Batches.of(n_patches, leaf_size(work), config).n_tasks)


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

    Yields the states after every graph: a pass of each problem, or online a batch of its pass. No
    problem is more than a pass ahead of another. Patches are cut into tasks anew for
    workers that join.
    """
    plans, parts = _cut(problems, engine)
    current = list(states)
    while active := _behind(current):
        if (now := engine.current()) is not engine:
            engine, parts = now, []  # what is kept of the old parts is given back first
            plans, parts = _cut(problems, engine)
        steps = [_step(problems[i], current[i]) for i in active]
        jobs = [
            Job(
                code_part,
                _batch(problems[i], current[i], step, plans[i], parts[i]),
                solve_pass,
                step,
                plans[i].fan_in,
                problems[i].name,
                _kept(problems[i], current[i], step),
            )
            for i, step in zip(active, steps, strict=True)
        ]
        stage = _stage([problems[i] for i in active], [current[i] for i in active], steps)
        outcomes = engine.compute([job_graph(job) for job in jobs], stage)
        for i, step, outcome in zip(active, steps, outcomes, strict=True):
            current[i] = _next_state(problems[i], current[i], step, *outcome)
        yield list(current)


def _cut(problems: Sequence[Problem], engine: Engine) -> tuple[list[Plan], list[list[Any]]]:
    """The plans of all problems, and their parts."""
    plans = plan_problems(problems, engine)
    return plans, [_parts(*pair, engine) for pair in zip(problems, plans, strict=True)]


def _behind(states: Sequence[State]) -> list[int]:
    """Problems that are not finished and have made the fewest passes."""
    going = [i for i, state in enumerate(states) if not state.finished]
    fewest = min((len(states[i].history) for i in going), default=0)
    return [i for i in going if len(states[i].history) == fewest]


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


def _batch(problem: Problem, state: State, step: Step, plan: Plan, parts: list[Any]) -> list[Any]:
    """The parts of the next graph: all of them, or the spans of the next batch."""
    if not step.is_online:
        return parts
    spans = problem.batches.spans(problem.config.seed, state.iteration, state.batch)
    if not plan.keep_coords:
        source = problem.source
        return [Part(source.part(start, stop), start, stop, stop - start) for start, stop in spans]
    size = plan.leaf_size * plan.leaves_per_task  # of a part; a span lies inside one
    return [Piece(take_span, parts[start // size], (start, stop)) for start, stop in spans]


def _stage(problems: Sequence[Problem], states: Sequence[State], steps: Sequence[Step]) -> Stage:
    """The next graph, for a progress bar: a pass over the patches of these problems, or a batch."""
    index = max(state.iteration for state in states)
    total = max(problem.config.n_iterations for problem in problems)
    name = "final pass" if index >= total else f"iteration {index + 1} of {total}"
    cuts = [problem.batches for problem in problems]
    if not any(step.is_online for step in steps):
        return Stage(name, sum(cut.n_patches for cut in cuts), index, total + 1)
    most = max(cut.n_batches for cut in cuts)
    done = index * most + max(state.batch for state in states)
    return Stage(name, sum(cut.size for cut in cuts), done, (total + 1) * most)


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
        with_rest=bool(np.isnan(state.rest) or np.isnan(state.energy)),
        tolerance=config.stop(problem.basis),
        is_online=config.mode == "online" and not is_last,
    )


def _kept(problem: Problem, state: State, step: Step) -> tuple[Running, float] | tuple[()]:
    """What the update of a batch has from those before it, and how much of that it forgets."""
    if not step.is_online:
        return ()
    config = problem.config
    running = state.running or Running.start(config.n_atoms, problem.basis)
    return running, FORGET if config.forget is None else config.forget


def _next_state(
    problem: Problem,
    state: State,
    step: Step,
    atoms: Floats,
    usage: Usage,
    running: Running | None,
) -> State:
    sums = state.sums.add(usage)
    count = state.count + usage.count if state.batch else usage.count
    if step.is_online and state.batch + 1 < problem.batches.n_batches:
        batch = state.batch + 1
        return replace(state, atoms=atoms, count=count, batch=batch, sums=sums, running=running)
    n_pixels = sums.n_patches * step.coder.basis.n_pixels
    rest, energy, variation = state.rest, state.energy, state.variation
    if step.with_rest:
        rest = sums.rest
        energy, variation = sums.energy / n_pixels, sums.variation / n_pixels
    error = (sums.pixel_sse + rest) / n_pixels
    return State(
        iteration=state.iteration + (not step.is_measuring()),
        atoms=atoms,
        history=(*state.history, error),
        count=count,
        rest=rest,
        energy=energy,
        variation=variation,
        finished=step.is_measuring(),
        running=running,
    )


def load_part(part: Part, basis: SteerableBasis) -> MemoryPart:
    """A task's patches with their coordinates."""
    coords, rest = part.source.read_with_rest(basis, part.start, part.stop)
    return MemoryPart(coords, rest, part.start, part.stop, part.leaf_size)


def take_span(part: MemoryPart, start: int, stop: int) -> MemoryPart:
    """Some of a task's patches, which are one leaf."""
    rows = slice(start - part.start, stop - part.start)
    return MemoryPart(part.coords[rows], part.rest[rows], start, stop, stop - start)


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
            if step.with_rest:
                energy, variation = patch_energy(coords, rest, coder.basis)
                usage = replace(usage, energy=energy, variation=variation)
            if statistics is None:
                statistics = step.statistics.zero(usage, coder)
            else:
                statistics = replace(statistics, usage=statistics.usage.merge(usage))
            statistics.add(residual, codes, coder)
        tree.add(statistics)
    return tree.total()


def solve_pass(
    statistics: AnyStatistics, step: Step, running: Running | None = None, forget: float = 0.0
) -> tuple[Floats, Usage, Running | None]:
    """New atoms from the merged statistics, or the same ones after a pass that only measures.

    Online also from what is kept of the batches before (`running`), which no other task needs.
    """
    coder, usage = step.coder, statistics.usage
    if isinstance(statistics, MeasureStatistics):
        return coder.atoms, usage, None
    if running is not None and isinstance(statistics, ModStatistics):
        atoms, running = update_online(running, statistics, coder, forget)
        return atoms, usage, running
    new = solve(statistics, coder.atoms, coder.basis, step.replace_twins)
    return new, usage, None
