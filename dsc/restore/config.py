"""How images are restored: the options of `denoise` and `inpaint`."""

from __future__ import annotations

from dataclasses import dataclass

from dsc.basis import BASES
from dsc.errors import DscError
from dsc.options import Options, option

TOGETHER, EACH = "together", "each"
ENGINE = ("scheduler", "n_workers", "memory_limit", "patience", "tls", "progress")


@dataclass(frozen=True)
class RestoreConfig(Options):
    """Options of `denoise` and `inpaint`, besides those of the engine."""

    diameter: int = option(11, "Pixels across a disk, unless a model is given.")
    n_atoms: int = option(32, "Atoms in the dictionary, unless a model is given.")
    n_iterations: int = option(20, "Passes over the patches that the dictionary is learned from.")
    basis: str = option(
        "disk", "Coordinates of a patch; pixels is a standard dictionary.", tuple(BASES)
    )
    colors: str | None = option(
        None,
        "Whether the colors of an image are coded together, with one rotation, or each by itself: "
        "by default together to remove noise, each to fill; a model codes the channels it has.",
        (TOGETHER, EACH),
    )
    seed: int = option(0, "Seed of everything random.")

    def __post_init__(self) -> None:
        self._make_plain()
        least = {"diameter": 3, "n_atoms": 1, "n_iterations": 0, "seed": 0}
        problems = self._count_problems(least) + self._choice_problems()
        if problems:
            raise DscError("\n".join(problems))
