"""How textures are told apart: the options of `TextureClassifier` and of `dsc texture`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dsc.basis import check_diameter, make_basis
from dsc.dictionary import LearnConfig
from dsc.errors import DscError
from dsc.options import Options, option
from dsc.patches import PatchConfig
from dsc.update import UPDATES

N_ANGLES = 120  # finer than for coding: images rotated by half a step should have the same labels
METHODS = ("rotational", "augmented", "standard")
BINS = {"both": "classes and atoms", "classes": "classes", "atoms": "atoms"}
HISTOGRAMS = tuple(BINS)  # and what each counts
NEAREST, CLASS_NEAREST, SVM = CLASSIFIERS = ("nearest", "class-nearest", "svm")
SMALL = 5  # the diameter of a basis that is quickly made
ROTATIONS = {  # degrees: what augmentation rotates patches by
    "even": tuple(6.0 * step for step in range(60)),
    "paper": (5.0, 10.0, 15.0, 30.0, 45.0, 60.0, 75.0, 90.0),
}


@dataclass(frozen=True)
class TextureConfig(Options):
    """Options of a texture classifier.

    Attributes are documented by their `help` metadata, which the command line shows too.
    """

    n_atoms: int = option(100, "Atoms in the dictionary of each class.")
    diameter: tuple[int, ...] = option(  # one number will do, too
        (7, 15),
        "Pixels across a patch, a disk. Several give dictionaries of their own, and histograms "
        "joined with equal weights.",
    )
    sparsity: int = option(1, "Atoms per patch, at most.")
    method: str = option(
        "rotational",
        "rotational: atoms appear at any angle; standard: they do not rotate; augmented: standard, "
        "learned from patches rotated at random.",
        METHODS,
    )
    rotations: str = option(
        "even",
        "Angles by one of which method augmented rotates each patch. even: sixty, all around; "
        "paper: 5, 10, 15, 30, 45, 60, 75 and 90 degrees. The others rotate none.",
        ROTATIONS,
    )
    patches_per_image: int = option(4000, "Random patches of every training image to learn from.")
    unit: bool = option(
        True,
        "Learn from patches of norm one, so that strong and weak ones count alike. Labels of "
        "patches do not depend on their contrast either way.",
    )
    stride: int = option(1, "Pixels between the patches that are labelled.")
    histogram: str = option(
        "both",
        "Bins of an image's histogram. classes: the class that codes a patch best, as in the "
        "paper; atoms: which of its atoms, which needs many patches and many training images; "
        "both: classes, and atoms with a quarter of their weight.",
        HISTOGRAMS,
    )
    classifier: str = option(
        CLASS_NEAREST,
        "How histograms decide. nearest: the class of the nearest training image; class-nearest: "
        "the class whose three nearest images are nearest on average; svm: a support vector "
        "machine with the exponential χ² kernel, which needs scikit-learn.",
        CLASSIFIERS,
    )
    n_angles: int | None = option(
        None, f"Size of the angle grid; by default {N_ANGLES}, or 1 where atoms do not rotate."
    )
    n_iterations: int = option(10, "Passes over the training patches.")
    update: str = option("ksvd", "How atoms are updated.", tuple(UPDATES))
    seed: int = option(0, "Seed of everything random.")

    def __post_init__(self) -> None:
        self._make_plain()
        problems = self._count_problems(
            {"patches_per_image": 1, "stride": 1, "n_atoms": 1, "sparsity": 1, "n_iterations": 0}
        )
        problems += self._count_problems({"seed": 0}) + self._choice_problems()
        if not isinstance(self.unit, bool):
            problems.append(f"unit: found {self.unit!r}, need True or False")
        try:
            object.__setattr__(self, "diameter", check_diameters(self.diameter))
        except DscError as error:
            problems.append(str(error))
        if not problems:
            try:
                # several atoms per patch need enough coordinates; all else holds for any basis
                one = replace(self.learning, sparsity=1)
                one.resolve(make_basis(self.basis, SMALL))
                for diameter in self.diameter if self.sparsity > 1 else ():
                    self.learning.resolve(make_basis(self.basis, diameter))
            except DscError as error:
                problems.append(str(error))
        if problems:
            raise DscError("\n".join(problems))

    @property
    def sizes(self) -> str:
        """The diameters for people, such as "7 + 15"."""
        return " + ".join(map(str, self.diameter))

    def names(self, label_names: Sequence[str]) -> tuple[str, ...]:
        """What the dictionaries are called: as their classes; of several diameters, with these."""
        if len(self.diameter) == 1:
            return tuple(label_names)
        return tuple(f"{name}, {d} pixels" for d in self.diameter for name in label_names)

    @property
    def basis(self) -> str:
        """The basis of the dictionaries."""
        return "disk" if self.method == "rotational" else "pixels"

    @property
    def learning(self) -> LearnConfig:
        """How the dictionary of a class is learned.

        From patches, not from random atoms: with half of the training images held out that was a
        little better for the seeds tried, with all of them it was not; atoms are pruned from the
        first pass on.
        """
        rotating = self.n_angles is None and self.method == "rotational"
        return LearnConfig(
            init="patches",
            n_atoms=self.n_atoms,
            sparsity=self.sparsity,
            n_angles=N_ANGLES if rotating else self.n_angles,
            n_iterations=self.n_iterations,
            basis=self.basis,
            update=self.update,
            seed=self.seed,
        )

    def patches(self, diameter: int) -> PatchConfig:
        """The patches that a dictionary is learned from: their means are removed."""
        return PatchConfig(
            diameter=diameter,
            center=True,
            unit=self.unit,
            per_image=self.patches_per_image,
            rotate=ROTATIONS[self.rotations] if self.method == "augmented" else (),
            seed=self.seed,
        )


def check_diameters(found: Any) -> tuple[int, ...]:
    """Diameters in rising order, from one or several."""
    several = isinstance(found, Iterable) and not isinstance(found, str)
    diameters = tuple(check_diameter(one) for one in (found if several else [found]))
    if not diameters:
        raise DscError("diameter: found none, need at least one")
    if len(set(diameters)) < len(diameters):
        raise DscError(f"diameter: found {list(diameters)}, need every one once")
    return tuple(sorted(diameters))
