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


@dataclass(frozen=True)
class Job:
    """One reduction: finish(merged values of map(part, shared), shared).

    The functions are module-level. Parts are in order, each an aligned run of leaves, and travel
    with their task, or are delayed values that the cluster keeps; `shared` goes to every task, and
    is a value that Dask does not look into; `fan_in`, a power of two, results are merged by one
    task.
    """

    map: Callable[[Any, Any], Any]
    parts: Sequence[Any]
    finish: Callable[[Any, Any], Any]
    shared: Any
    fan_in: int = 2


def job_graph(job: Job) -> Any:
    """The delayed result of a job: maps, a tree of merges, the finish."""
    shared = f"shared-{uuid.uuid4().hex}"
    graph: dict[str, Any] = {shared: job.shared}
    values = [_add_map(graph, job.map, part, shared) for part in job.parts]
    while len(values) > 1:  # a power of two of neighbours: a piece of the aligned tree
        groups = [values[i : i + job.fan_in] for i in range(0, len(values), job.fan_in)]
        values = [_add(graph, merge_all, (merge_all, *group)) for group in groups]
    return Delayed(_add(graph, job.finish, (job.finish, values[0], shared)), graph)


def part_tasks(
    function: Callable[[Any, Any], Any], parts: Sequence[Any], shared: Any = None
) -> list[Any]:
    """Delayed `function(part, shared)` of every part."""
    key = f"shared-{uuid.uuid4().hex}"
    values = []
    for part in parts:
        graph: dict[str, Any] = {key: shared}
        values.append(Delayed(_add_map(graph, function, part, key), graph))
    return values


def _add_map(
    graph: dict[str, Any], function: Callable[[Any, Any], Any], part: Any, shared: str
) -> str:
    if isinstance(part, Delayed):
        graph.update(part.dask)
        return _add(graph, function, (function, part.key, shared))
    return _add(graph, function, (partial(function, part), shared))


def _add(graph: dict[str, Any], function: Callable[..., Any], task: tuple[Any, ...]) -> str:
    """Put a task into the graph, under a key that shows on a dashboard what it does."""
    key = f"{function.__name__}-{uuid.uuid4().hex}"
    graph[key] = task
    return key
