"""`TextureModel`: the dictionaries of all classes and the histograms of the training pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsc.basis import SteerableBasis
from dsc.dictionary.run import RunFolder
from dsc.errors import DscError
from dsc.store import basis_sizes, basis_variables, create, open_store, read_basis
from dsc.texture.config import TextureConfig
from dsc.texture.histograms import Feature, histograms, joined_counts
from dsc.texture.labelling import Labeller
from dsc.texture.neighbours import chi_square, nearest

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class TextureModel:
    """A fitted texture classifier.

    Attributes
    ----------
    atoms
        (label, atom, coord) unit norm.
    basis
        Their basis.
    config
        How it was fitted.
    label_names
        The classes.
    history
        (label, iteration) error per pixel of each dictionary, as in `Dictionary.history`.
    atom_count
        (label, atom) uses of each atom in the last pass.
    patches
        Fingerprint of the training patches of each class.
    numerics
        Library versions and CPU that the bits depend on.
    image_count
        (image, label, atom) patches of the training pictures that each atom codes best.
    image_label
        (image,) their classes, places in `label_names`.
    picture_names
        Their names.
    order
        Hash of their names and classes in order.
    """

    atoms: Floats
    basis: SteerableBasis = field(repr=False)
    config: TextureConfig
    label_names: tuple[str, ...]
    history: Doubles = field(repr=False)
    atom_count: Integers = field(repr=False)
    patches: dict[str, str] = field(repr=False)
    numerics: dict[str, str] = field(repr=False)
    image_count: Integers = field(repr=False)
    image_label: Integers = field(repr=False)
    picture_names: tuple[str, ...] = field(repr=False)
    order: str = field(repr=False)

    def __repr__(self) -> str:
        return (
            f"TextureModel({len(self.label_names)} classes, {self.config.method}, "
            f"{self.config.n_atoms} atoms each, diameter {self.config.diameter}, "
            f"{len(self.image_count)} training pictures)"
        )

    @cached_property
    def labeller(self) -> Labeller:
        """What labels patches."""
        return make_labeller(self.config, self.atoms, self.basis)

    @property
    def identity(self) -> dict[str, dict[str, Any]]:
        """What decides the result, for resuming."""
        return identity_of(self.config, self.label_names, self.order, self.patches, self.numerics)

    @property
    def histograms(self) -> Doubles:
        """(image, bin) of the training pictures, each summing to one."""
        return histograms(self.image_count, self.config.histogram)

    def describe(self, features: Sequence[Feature], names: Sequence[str]) -> Doubles:
        """(image, bin) the histograms of other pictures, by their names."""
        counts = joined_counts(features, names, len(self.label_names))
        return histograms(counts, self.config.histogram)

    @property
    def sha256(self) -> str:
        """Hash of all atoms (little-endian float32 coordinates, C order)."""
        return str(self.labeller.identity["atoms_sha256"])

    def classify(self, histograms: Doubles) -> tuple[Integers, Doubles, Integers]:
        """The class of the nearest training picture, by χ².

        Returns
        -------
        (image,) places in `label_names`; (image, label) smallest distance to each class; (image,)
        the nearest training picture, ties to the first.
        """
        distances = chi_square(histograms, self.histograms)
        predicted, by_class = nearest(distances, self.image_label, len(self.label_names))
        return predicted, by_class, distances.argmin(axis=1)

    def save(self, url: str | PathLike[str]) -> None:
        """Write a texture store at a path or URL that does not exist yet."""
        arrays: dict[str, NDArray[Any]] = {
            "atoms": self.atoms,
            "history": self.history,
            "atom_count": self.atom_count,
            "image_count": self.image_count.astype(np.int32),
            "image_label": self.image_label.astype(np.int32),
        }
        attributes = {
            "identity": self.identity,
            "label_names": list(self.label_names),
            "picture_names": list(self.picture_names),
            "atoms_sha256": self.sha256,
        }
        save_texture(url, self.basis, arrays, attributes)

    @staticmethod
    def load(path: str | PathLike[str]) -> TextureModel:
        """Read a texture store, or the one in a finished run folder."""
        folder = RunFolder(Path(path))
        if "://" not in str(path) and (folder.path / "run.toml").is_file():
            if not folder.finished:
                raise DscError(
                    f"{path}: the run is not finished: continue it with --resume, then use it"
                )
            path = folder.model
        arrays, attributes, basis = load_texture(path)
        if "image_count" not in arrays:
            raise DscError(
                f"{path}: is a checkpoint, or of an earlier version: need a finished model"
            )
        identity = attributes["identity"]
        return TextureModel(
            atoms=arrays["atoms"],
            basis=basis,
            config=TextureConfig(**identity["config"]),
            label_names=tuple(attributes["label_names"]),
            history=arrays["history"],
            atom_count=arrays["atom_count"],
            patches=identity["patches"],
            numerics=identity["numerics"],
            image_count=arrays["image_count"].astype(np.int64),
            image_label=arrays["image_label"].astype(np.int64),
            picture_names=tuple(attributes["picture_names"]),
            order=identity["pictures"]["order"],
        )


def make_labeller(config: TextureConfig, atoms: Floats, basis: SteerableBasis) -> Labeller:
    """What labels patches with these atoms."""
    n_angles = config.learning.resolve(basis)
    return Labeller(atoms, basis, config.sparsity, n_angles, config.stride)


def identity_of(
    config: TextureConfig,
    label_names: Sequence[str],
    order: str,
    patches: dict[str, str],
    numerics: dict[str, str],
) -> dict[str, dict[str, Any]]:
    """What decides a result, for resuming."""
    return {
        "config": asdict(config),
        "classes": {name: str(number) for number, name in enumerate(label_names)},
        "pictures": {"order": order},
        "patches": patches,
        "numerics": numerics,
    }


def save_texture(
    url: str | PathLike[str],
    basis: SteerableBasis,
    arrays: dict[str, NDArray[Any]],
    attributes: dict[str, Any],
) -> None:
    """Write a texture store: a finished model, or a checkpoint of one without histograms."""
    n_labels, n_atoms, _ = arrays["atoms"].shape
    side = basis.diameter
    sizes = {"label": n_labels, "atom": n_atoms, "iteration": arrays["history"].shape[1]}
    sizes |= {"y": side, "x": side, "image": len(arrays.get("image_label", ()))}
    pixels = basis.to_image(arrays["atoms"].reshape(n_labels * n_atoms, -1))
    values: dict[str, NDArray[Any]] = {
        **arrays,
        "atoms_pixels": pixels.reshape(n_labels, n_atoms, side, side),
        "mask": basis.mask,
        **basis_variables(basis),
    }
    about = {**attributes, "basis": basis.name, "diameter": side}
    store = create(url, "texture", sizes | basis_sizes(basis), {}, about, list(values))
    for name, array in values.items():
        store.write(name, 0, array)
    store.finish()


def load_texture(
    url: str | PathLike[str],
) -> tuple[dict[str, NDArray[Any]], dict[str, Any], SteerableBasis]:
    """Arrays, attributes and basis of a texture store."""
    store = open_store(url, "texture")
    wanted = ("atoms", "history", "atom_count", "image_count", "image_label")
    arrays = {name: store.read(name) for name in wanted if name in store.variables}
    return arrays, store.attributes, read_basis(store)
