"""One module per figure or table of the paper, on the public API only."""

from dsc.experiments.registry import EXPERIMENTS, run_experiment
from dsc.experiments.result import Drawing, Experiment, Finding, Options, Result
from dsc.experiments.write import write_result, write_summary

__all__ = [
    "EXPERIMENTS",
    "Drawing",
    "Experiment",
    "Finding",
    "Options",
    "Result",
    "run_experiment",
    "write_result",
    "write_summary",
]
