"""The one map-reduce: tasks over parts of the data, merged on the aligned tree, then finished."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from dask import delayed

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


def job_graph(job: Job) -> Any:
    """The delayed result of a job: maps, a tree of merges, the finish."""
    shared = delayed(job.shared, traverse=False)  # one value: Dask looks at every argument
    kept = job.kept or [None] * len(job.parts)
    values = [
        _task(partial(job.map, part), job.map.__name__)(shared, value)
        for part, value in zip(job.parts, kept, strict=True)
    ]
    while len(values) > 1:  # a power of two of neighbours: a piece of the aligned tree
        groups = [values[i : i + job.fan_in] for i in range(0, len(values), job.fan_in)]
        values = [_task(merge_all, "merge")({}, *group) for group in groups]
    return _task(job.finish, job.finish.__name__)(shared, values[0])


def part_tasks(function: Callable[..., Any], parts: Sequence[Any], **shared: Any) -> list[Any]:
    """Delayed `function(part, **shared)` of every part."""
    constants = delayed(shared, traverse=False)
    return [_task(partial(function, part), function.__name__)(constants) for part in parts]


def _task(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """A delayed call whose key shows on a dashboard what it does."""
    return partial(
        delayed(partial(_run, function), pure=False), dask_key_name=f"{name}-{uuid.uuid4().hex}"
    )


def _run(function: Callable[..., Any], shared: dict[str, Any], *args: Any) -> Any:
    use_one_blas_thread()
    return function(*args, **shared)
