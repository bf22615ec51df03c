"""What to learn: the options of `dsc.learn`, which are also those of the command line."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from dsc.basis import BASES, SteerableBasis
from dsc.errors import DscError, unknown_choice
from dsc.learning.statistics import UPDATES
from dsc.pursuit.omp import EMPTY, check_angles

INITS = ("random", "patches")
SETTLE = 5  # the last iterations, in which twins are left alone


def _option(default: Any, help: str, choices: tuple[str, ...] = ()) -> Any:  # noqa: A002
    return field(default=default, metadata={"help": help, "choices": choices})


@dataclass(frozen=True)
class LearnConfig:
    """Options of one dictionary.

    Attributes are documented by their `help` metadata, which the command line shows too.
    """

    n_atoms: int = _option(20, "Atoms in the dictionary.")
    sparsity: int = _option(4, "Atoms per patch, at most.")
    n_angles: int | None = _option(
        None, "Size of the angle grid; by default 60, or 1 for the pixel basis."
    )
    n_iterations: int = _option(10, "Passes over the patches.")
    basis: str = _option(
        "disk", "Coordinates of a patch; pixels is a standard dictionary.", tuple(BASES)
    )
    update: str = _option("ksvd", "How atoms are updated.", tuple(UPDATES))
    init: str = _option("random", "Start from random atoms, or from patches of the set.", INITS)
    replace_twins: float | None = _option(
        None,
        "Restart one of two atoms more alike than this (0 to 1) up to rotation; never in the last "
        f"{SETTLE} iterations. Off by default.",
    )
    min_improvement: float | None = _option(
        None, "Stop once an iteration lowers the error by less than this fraction. Off by default."
    )
    seed: int = _option(0, "Seed of everything random.")

    def __post_init__(self) -> None:
        problems = []
        for f in fields(self):  # NumPy's numbers become Python's, which JSON and TOML can hold
            value = getattr(self, f.name)
            if isinstance(value, np.generic):
                object.__setattr__(self, f.name, value.item())
        for name, least in (("n_atoms", 1), ("sparsity", 1), ("n_iterations", 0), ("seed", 0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                problems.append(f"{name}: found {value!r}, need a whole number ≥ {least}")
        if isinstance(self.n_atoms, int) and self.n_atoms >= EMPTY:
            problems.append(f"n_atoms: found {self.n_atoms}, need less than {EMPTY}")
        for name, choices in (("basis", BASES), ("update", UPDATES), ("init", INITS)):
            if getattr(self, name) not in choices:
                problems.append(str(unknown_choice(name, getattr(self, name), choices)))
        for name in ("replace_twins", "min_improvement"):
            value = getattr(self, name)
            if value is not None and not 0 < value <= 1:
                problems.append(f"{name}: found {value!r}, need a number in (0, 1]")
        if problems:
            raise DscError("\n".join(problems))

    def resolve(self, basis: SteerableBasis) -> int:
        """The number of angles on this basis, once options and basis are known to fit."""
        if self.sparsity > basis.n_coords:
            raise DscError(
                f"sparsity: found {self.sparsity}, need at most {basis.n_coords}, the coordinates "
                f"of the {basis.name} basis of diameter {basis.diameter}"
            )
        return check_angles(self.n_angles, basis)

    @classmethod
    def from_options(cls, options: dict[str, Any]) -> LearnConfig:
        """From words and values, refusing unknown words."""
        known = [f.name for f in fields(cls)]
        unknown = [name for name in options if name not in known]
        if unknown:
            raise DscError("\n".join(str(unknown_choice("option", n, known)) for n in unknown))
        return cls(**options)
