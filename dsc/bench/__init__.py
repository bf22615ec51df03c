"""`dsc bench`: what is timed, against whom, side by side in one run."""

from typing import Any

from dsc.bench import coding, extraction, labelling, overhead, scale, system
from dsc.bench.images import MIN_STD, PAPER_FILES, paper_file
from dsc.bench.timing import Say, best_of_each


def run_bench(which: str, quick: bool, say: Say) -> dict[str, Any]:
    """The numbers of one of the runs below, as they come; "scale" is never quick."""
    runs = {
        "coding": coding.run,
        "extraction": extraction.run,
        "labelling": labelling.run,
        "overhead": overhead.run,
        "system": system.run,
        "scale": scale.run,
    }
    return runs[which](quick, say)
