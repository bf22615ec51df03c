"""`dsc bench`: what is timed, against whom, side by side in one run."""

from dsc.bench.run import run_bench

__all__ = ["run_bench"]
