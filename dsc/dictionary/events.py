"""What happens in a run: the events of its log, which `progress` functions get too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Start:
    """A run begins, or goes on."""

    iteration: int  # updates done before
    plan: dict[str, Any]  # how the patches are cut into tasks
    identity: dict[str, dict[str, Any]]  # what decides the result


@dataclass(frozen=True)
class Iteration:
    """One pass over all patches is done.

    Attributes
    ----------
    iteration
        Updates done.
    n_iterations
        Updates that were asked for.
    finished
        Whether this was the final pass, which only codes.
    mse
        Mean squared error per pixel before the update, the mean of all dictionaries.
    seconds
        Time of the pass.
    patches_per_second
        Patches of all dictionaries in that time.
    """

    iteration: int
    n_iterations: int
    finished: bool
    mse: float
    seconds: float
    patches_per_second: float


@dataclass(frozen=True)
class End:
    """A run is finished."""

    mse: float  # mean squared error per pixel, the mean of all dictionaries
    atoms_sha256: str  # hash of the atoms, of all dictionaries together where there are many
