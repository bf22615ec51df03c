"""Stopwatches."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Key = TypeVar("Key")
Run = Callable[[], object]
Say = Callable[[str], None]  # shows a result as soon as it is measured


def best_of_each(
    runs: dict[Key, Run], repeats: int, clock: Callable[[], float] = time.perf_counter
) -> dict[Key, float]:
    """The shortest time of each after one that warms up, taken in turns: slow moments hit all."""
    best: dict[Key, float] = {}
    for rotation in range(repeats + 1):
        for name, run in runs.items():
            begin = clock()
            run()
            seconds = clock() - begin
            best[name] = seconds if rotation <= 1 else min(best[name], seconds)
    return best


def best_of(run: Run, repeats: int) -> float:
    """The shortest of several runs, after one that warms up."""
    return best_of_each({"": run}, repeats)[""]
