"""The settings of a sweep, what was found for each, and which is best."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from dsc.basis import check_diameter
from dsc.errors import DscError
from dsc.texture.config import METHODS, TextureConfig
from dsc.version import __version__

KIND = "dsc texture sweep"
SWEPT = ("n_atoms", "diameter", "sparsity", "method")
EXACT = 12  # decimals to which means are compared: what is left is rounding


@dataclass(frozen=True)
class SweepGrid:
    """The settings of a sweep: all combinations of these values."""

    # values of the options of `TextureConfig`, each at least one and none twice
    n_atoms: tuple[int, ...] = (10, 25, 50, 100)
    diameter: tuple[int, ...] = (11, 13, 15)
    sparsity: tuple[int, ...] = (1, 2, 3)
    method: tuple[str, ...] = METHODS

    def __post_init__(self) -> None:
        problems = []
        for name in SWEPT:
            found = getattr(self, name)
            if isinstance(found, str) or not isinstance(found, Iterable):
                problems.append(f"{name}: found {found!r}, need a sequence of values")
                continue
            values = tuple(v.item() if isinstance(v, np.generic) else v for v in found)
            object.__setattr__(self, name, values)
            if not values:
                problems.append(f"{name}: found no value, need at least one")
            for place, value in enumerate(values):
                if value in values[:place]:
                    problems.append(f"{name}: found {value!r} twice, need every value once")
                    continue
                try:
                    if name == "diameter":
                        check_diameter(value)  # one by one: they are compared
                    TextureConfig(**{name: value})
                except DscError as error:
                    problems.append(str(error))
        if problems:
            raise DscError("\n".join(problems))

    def settings(self, base: TextureConfig) -> tuple[TextureConfig, ...]:
        """All settings, by method, diameter, sparsity and atoms; all else as in `base`.

        Its angle grid is that of the rotational settings: with the other methods nothing rotates.
        """
        return tuple(
            replace(
                base,
                n_atoms=n_atoms,
                diameter=(diameter,),
                sparsity=sparsity,
                method=method,
                n_angles=base.n_angles if method == "rotational" else None,
            )
            for method in self.method
            for diameter in self.diameter
            for sparsity in self.sparsity
            for n_atoms in self.n_atoms
        )


CAUTION = (  # of three methods on upright images, the one that rotates nothing may well win
    "The held-out images are rotated no more than those they are compared with: this chooses M, N "
    "and K of a method; which method knows rotated images, only an evaluation on such can tell."
)


@dataclass(frozen=True)
class SettingResult:
    """How well one setting does."""

    config: TextureConfig  # the setting
    accuracy: tuple[float, ...] = field(repr=False)  # of every repeat of the cross-validation
    # hash of the atoms of all classes, as `TextureModel.sha256`
    atoms_sha256: str = field(repr=False)
    n_patches: int  # patches of the training images that were labelled
    # share of the (atom, patch) pairs whose angles were never tried; None without pruning
    pruned: float | None
    seconds_learning: float  # an equal share of the time of the settings that were learned together
    seconds_labelling: float  # time to label all images

    @property
    def mean(self) -> float:
        """Mean accuracy over the repeats."""
        return float(np.mean(self.accuracy))

    @property
    def std(self) -> float:
        """Standard deviation of the accuracy over the repeats."""
        return float(np.std(self.accuracy))

    @property
    def seconds(self) -> float:
        """Time of learning and labelling."""
        return self.seconds_learning + self.seconds_labelling

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        values = asdict(self)
        values["config"]["diameter"] = list(self.config.diameter)
        values["accuracy"] = {"mean": self.mean, "std": self.std, "values": list(self.accuracy)}
        return values

    @staticmethod
    def from_record(values: dict[str, Any]) -> SettingResult:
        """From the log of a run."""
        config, accuracy = TextureConfig(**values["config"]), tuple(values["accuracy"])
        return SettingResult(**{**values, "config": config, "accuracy": accuracy})


def best_of(results: Iterable[SettingResult]) -> SettingResult:
    """The highest mean accuracy; of equal ones that with fewer atoms.

    Then with the smaller diameter, the smaller sparsity, the earlier method of `METHODS`.
    """

    def rank(result: SettingResult) -> tuple[float, int, tuple[int, ...], int, int]:
        config, loss = result.config, -round(result.mean, EXACT)
        method = METHODS.index(config.method)
        return loss, config.n_atoms, config.diameter, config.sparsity, method

    return min(results, key=rank)


@dataclass(frozen=True)
class Validation:
    """How settings are judged: share held out, and how often; see `cross_validate`."""

    held_out: float = 0.88
    repeats: int = 100


@dataclass(frozen=True)
class Sweep:
    """What is swept: all settings of a grid, with the other options of `base`."""

    base: TextureConfig
    grid: SweepGrid = SweepGrid()
    validation: Validation = Validation()


@dataclass(frozen=True)
class SweepResult:
    """A finished sweep."""

    folder: Path  # where it is
    sweep: Sweep  # its settings
    # what decides its numbers besides the grid
    identity: dict[str, dict[str, Any]] = field(repr=False)
    label_names: tuple[str, ...] = field(repr=False)  # the classes
    options: dict[str, Any] = field(repr=False)  # what else stands in sweep.json
    # of every setting, in the order of `SweepGrid.settings`
    results: tuple[SettingResult, ...] = field(repr=False)

    @property
    def winner(self) -> SettingResult:
        """The best setting of all; see `best_of`."""
        return best_of(self.results)

    @property
    def winners(self) -> dict[str, SettingResult]:
        """The best setting of each method."""
        return {
            method: best_of(one for one in self.results if one.config.method == method)
            for method in self.sweep.grid.method
        }

    @property
    def seconds(self) -> float:
        """Time of learning and labelling, of all settings."""
        return sum(one.seconds for one in self.results)

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain values."""
        return {
            "kind": KIND,
            "version": __version__,
            "options": self.options,
            "identity": self.identity,
            "grid": {name: list(getattr(self.sweep.grid, name)) for name in SWEPT},
            "label_names": list(self.label_names),
            "winner": self.winner.to_dict(),
            "winners": {method: one.to_dict() for method, one in self.winners.items()},
            "seconds": self.seconds,
            "settings": [one.to_dict() for one in self.results],
        }
