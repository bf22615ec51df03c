"""`dsc bench`: what is timed, against whom, side by side in one run."""

from typing import Any

from dsc.bench import coding, scale, system
from dsc.bench.images import MIN_STD, PAPER_FILES, paper_file
from dsc.bench.timing import Say, best_of_each


def run_bench(which: str, quick: bool, say: Say) -> dict[str, Any]:
    """The numbers of "coding", "system" or "scale" (never quick); rows are shown as they come."""
    run = {"coding": coding.run, "system": system.run, "scale": scale.run}[which]
    return run(quick, say)
