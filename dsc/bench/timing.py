"""Stopwatches."""

from __future__ import annotations

import time
from collections.abc import Callable


def seconds_of(run: Callable[[], object]) -> float:
    """How long one run takes."""
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


def best_of(run: Callable[[], object], repeats: int) -> float:
    """The shortest of several runs, after one that warms up."""
    run()
    return min(seconds_of(run) for _ in range(repeats))


def best_of_each(runs: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """The shortest time of each, taken in turns so that a slow moment hits all alike."""
    for run in runs.values():
        run()
    times = [{name: seconds_of(run) for name, run in runs.items()} for _ in range(repeats)]
    return {name: min(row[name] for row in times) for name in runs}
