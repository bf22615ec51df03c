"""Dictionary updates: statistics that merge, and the atoms they give."""

from dsc.learning.config import LearnConfig
from dsc.learning.solve import solve
from dsc.learning.start import random_atoms
from dsc.learning.statistics import KsvdStatistics, ModStatistics, Usage, accumulate
from dsc.learning.worst import WorstPatches

__all__ = [
    "KsvdStatistics",
    "LearnConfig",
    "ModStatistics",
    "Usage",
    "WorstPatches",
    "accumulate",
    "random_atoms",
    "solve",
]
