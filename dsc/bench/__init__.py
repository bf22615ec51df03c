"""`dsc bench`: what is timed, against whom, side by side in one run."""

from typing import Any

from dsc.bench import coding, scale, system
from dsc.bench.images import MIN_STD, PAPER_FILES, paper_file
from dsc.bench.timing import best_of_each


def run_bench(which: str = "coding", quick: bool = False) -> tuple[dict[str, Any], str]:
    """Numbers for machines and text for people, of "coding", "system" or "scale" (never quick)."""
    bench = {"coding": coding, "system": system, "scale": scale}[which]
    summary = bench.run(quick)
    return summary, bench.describe(summary)
