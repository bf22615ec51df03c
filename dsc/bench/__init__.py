"""`dsc bench`: what is timed, against whom, side by side in one run."""

from dsc.bench.coding import bench_coding

__all__ = ["bench_coding"]
