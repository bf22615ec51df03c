"""The one map-reduce: tasks over parts of the data, merged on the aligned tree, then finished.

The graphs are written as plain Dask graphs, key → (function, arguments), and handed over as one
`Delayed`: making a `Delayed` of every task takes longer than some iterations have to spare.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from dask.delayed import Delayed

from dsc.engine.tree import merge_all

MARK = "dsc"  # begins the token in the keys of our tasks
Key = str | tuple[str, int]


@dataclass(frozen=True, eq=False)
class Piece:
    """A part that is made out of a delayed one by the task over it: make(part, *arguments)."""

    make: Callable[..., Any]
    part: Delayed
    arguments: tuple[Any, ...]


@dataclass(frozen=True)
class Job:
    """One reduction: finish(merged values of map(part, shared), shared, *last).

    The functions are module-level. Parts are in order, each an aligned run of leaves, and travel
    with their task, or are delayed values that the cluster keeps, or pieces of these. `shared` goes
    to every task, `last` to the finish alone: values that Dask does not look into. `fan_in`, a
    power of two, results are merged by one task. The name, of a class for instance, is seen in the
    keys of the tasks.
    """

    map: Callable[[Any, Any], Any]
    parts: Sequence[Any]
    finish: Callable[..., Any]
    shared: Any
    fan_in: int = 2
    name: str = ""
    last: tuple[Any, ...] = ()


def job_graph(job: Job) -> Any:
    """The delayed result of a job: maps, a tree of merges, the finish."""
    shared = _shared_key()
    graph: dict[Key, Any] = {shared: job.shared}
    keys = _part_keys(job.map, len(job.parts), job.name)
    for key, part in zip(keys, job.parts, strict=True):
        _add_map(graph, key, (job.map, part, shared))
    values: list[Key] = list(keys)
    while len(values) > 1:  # a power of two of neighbours: a piece of the aligned tree
        groups = [values[i : i + job.fan_in] for i in range(0, len(values), job.fan_in)]
        values = [_add(graph, merge_all, (merge_all, *group)) for group in groups]
    return Delayed(_add(graph, job.finish, (job.finish, values[0], shared, *job.last)), graph)


def part_tasks(
    function: Callable[[Any, Any], Any], parts: Sequence[Any], shared: Any = None
) -> list[Any]:
    """Delayed `function(part, shared)` of every part."""
    shared_key = _shared_key()
    values = []
    for key, part in zip(_part_keys(function, len(parts)), parts, strict=True):
        graph: dict[Key, Any] = {shared_key: shared}
        _add_map(graph, key, (function, part, shared_key))
        values.append(Delayed(key, graph))
    return values


def part_keys(values: Sequence[Any]) -> set[Key]:
    """The keys of the tasks over parts in the graphs of delayed values, which take the time."""
    return {
        key
        for value in values
        for key, task in dict(value.dask).items()
        if is_part_key(key) and isinstance(task, tuple)  # else it is computed already
    }


def is_part_key(key: Any) -> bool:
    """Whether a key is that of a task over a part, of any graph of ours."""
    return isinstance(key, tuple) and MARK in str(key[0])


def _part_keys(function: Callable[..., Any], count: int, name: str = "") -> list[Key]:
    """A key for every part; Dask's pages show the function, and at a closer look the name."""
    group = "-".join(filter(None, (function.__name__, MARK + uuid.uuid4().hex, name)))
    return [(group, index) for index in range(count)]


def _shared_key() -> Key:
    """The key of a shared value, which the scheduler of a cluster puts into a group of its own.

    It spreads tasks over all workers if those that they depend on are in small groups; keys that
    are strings make one group, which grows pass by pass, and tasks then go to where the value is.
    """
    return f"shared-{uuid.uuid4().hex}", 0


def _add_map(graph: dict[Key, Any], key: Key, task: tuple[Any, Any, Key]) -> None:
    function, part, shared = task
    if isinstance(part, Delayed):
        graph.update(part.dask)
        graph[key] = (function, part.key, shared)
    elif isinstance(part, Piece):
        graph.update(part.part.dask)
        graph[key] = (function, (part.make, part.part.key, *part.arguments), shared)
    else:
        graph[key] = (partial(function, part), shared)


def _add(graph: dict[Key, Any], function: Callable[..., Any], task: tuple[Any, ...]) -> Key:
    """Put a task into the graph, under a key that shows on a dashboard what it does."""
    key = f"{function.__name__}-{uuid.uuid4().hex}"
    graph[key] = task
    return key
