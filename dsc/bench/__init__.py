"""`dsc bench`: what is timed, against whom, side by side in one run."""

from typing import Any

from dsc.bench import coding, scale, system
from dsc.bench.timing import best_of_each


def run_bench(which: str = "coding", quick: bool = False) -> tuple[dict[str, Any], str]:
    """Numbers for machines, and text for people.

    Parameters
    ----------
    which
        "coding", "system" or "scale".
    quick
        Fewer patches; "scale" has no quick version.
    """
    bench = {"coding": coding, "system": system, "scale": scale}[which]
    summary = bench.run(quick)
    return summary, bench.describe(summary)
