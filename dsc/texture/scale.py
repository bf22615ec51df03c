"""`Scale`: the dictionaries of all classes at one diameter, and where they are in a store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsc.basis import SteerableBasis
from dsc.dictionary import Dictionary
from dsc.store import NEWEST, Store, add_group, basis_variables, read_basis
from dsc.texture.config import TextureConfig
from dsc.texture.labelling import Labeller, Labellers
from dsc.texture.schema import MORE

COUNT = "image_count"

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Scale:
    """The dictionaries of all classes at one diameter."""

    atoms: NDArray[np.float32]  # (label, atom, coord) unit norm
    basis: SteerableBasis = field(repr=False)  # their basis
    # (label, iteration) error per pixel of each dictionary, as in `Dictionary.history`
    history: NDArray[np.float64] = field(repr=False)
    atom_count: NDArray[np.int64] = field(repr=False)  # (label, atom) uses in the last pass

    @staticmethod
    def of(models: Sequence[Dictionary]) -> Scale:
        """From a dictionary for each class."""
        return Scale(
            atoms=np.stack([model.atoms for model in models]),
            basis=models[0].basis,
            history=np.stack([model.history for model in models]),
            atom_count=np.stack([model.count for model in models]),
        )

    def arrays(self) -> Arrays:
        """What a store has of it."""
        n_labels, n_atoms, n_coords = self.atoms.shape
        side = self.basis.diameter
        pixels = self.basis.to_image(self.atoms.reshape(-1, n_coords))
        return {
            "atoms": self.atoms,
            "atoms_pixels": pixels.reshape(n_labels, n_atoms, side, side),
            "history": self.history,
            "atom_count": self.atom_count,
            "mask": self.basis.mask,
            **basis_variables(self.basis),
        }

    @staticmethod
    def read(store: Store, number: int, diameter: int) -> Scale:
        """From a store, of whose diameters it is the one with this number."""
        return Scale(
            atoms=store.read(_name("atoms", number, diameter)),
            basis=read_basis(store, diameter, lambda name: _name(name, number, diameter)),
            history=store.read(_name("history", number, diameter)),
            atom_count=store.read(_name("atom_count", number, diameter)),
        )


def add_scales(store: Store, scales: Sequence[Scale], image_count: NDArray[np.int64]) -> None:
    """Write the first to its arrays, and add the others in groups; with the counts of each."""
    parts = [
        {**scale.arrays(), COUNT: counts.astype(np.int32)}
        for scale, counts in zip(scales, image_count, strict=True)
    ]
    diameters = [scale.basis.diameter for scale in scales]
    if len(scales) > 1:
        store.describe({"dsc_format": NEWEST})
    for name in parts[0] if len(scales) > 1 else ():
        shapes = {
            str(diameter): (arrays[name].shape, arrays[name].shape)
            for diameter, arrays in zip(diameters[1:], parts[1:], strict=True)
        }
        add_group(store, MORE + name, shapes, {})
    for number, (diameter, arrays) in enumerate(zip(diameters, parts, strict=True)):
        for name, array in arrays.items():
            store.write(_name(name, number, diameter), 0, array)


def read_counts(store: Store, diameters: Sequence[int]) -> NDArray[np.int64]:
    """(scale, image, label, atom) the counts of the training images."""
    counts = [store.read(_name(COUNT, *pair)) for pair in enumerate(diameters)]
    return np.stack(counts).astype(np.int64)


def _name(name: str, number: int, diameter: int) -> str:
    """Of an array of a scale; the first stands where that of one diameter does."""
    return f"{MORE}{name}/{diameter}" if number else name


def make_labeller(
    config: TextureConfig, atoms: NDArray[np.float32], basis: SteerableBasis
) -> Labeller:
    """What labels patches with these atoms."""
    n_angles = config.learning.resolve(basis)
    return Labeller(atoms, basis, config.sparsity, n_angles, config.stride)


def make_labellers(config: TextureConfig, scales: Sequence[Scale]) -> Labellers:
    """What labels patches of all diameters."""
    return Labellers(tuple(make_labeller(config, one.atoms, one.basis) for one in scales))
