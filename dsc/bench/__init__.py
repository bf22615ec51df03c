"""`dsc bench`: what is timed, against whom, side by side in one run."""

from typing import Any

from dsc.bench import coding, labelling, scale, system
from dsc.bench.images import MIN_STD, PAPER_FILES, paper_file
from dsc.bench.timing import Say, best_of_each


def run_bench(which: str, quick: bool, say: Say) -> dict[str, Any]:
    """The numbers of "coding", "labelling", "system" or "scale" (never quick), as they come."""
    runs = {
        "coding": coding.run,
        "labelling": labelling.run,
        "system": system.run,
        "scale": scale.run,
    }
    return runs[which](quick, say)
