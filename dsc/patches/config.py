"""What patches to take: the options of `dsc.extract_patches`, which the command line shows too."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from numbers import Real
from os import PathLike
from typing import Any, Self

from dsc.basis import BASES, check_diameter
from dsc.errors import DscError
from dsc.images import ReadOptions, check_range
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
    channel: str | None = option(
        None,
        "Channels to take together: 'all', or numbers or names with commas between. By default "
        "color becomes grey, and each channel of a stack is an image of its own.",
    )
    level: int = option(0, "Level of a pyramid (OME-Zarr, TIFF); 0 is the full size.")
    range: tuple[float, float] | None = option(
        None, "The values that count as 0 and 1; by default those of the type."
    )
    percentile: tuple[float, float] | None = option(
        None, "The same by percentiles of all images, in each channel: for example 1 99."
    )
    mask: tuple[str, ...] = option(
        (),
        "An image that is zero where no patch shall be; several, or a folder, for as many images "
        "in the order of their paths.",
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
        least = {"stride": 1, **dict.fromkeys(subsets, 1), "level": 0, "seed": 0}
        problems = self._count_problems(least)
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
        if self.range is not None:
            problems += filter(None, [check_range("range", self.range)])
        if self.percentile is not None:
            problems += filter(None, [check_range("percentile", self.percentile, 0, 100)])
        if self.range is not None and self.percentile is not None:
            problems.append("range and percentile: found both, need one of them at most")
        if self.channel is not None and not isinstance(self.channel, str):
            problems.append(f"channel: found {self.channel!r}, need words, such as '0,2' or 'all'")
        problems += self._choice_problems()
        if problems:
            raise DscError("\n".join(problems))

    @classmethod
    def from_options(cls, options: dict[str, Any], others: Iterable[str] = ()) -> Self:
        """From words and values, refusing unknown words."""
        pairs = {  # JSON and TOML have lists
            name: tuple(options[name])
            for name in ("rotate", "range", "percentile", "mask")
            if isinstance(options.get(name), list)
        }
        return super().from_options({**options, **pairs}, others)

    @property
    def read_options(self) -> ReadOptions:
        """How images are read."""
        return ReadOptions(self.channel, self.level, self.range, self.missing_as_fill)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        masks = [str(one) if isinstance(one, str | PathLike) else "array" for one in self.masks]
        return {**asdict(replace(self, mask=())), "mask": masks}

    @property
    def masks(self) -> list[Any]:
        """The masks in their order: paths or arrays."""
        given: Any = self.mask  # one may be given as it is
        if given is None:
            return []
        return list(given) if isinstance(given, list | tuple) else [given]


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
