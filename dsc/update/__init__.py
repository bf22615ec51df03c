"""The pure half of learning: statistics that merge, and the atoms they give."""

from dsc.update.solve import solve
from dsc.update.start import random_atoms
from dsc.update.statistics import (
    UPDATES,
    KsvdStatistics,
    ModStatistics,
    Statistics,
    Usage,
    accumulate,
    measure,
    statistics_bytes,
    worth_merging,
)
from dsc.update.worst import WorstPatches

__all__ = [
    "UPDATES",
    "KsvdStatistics",
    "ModStatistics",
    "Statistics",
    "Usage",
    "WorstPatches",
    "accumulate",
    "measure",
    "random_atoms",
    "solve",
    "statistics_bytes",
    "worth_merging",
]
