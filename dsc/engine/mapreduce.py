"""The one map-reduce: tasks over parts of the data, merged on the aligned tree, then finished.

The graphs are written as plain Dask graphs, key → (function, arguments), and handed over as one
`Delayed`: making a `Delayed` of every task takes longer than some iterations have to spare.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from dask.delayed import Delayed

from dsc.blas import use_one_blas_thread
from dsc.engine.tree import merge_all


@dataclass(frozen=True)
class Job:
    """One reduction: finish(merged values of map(part, kept, **shared), **shared).

    The functions are module-level. Parts are in order, each an aligned run of leaves, and travel
    with their task; `kept` has a delayed value per part (or is empty, for None); `shared` goes to
    every task; `fan_in`, a power of two, results are merged by one task.
    """

    map: Callable[..., Any]
    parts: Sequence[Any]
    finish: Callable[..., Any]
    shared: dict[str, Any] = field(default_factory=dict)
    kept: Sequence[Any] = ()
    fan_in: int = 2


@dataclass(frozen=True, eq=False)
class _Shared:
    """Arguments of all tasks of a job; one value, which Dask does not look into."""

    values: dict[str, Any]


def job_graph(job: Job) -> Any:
    """The delayed result of a job: maps, a tree of merges, the finish."""
    graph, shared = _start(job.shared)
    kept: Sequence[Any] = [None] * len(job.parts)
    if job.kept:
        for value in job.kept:
            graph.update(value.dask)
        kept = [value.key for value in job.kept]
    values = [
        _add(graph, job.map, (partial(_run, partial(job.map, part)), shared, value))
        for part, value in zip(job.parts, kept, strict=True)
    ]
    while len(values) > 1:  # a power of two of neighbours: a piece of the aligned tree
        groups = [values[i : i + job.fan_in] for i in range(0, len(values), job.fan_in)]
        values = [_add(graph, merge_all, (merge_all, *group)) for group in groups]
    return Delayed(_add(graph, job.finish, (partial(_run, job.finish), shared, values[0])), graph)


def part_tasks(function: Callable[..., Any], parts: Sequence[Any], **shared: Any) -> list[Any]:
    """Delayed `function(part, **shared)` of every part."""
    start, arguments = _start(shared)
    values = []
    for part in parts:
        graph = dict(start)
        task = (partial(_run, partial(function, part)), arguments)
        values.append(Delayed(_add(graph, function, task), graph))
    return values


def _start(shared: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """A graph that holds the shared arguments, and their key."""
    key = f"shared-{uuid.uuid4().hex}"
    return {key: _Shared(shared)}, key


def _add(graph: dict[str, Any], function: Callable[..., Any], task: tuple[Any, ...]) -> str:
    """Put a task into the graph, under a key that shows on a dashboard what it does."""
    key = f"{function.__name__}-{uuid.uuid4().hex}"
    graph[key] = task
    return key


def _run(function: Callable[..., Any], shared: _Shared, *args: Any) -> Any:
    use_one_blas_thread()
    return function(*args, **shared.values)
