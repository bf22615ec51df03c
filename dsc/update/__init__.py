"""The pure half of learning: statistics that merge, and the atoms they give."""

from dsc.update.atoms import random_atoms, solve
from dsc.update.online import Running, update_online
from dsc.update.statistics import (
    UPDATES,
    AnyStatistics,
    KsvdStatistics,
    MeasureStatistics,
    ModStatistics,
    Statistics,
    Usage,
    accumulate,
    measure,
    merge_patches,
    patch_energy,
    solve_bytes,
    statistics_bytes,
)
from dsc.update.worst import WorstPatches
