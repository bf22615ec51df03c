"""One module per figure or table of the paper, on the public API only."""

from dsc.experiments.data import CHOICES
from dsc.experiments.demo import Demo, run_demo, tell_story
from dsc.experiments.registry import EXPERIMENTS, check_options, find_experiment, run_experiment
from dsc.experiments.result import (
    AtomGrid,
    Experiment,
    FigureValue,
    Finding,
    ImageRows,
    Lines,
    Options,
    Result,
)
from dsc.experiments.textures import CLASSES, draw_texture, write_suite
