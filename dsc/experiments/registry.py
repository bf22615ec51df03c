"""All experiments by name, and how one is run."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace

from dsc.errors import DscError, unknown_choice
from dsc.experiments.basis import EXPERIMENT as BASIS
from dsc.experiments.coding import EXPERIMENTS as CODING
from dsc.experiments.data import CHOICES, check_paper
from dsc.experiments.online import EXPERIMENT as ONLINE
from dsc.experiments.orientations import EXPERIMENT as ORIENTATION
from dsc.experiments.pursuits import EXPERIMENT as PURSUITS
from dsc.experiments.restoring import EXPERIMENT as RESTORING
from dsc.experiments.result import Experiment, Options, Result
from dsc.experiments.rotation_quality import EXPERIMENT as QUALITY
from dsc.experiments.rotation_speed import EXPERIMENT as SPEED
from dsc.experiments.sweeps import EXPERIMENTS as SWEEPS
from dsc.experiments.texture_augmentation import EXPERIMENT as AUGMENTATION
from dsc.experiments.texture_bins import EXPERIMENT as TEXTURES
from dsc.experiments.texture_choices import EXPERIMENT as CHOOSING
from dsc.experiments.texture_mosaic import EXPERIMENT as MOSAIC
from dsc.experiments.toy import EXPERIMENT as TOY

IN_ORDER = (
    TOY,
    BASIS,
    PURSUITS,
    ONLINE,
    *CODING,
    *SWEEPS,
    QUALITY,
    SPEED,
    TEXTURES,
    CHOOSING,
    AUGMENTATION,
    MOSAIC,
    RESTORING,
    ORIENTATION,
)
EXPERIMENTS: dict[str, Experiment] = {experiment.name: experiment for experiment in IN_ORDER}


def find_experiment(name: str) -> Experiment:
    """The experiment of this name."""
    if name not in EXPERIMENTS:
        raise unknown_choice("experiment", name, [*EXPERIMENTS, "all"])
    return EXPERIMENTS[name]


def check_options(names: Iterable[str], options: Options) -> None:
    """Refuse, before anything runs, what some of these experiments could not do."""
    if options.data not in CHOICES:
        raise unknown_choice("data", options.data, CHOICES)
    if options.dense and options.quick:
        raise DscError("dense and quick: found both, need one of them at most")
    chosen = [find_experiment(name) for name in names]
    if options.dense and not any(experiment.has_dense for experiment in chosen):
        having = ", ".join(e.name for e in EXPERIMENTS.values() if e.has_dense)
        raise DscError(f"dense: found {chosen[0].name}, need one that has it: {having}")
    if options.data in ("auto", "paper"):
        check_paper(dict.fromkeys(p for experiment in chosen for p in experiment.images))


def run_experiment(name: str, options: Options | None = None) -> Result:
    """Run one of `EXPERIMENTS`; without options, the full version on its own data."""
    experiment = find_experiment(name)
    options = options or Options()
    check_options([name], options)
    begin = time.perf_counter()
    result = experiment.run(options)
    seconds = time.perf_counter() - begin
    return replace(result, name=name, title=experiment.title, quick=options.quick, seconds=seconds)
