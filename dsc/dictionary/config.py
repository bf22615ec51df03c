"""What to learn: the options of `dsc.learn`, which are also those of the command line."""

from __future__ import annotations

import os
import re
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsc.basis import BASES, SteerableBasis
from dsc.errors import DscError, unknown_choice
from dsc.options import Options, option
from dsc.pursuit import EMPTY, PURSUITS, Coder, check_angles
from dsc.update import UPDATES

INITS = ("random", "patches")
HASH = re.compile("sha256:[0-9a-f]{64}")  # stands for the atoms of a dictionary to start from
MODES = ("batch", "online")
ONLINE = ("batch_size", "forget")  # options that only the online mode has
FORGET = 0.2
SETTLE = 5  # the last iterations, in which twins are left alone


@dataclass(frozen=True)
class LearnConfig(Options):
    """Options of one dictionary.

    Attributes are documented by their `help` metadata, which the command line shows too.
    """

    n_atoms: int = option(20, "Atoms in the dictionary.")
    sparsity: int = option(4, "Atoms per patch, at most.")
    n_angles: int | None = option(
        None, "Size of the angle grid; by default 60, or 1 for the pixel basis."
    )
    n_iterations: int = option(10, "Passes over the patches.")
    mode: str = option(
        "batch",
        "Update the atoms once in each pass, or online: after every batch of some patches.",
        MODES,
    )
    batch_size: int | None = option(
        None,
        "Patches in a batch of the online mode, about; by default about a hundredth of the set, at "
        "least 64 uses of each atom and at most 65536 patches.",
    )
    forget: float | None = option(
        None,
        "Share of what earlier batches have left that each batch of the online mode forgets, 0 to "
        f"1; by default {FORGET}.",
    )
    basis: str = option(
        "disk", "Coordinates of a patch; pixels is a standard dictionary.", tuple(BASES)
    )
    pursuit: str = option(
        "ols",
        "How atoms are chosen: ols takes what lowers the error most, omp what resembles the rest "
        "most.",
        PURSUITS,
    )
    refine: bool = option(False, "Refine angles between those of the grid.")
    tolerance: float = option(
        0.0, "Stop coding a patch once its error per pixel of the disk is at most this."
    )
    update: str = option(
        None, "How atoms are updated; by default ksvd, or mod online.", tuple(UPDATES)
    )
    init: str = option(
        "random",
        "Start from random atoms, from patches of the set, or from those of a dictionary: a run or "
        "a model.",
    )
    replace_twins: float | None = option(
        None,
        "Restart one of two atoms more alike than this (0 to 1) up to rotation; never in the last "
        f"{SETTLE} iterations. Off by default.",
    )
    min_improvement: float | None = option(
        None, "Stop once an iteration lowers the error by less than this fraction. Off by default."
    )
    seed: int = option(0, "Seed of everything random.")

    def __post_init__(self) -> None:
        self._make_plain()
        if self.update is None:
            object.__setattr__(self, "update", "mod" if self.mode == "online" else "ksvd")
        problems = self._count_problems({"n_atoms": 1, "sparsity": 1, "n_iterations": 0, "seed": 0})
        if isinstance(self.n_atoms, int) and EMPTY <= self.n_atoms < 2**63:
            problems.append(f"n_atoms: found {self.n_atoms}, need less than {EMPTY}")
        problems += self._choice_problems()
        problems += self._mode_problems()
        if isinstance(self.init, str) and not is_atoms(self.init):
            problems.append(str(unknown_choice("init", self.init, INITS)))
        if not isinstance(self.refine, bool):
            problems.append(f"refine: found {self.refine!r}, need True or False")
        for name in ("replace_twins", "min_improvement"):
            value = getattr(self, name)
            if value is not None and not 0 < value <= 1:
                problems.append(f"{name}: found {value!r}, need a number in (0, 1]")
        if not 0 <= self.tolerance < np.inf:
            problems.append(f"tolerance: found {self.tolerance!r}, need a number ≥ 0")
        if problems:
            raise DscError("\n".join(problems))

    def _mode_problems(self) -> list[str]:
        """What does not go with the mode."""
        if self.mode != "online":
            given = [name for name in ONLINE if getattr(self, name) is not None]
            return [f'{name}: found it in mode "batch", need mode "online"' for name in given]
        problems = [] if self.batch_size is None else self._count_problems({"batch_size": 1})
        if self.forget is not None and not 0 <= self.forget <= 1:
            problems.append(f"forget: found {self.forget!r}, need a number from 0 to 1")
        if self.update != "mod":
            problems.append(f"update: found {self.update!r}, need mod, the one of the online mode")
        if self.replace_twins is not None:
            problems.append(f'replace_twins: found {self.replace_twins} online, need mode "batch"')
        return problems

    def to_dict(self) -> dict[str, Any]:
        """What decides the results; in batch mode as before there was another one."""
        values = asdict(self)
        if self.mode == "batch":
            values = {name: v for name, v in values.items() if name not in ("mode", *ONLINE)}
        return values

    def resolve(self, basis: SteerableBasis) -> int:
        """The number of angles on this basis, once options and basis are known to fit."""
        if self.sparsity > basis.n_coords:
            raise DscError(
                f"sparsity: found {self.sparsity}, need at most {basis.n_coords}, the coordinates "
                f"of the {basis.name} basis of diameter {basis.diameter}"
            )
        return check_angles(self.n_angles, basis, self.refine)

    def stop(self, basis: SteerableBasis) -> float:
        """Residual energy (in coordinates) at which the coding of a patch stops."""
        return self.tolerance * basis.n_pixels

    def coder(self, atoms: NDArray[np.float32], basis: SteerableBasis) -> Coder:
        """What codes patches with these atoms."""
        n_angles = self.resolve(basis)
        return Coder(atoms, basis, self.sparsity, n_angles, self.pursuit, self.refine)


def is_atoms(init: str) -> bool:
    """Whether a word is a way to start, or may name a dictionary: a path, a URL, or a hash."""
    is_path = any(sign in init for sign in "/\\") or os.path.lexists(init)
    return init in INITS or is_path or HASH.fullmatch(init) is not None
