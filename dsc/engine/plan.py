"""The plan of a pass over the patches: pure arithmetic, made and checked before the first task.

A **leaf** is a run of consecutive patches whose length is a power of two and depends on the problem
alone. Statistics are summed patch by patch within a leaf and merged on the aligned binary tree over
leaf numbers; a **task** covers an aligned power-of-two run of leaves. So task size, number of
workers and memory change the plan, never the sums.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from dsc.errors import DscError, readable

BLOCK = 4096  # patches held as coordinates at a time while a leaf is summed
TASKS_PER_THREAD = 13  # over the patches; with merges and the solve, 16 in all
FAN_IN = 8  # results merged by one task, where they are small
MIN_LEAF, LEAVES = 256, 32  # a small set is cut into 17 to 32 leaves
FEWEST_LEAVES = 8  # or into 5 to 8, where merging would cost more than coding
KEEP_FRACTION = 0.25  # of the memory may hold coordinates between iterations


@dataclass(frozen=True)
class Resources:
    """What tasks run on: threads in all, and bytes for each of them."""

    n_threads: int
    memory: int
    memory_of: str = "this process"

    @property
    def memory_per_thread(self) -> int:
        """Bytes that one running task may use."""
        return self.memory // self.n_threads


@dataclass(frozen=True)
class Workload:
    """What a pass over the patches of one problem takes."""

    n_patches: int  # how many patches, and what each of them is
    n_coords: int
    n_pixels: int
    statistics_bytes: int  # memory of one statistics value
    merge_patches: int  # patches whose statistics take about as long to sum as to merge


@dataclass(frozen=True)
class Plan:
    """How one problem is cut into tasks, and what a task needs."""

    n_patches: int
    leaf_size: int
    n_leaves: int
    leaves_per_task: int
    n_tasks: int
    fan_in: int
    statistics_bytes: int
    task_bytes: int
    coords_bytes: int
    keep_coords: bool
    kept_bytes: int  # of all problems together

    @property
    def graph_size(self) -> int:
        """Tasks of one iteration: maps, merges and the solve."""
        size, width = self.n_tasks + 1, self.n_tasks
        while width > 1:
            width = -(-width // self.fan_in)
            size += width
        return size

    def spans(self) -> list[tuple[int, int]]:
        """(first, last + 1) patch of every task."""
        step = self.leaf_size * self.leaves_per_task
        return [
            (begin, min(begin + step, self.n_patches)) for begin in range(0, self.n_patches, step)
        ]

    def summary(self) -> dict[str, Any]:
        """The plan as plain values."""
        return {**asdict(self), "block": BLOCK, "graph_size": self.graph_size}


def leaf_size(work: Workload) -> int:
    """Patches in a leaf: enough that merging statistics costs little against making them."""
    most = _power_of_two(64 * work.n_coords)
    many = min(most, _power_of_two(-(-work.n_patches // LEAVES)))
    few = _power_of_two(-(-work.n_patches // FEWEST_LEAVES))
    return max(MIN_LEAF, many, min(_power_of_two(work.merge_patches), few))


def make_plan(work: Workload, resources: Resources, n_problems: int = 1) -> Plan:
    """Cut a workload into tasks for these resources, which `n_problems` alike share."""
    n_patches, n_coords, statistics_bytes = work.n_patches, work.n_coords, work.statistics_bytes
    size = leaf_size(work)
    n_leaves = -(-n_patches // size)
    wanted = max(1, (TASKS_PER_THREAD * resources.n_threads - 1) // n_problems)
    per_task = _power_of_two(-(-n_leaves // wanted))
    rows = min(BLOCK, size)
    # coordinates, residuals, and the pixels they come from in float64
    block_bytes = rows * (n_coords * (4 + 4) + work.n_pixels * 8)
    small = FAN_IN * statistics_bytes <= 0.1 * resources.memory_per_thread
    fan_in = FAN_IN if small else 2
    copies = max(fan_in, 2 + (per_task - 1).bit_length())
    coords_bytes = 4 * n_coords * n_patches
    keep_coords = coords_bytes * n_problems <= KEEP_FRACTION * resources.memory
    return Plan(
        n_patches=n_patches,
        leaf_size=size,
        n_leaves=n_leaves,
        leaves_per_task=per_task,
        n_tasks=-(-n_leaves // per_task),
        fan_in=fan_in,
        statistics_bytes=statistics_bytes,
        task_bytes=block_bytes + copies * statistics_bytes,
        coords_bytes=coords_bytes,
        keep_coords=keep_coords,
        kept_bytes=coords_bytes * n_problems * keep_coords,
    )


def check_plan(plan: Plan, resources: Resources) -> None:
    """Refuse a plan whose task does not fit, naming the largest part and what to change."""
    available = (resources.memory - plan.kept_bytes) // resources.n_threads
    if plan.task_bytes <= available:
        return
    block_bytes = plan.task_bytes - _statistics_copies(plan) * plan.statistics_bytes
    parts = {
        "statistics": plan.task_bytes - block_bytes,
        "block of patches": block_bytes,
    }
    largest = max(parts, key=lambda name: parts[name])
    remedy = {
        "statistics": 'use update="mod", lower n_atoms, or give more memory',
        "block of patches": "use a smaller diameter, or give more memory",
    }[largest]
    raise DscError(
        f"one task needs about {readable(plan.task_bytes)} but {resources.memory_of} has "
        f"{readable(available)} for each of {resources.n_threads} threads; the largest part is the "
        f"{largest} ({readable(parts[largest])}): {remedy}"
    )


def _statistics_copies(plan: Plan) -> int:
    return max(plan.fan_in, 2 + (plan.leaves_per_task - 1).bit_length())


def _power_of_two(value: int) -> int:
    """The smallest power of two that is at least `value`."""
    return 1 << max(0, value - 1).bit_length()


def parse_bytes(text: str | int) -> int:
    """Bytes from a number or from words such as "1GB" and "512 MiB"."""
    from dask.utils import parse_bytes as parse

    try:
        value = int(parse(text))
    except (ValueError, TypeError) as error:
        raise DscError(f"memory_limit: found {text!r}, need bytes such as '1GB'") from error
    if value <= 0:
        raise DscError(f"memory_limit: found {text!r}, need more than 0 bytes")
    return value
