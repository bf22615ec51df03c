"""What patches to take: the options of `dsc.extract_patches`, which the command line shows too."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Real
from typing import Any, Self

from dsc.basis import BASES, check_diameter
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
    per_image: int | None = option(None, "Take this many random patches of every image.")
    per_class: int | None = option(None, "Take this many random patches of every class.")
    rotate: tuple[float, ...] = option(
        (), "Rotate every patch, in its image, by one of these angles (degrees) at random."
    )
    materialize: str | None = option(
        None,
        "Compute the coordinates in this basis now and store them; by default they are computed "
        "whenever patches are read.",
        tuple(BASES),
    )
    seed: int = option(0, "Seed of the random choices.")
    missing_as_fill: bool = option(
        False,
        "Read chunks that a Zarr array of others does not have as its fill value; they are refused "
        "otherwise.",
    )

    def __post_init__(self) -> None:
        self._make_plain()
        subsets = [name for name in ("per_image", "per_class") if getattr(self, name) is not None]
        problems = self._count_problems({"stride": 1, **dict.fromkeys(subsets, 1), "seed": 0})
        try:
            check_diameter(self.diameter)
        except DscError as error:
            problems.insert(0, str(error))
        if not _is_number(self.min_std) or self.min_std < 0:
            problems.append(f"min_std: found {self.min_std!r}, need a number ≥ 0")
        problems += [
            f"{name}: found {getattr(self, name)!r}, need True or False"
            for name in ("center", "unit", "missing_as_fill")
            if not isinstance(getattr(self, name), bool)
        ]
        if not isinstance(self.rotate, tuple) or not all(map(_is_number, self.rotate)):
            problems.append(f"rotate: found {self.rotate!r}, need a tuple of angles in degrees")
        if len(subsets) == 2:
            problems.append("per_image and per_class: found both, need one of them at most")
        problems += self._choice_problems()
        if problems:
            raise DscError("\n".join(problems))

    @classmethod
    def from_options(cls, options: dict[str, Any], others: Iterable[str] = ()) -> Self:
        """From words and values, refusing unknown words."""
        rotate = options.get("rotate", ())
        rotations = (
            tuple(rotate) if isinstance(rotate, list) else rotate
        )  # as JSON and TOML have it
        return super().from_options({**options, "rotate": rotations}, others)


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
