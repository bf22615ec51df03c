"""What happens in a run: the events of its log, which `progress` functions get too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Start:
    """A run begins, or goes on.

    Attributes
    ----------
    iteration
        Updates done before.
    plan
        How the patches are cut into tasks.
    identity
        What decides the result.
    """

    iteration: int
    plan: dict[str, Any]
    identity: dict[str, dict[str, Any]]


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
    """A run is finished.

    Attributes
    ----------
    mse
        Mean squared error per pixel, the mean of all dictionaries.
    atoms_sha256
        Hash of the atoms, of all dictionaries together where there are many.
    """

    mse: float
    atoms_sha256: str
