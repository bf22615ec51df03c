"""What patches to take: the options of `dsc.extract_patches`, which the command line shows too."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from dsc.basis import BASES
from dsc.basis.grid import check_diameter
from dsc.errors import DscError
from dsc.options import Options, option


@dataclass(frozen=True)
class PatchConfig(Options):
    """Options of a patch set.

    Attributes are documented by their `help` metadata.
    """

    diameter: int = option(11, "Pixels across a patch, a disk.")
    stride: int = option(1, "Pixels between neighbouring patches.")
    min_std: float = option(
        0.0,
        "Keep a patch if the sample standard deviation of its square window (pixels in [0, 1]) is "
        "larger than this; 0 keeps all.",
    )
    center: bool = option(False, "Subtract the mean of the disk's pixels.")
    unit: bool = option(False, "Divide by the norm of the disk's pixels, after centering.")
    per_image: int | None = option(None, "Take this many random patches of every picture.")
    per_class: int | None = option(None, "Take this many random patches of every class.")
    rotate: tuple[float, ...] = option(
        (), "Turn every patch, in its picture, by one of these angles (degrees) at random."
    )
    materialize: str | None = option(
        None,
        "Compute the coordinates in this basis now and store them; by default they are computed "
        "whenever patches are read.",
        tuple(BASES),
    )
    seed: int = option(0, "Seed of the random choices.")

    def __post_init__(self) -> None:
        problems = []
        try:
            check_diameter(self.diameter)
        except DscError as error:
            problems.append(str(error))
        for name, least in (("stride", 1), ("per_image", 1), ("per_class", 1), ("seed", 0)):
            value = getattr(self, name)
            optional = name.startswith("per_") and value is None
            if not optional and (not _is_whole(value) or value < least):
                problems.append(f"{name}: found {value!r}, need a whole number ≥ {least}")
        if not _is_number(self.min_std) or self.min_std < 0:
            problems.append(f"min_std: found {self.min_std!r}, need a number ≥ 0")
        problems += [
            f"{name}: found {getattr(self, name)!r}, need True or False"
            for name in ("center", "unit")
            if not isinstance(getattr(self, name), bool)
        ]
        if not isinstance(self.rotate, tuple) or not all(map(_is_number, self.rotate)):
            problems.append(f"rotate: found {self.rotate!r}, need a tuple of angles in degrees")
        if self.per_image is not None and self.per_class is not None:
            problems.append("per_image and per_class: found both, need one of them at most")
        problems += self._choice_problems()
        if problems:
            raise DscError("\n".join(problems))

    @classmethod
    def from_options(cls, options: dict[str, Any], others: Iterable[str] = ()) -> Self:
        """From words and values, refusing unknown words."""
        rotate = options.get("rotate", ())
        turns = tuple(rotate) if isinstance(rotate, list) else rotate  # as JSON and TOML have it
        return super().from_options({**options, "rotate": turns}, others)


def _is_whole(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    real = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    return real and math.isfinite(value)  # type: ignore[arg-type]
