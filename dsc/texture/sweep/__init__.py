"""Many settings on the same pictures, compared by cross-validation."""

from dsc.texture.sweep.results import SettingResult, SweepGrid, SweepResult, best_of
from dsc.texture.sweep.run import run_sweep

__all__ = ["SettingResult", "SweepGrid", "SweepResult", "best_of", "run_sweep"]
