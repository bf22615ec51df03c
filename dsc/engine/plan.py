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
BLOCK_COPIES = 28  # bytes per coordinate: read, coded, its residuals in float32 and float64
KEEP_FRACTION = 0.25  # of the memory may hold coordinates between iterations


@dataclass(frozen=True)
class Resources:
    """What tasks run on: threads in all, and bytes for all of them."""

    n_threads: int
    memory: int
    memory_of: str = "this process"
    n_processes: int = 1  # each has tables of its own

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
    shared_bytes: int = 0  # tables, basis and cache, which all threads and problems look up
    own_bytes: int = 0  # tables of this problem
    thread_bytes: int = 0  # what a thread works with besides a block of patches
    solve_bytes: int = 0  # work space between two passes, besides the statistics
    n_pieces: int = 1  # tasks that a graph has at least, of small pieces of the patches


@dataclass(frozen=True)
class Plan:
    """How one problem is cut into tasks, and what a task needs."""

    n_patches: int
    leaf_size: int
    n_leaves: int
    leaves_per_task: int
    n_tasks: int
    fan_in: int
    n_threads: int
    statistics_bytes: int
    block_bytes: int  # what a thread holds of patches
    n_waiting: int  # statistics that wait to be merged, at most
    shared_bytes: int
    solve_bytes: int
    coords_bytes: int
    keep_coords: bool
    kept_bytes: int  # of all problems together

    @property
    def task_bytes(self) -> int:
        """Memory of a running task: a block, and statistics on a tree of leaves or of results."""
        depth = (self.leaves_per_task - 1).bit_length()
        mapped = depth + 2 if depth else 1
        merged = self.fan_in.bit_length() + (self.fan_in > 2)  # the last input, and what it makes
        return self.block_bytes + max(mapped, merged) * self.statistics_bytes

    def parts(self) -> dict[str, int]:
        """What is alive when most is, by name; kept coordinates apart, which are given up first."""
        blocks = self.n_threads * self.block_bytes
        running = self.n_threads * self.task_bytes - blocks
        summing = running + self.n_waiting * self.statistics_bytes
        solving = max(0, self.solve_bytes + self.statistics_bytes - summing - blocks)
        return {
            "statistics": summing,
            "blocks of patches": blocks,
            "work space of the update": solving,  # what it needs beyond these two
            "tables": self.shared_bytes,
        }

    @property
    def total_bytes(self) -> int:
        """Memory of all threads together."""
        return sum(self.parts().values()) + self.kept_bytes

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
        made = {"task_bytes": self.task_bytes, "total_bytes": self.total_bytes}
        return {**asdict(self), **made, "block": BLOCK, "graph_size": self.graph_size}


def leaf_size(work: Workload) -> int:
    """Patches in a leaf: enough that merging statistics costs little against making them."""
    most = _power_of_two(64 * work.n_coords)
    many = min(most, _power_of_two(-(-work.n_patches // LEAVES)))
    few = _power_of_two(-(-work.n_patches // FEWEST_LEAVES))
    return max(MIN_LEAF, many, min(_power_of_two(work.merge_patches), few))


def make_plan(work: Workload, resources: Resources, n_problems: int = 1) -> Plan:
    """Cut a workload into tasks for these resources, which `n_problems` alike share.

    Where memory is short, coordinates are not kept, and fewer results wait for one merge.
    """
    coords_bytes = 4 * work.n_coords * work.n_patches * n_problems
    keep = [True, False] if coords_bytes <= KEEP_FRACTION * resources.memory else [False]
    small = FAN_IN * work.statistics_bytes <= 0.1 * resources.memory_per_thread
    plans = [
        _plan(work, resources, n_problems, fan_in, keep_coords)
        for keep_coords in keep
        for fan_in in ([FAN_IN, 2] if small else [2])
    ]
    return next((plan for plan in plans if plan.total_bytes <= resources.memory), plans[-1])


def _plan(
    work: Workload, resources: Resources, n_problems: int, fan_in: int, keep_coords: bool
) -> Plan:
    n_patches, n_threads = work.n_patches, resources.n_threads
    size = leaf_size(work)
    n_leaves = -(-n_patches // size)
    wanted = max(1, (TASKS_PER_THREAD * n_threads - 1) // n_problems)
    per_task = _power_of_two(-(-n_leaves // wanted))
    n_tasks = -(-n_leaves // per_task)
    coords_bytes = 4 * work.n_coords * n_patches
    return Plan(
        n_patches=n_patches,
        leaf_size=size,
        n_leaves=n_leaves,
        leaves_per_task=per_task,
        n_tasks=n_tasks,
        fan_in=fan_in,
        n_threads=n_threads,
        statistics_bytes=work.statistics_bytes,
        block_bytes=min(BLOCK, size) * (BLOCK_COPIES * work.n_coords + 64)
        + 4 * BLOCK * work.n_pixels
        + work.thread_bytes,
        n_waiting=_most_waiting(max(n_tasks, work.n_pieces) * n_problems, fan_in, n_threads),
        shared_bytes=(work.shared_bytes + work.own_bytes * n_problems) * resources.n_processes,
        solve_bytes=work.solve_bytes * min(n_threads, n_problems),
        coords_bytes=coords_bytes,
        keep_coords=keep_coords,
        kept_bytes=coords_bytes * n_problems * keep_coords,
    )


def _most_waiting(n_tasks: int, fan_in: int, n_threads: int) -> int:
    """Results that wait to be merged at the same time, at most.

    Tasks run in order, depth first: after i of them, as many results wait as the digits of i in
    base `fan_in` sum to. Every other thread may hold up one more.
    """
    return max(_digit_sum(i, fan_in) for i in range(n_tasks)) + min(n_threads, n_tasks) - 1


def _digit_sum(number: int, base: int) -> int:
    total = 0
    while number:
        number, digit = divmod(number, base)
        total += digit
    return total


def check_plan(plan: Plan, resources: Resources) -> None:
    """Refuse a plan that does not fit, naming the largest part and what to change."""
    if plan.total_bytes <= resources.memory:
        return
    parts = plan.parts()
    largest = max(parts, key=lambda name: parts[name])
    remedy = {
        "statistics": 'use update="mod", lower n_atoms, use fewer threads, or give more memory',
        "blocks of patches": "use a smaller diameter, use fewer threads, or give more memory",
        "work space of the update": "lower n_atoms, use a smaller diameter, or give more memory",
        "tables": "lower n_angles, lower n_atoms, use a smaller diameter, or give more memory",
    }[largest]
    raise DscError(
        f"learning needs about {readable(plan.total_bytes)} but {resources.memory_of} has "
        f"{readable(resources.memory)} for its {resources.n_threads} threads; the largest part is "
        f"the {largest} ({readable(parts[largest])}): {remedy}"
    )


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
