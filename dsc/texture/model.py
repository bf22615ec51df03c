"""`TextureModel`: the dictionaries of all classes and the histograms of the training images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsc.dictionary import Run, State, states_card
from dsc.engine import Engine
from dsc.errors import DscError
from dsc.images import Image
from dsc.show import Card
from dsc.store import as_written, basis_sizes, create, open_store
from dsc.texture.config import NEAREST, TextureConfig
from dsc.texture.deciding import LastStep
from dsc.texture.histograms import (
    Feature,
    FeatureLog,
    count_labels,
    histograms_of,
    joined_counts,
)
from dsc.texture.labelling import Labellers
from dsc.texture.neighbours import chi_square
from dsc.texture.scale import Scale, add_scales, make_labellers, read_counts

# options that the first stores do not have, and what was done then
FORMER = {"unit": False, "rotations": "even", "classifier": NEAREST}

Doubles = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Prediction:
    """What a model makes of images."""

    features: Sequence[Feature]  # what was counted in each
    histograms: Doubles  # (image, bin) each summing to one
    distances: Doubles  # (image, label) χ² to each class: see `LastStep`
    scores: Doubles  # (image, label) more is more likely
    labels: Integers  # (image,) the classes they are taken for, places in the model's `label_names`
    neighbours: Integers  # (image,) the nearest training images, ties to the first


@dataclass(frozen=True, eq=False)
class TextureModel:
    """A fitted texture classifier."""

    scales: tuple[Scale, ...] = field(repr=False)  # its dictionaries, by rising diameter
    config: TextureConfig  # how it was fitted
    label_names: tuple[str, ...]  # the classes
    # fingerprint of the training patches of each dictionary: see `TextureConfig.names`
    patches: dict[str, str] = field(repr=False)
    numerics: dict[str, str] = field(repr=False)  # library versions and CPU that the bits depend on
    # (scale, image, label, atom) patches of the training images that each atom codes best
    image_count: Integers = field(repr=False)
    image_label: Integers = field(repr=False)  # (image,) their classes, places in `label_names`
    image_names: tuple[str, ...] = field(repr=False)  # their names
    order: str = field(repr=False)  # hash of their names and classes in order
    # `Dataset.contents` of them; none in models of earlier versions
    image_contents: tuple[str, ...] = field(default=(), repr=False)

    def __repr__(self) -> str:
        return (
            f"TextureModel({len(self.label_names)} classes, {self.config.method}, "
            f"{self.config.n_atoms} atoms each, diameter {self.config.sizes}, "
            f"{len(self.image_label)} training images)"
        )

    def card(self) -> Card:
        """The atoms of every class and the key numbers, for notebooks."""
        states, bases = [], []
        for one in self.scales:
            learned = zip(one.atoms, map(tuple, one.history), one.atom_count, strict=True)
            states += [State(0, *some) for some in learned]
            bases += [one.basis] * len(one.atoms)
        card = states_card(states, bases, self.config.names(self.label_names))
        numbers = {
            "classes": f"{len(self.label_names)}",
            "training images": f"{len(self.image_label):,}",
            "method": self.config.method,
            "atoms per class": f"{self.config.n_atoms}",
            "diameter": f"{self.config.sizes} pixels",
        }
        return replace(card, title="textures", numbers=numbers)

    def _repr_html_(self) -> str:
        return self.card().html()

    @cached_property
    def labellers(self) -> Labellers:
        """What labels patches."""
        return make_labellers(self.config, self.scales)

    @property
    def history(self) -> Doubles:
        """(dictionary, iteration) errors per pixel: those of all classes, scale by scale."""
        return np.concatenate([scale.history for scale in self.scales])

    @property
    def mse(self) -> float:
        """The mean error per pixel of all dictionaries at the end."""
        return float(self.history[:, -1].mean())

    @property
    def histograms(self) -> Doubles:
        """(image, bin) of the training images, each summing to one."""
        return histograms_of(self.image_count, self.config.histogram)

    @cached_property
    def last_step(self) -> LastStep:
        """What tells the classes of histograms."""
        n_labels = len(self.label_names)
        return LastStep(self.config.classifier, self.histograms, self.image_label, n_labels)

    @property
    def bin_names(self) -> tuple[str, ...]:
        """The bins of histograms: a class, or one of its atoms, such as "grass_atom3".

        Of several diameters with these: "grass, 7 pixels_atom3".
        """
        names, n_labels = self.config.names(self.label_names), len(self.label_names)
        found: list[str] = []
        for begin in range(0, len(names), n_labels):
            classes = names[begin : begin + n_labels]
            atoms = tuple(f"{name}_atom{m}" for name in classes for m in range(self.config.n_atoms))
            bins = {"classes": classes, "atoms": atoms, "both": (*classes, *atoms)}
            found += bins[self.config.histogram]
        return tuple(found)

    @property
    def sha256(self) -> str:
        """Hash of all atoms (little-endian float32 coordinates, C order)."""
        return self.labellers.sha256

    def predict(
        self, images: Sequence[Image], engine: Engine, log: Path | None = None
    ) -> Prediction:
        """Count how the patches of images are labelled, and find the nearest training images.

        Images that are in the file `log` are not counted again; the others are added to it.
        """
        kept = None if log is None else FeatureLog(log, self.labellers.identity)
        features = count_labels(images, self.labellers, engine, kept)
        return self.classify(features, [image.name for image in images])

    def classify(self, features: Sequence[Feature], names: Sequence[str]) -> Prediction:
        """The same for images that are counted; `names` are for errors."""
        counts = joined_counts(features, names, self.labellers)
        rows = histograms_of(counts, self.config.histogram)
        distances = chi_square(rows, self.histograms)
        found = self.last_step.decide(distances)
        return Prediction(
            features, rows, found.distances, found.scores, found.labels, distances.argmin(axis=1)
        )

    def probabilities(self, prediction: Prediction) -> Doubles:
        """(image, label) how likely each class is; rows sum to one."""
        return self.last_step.probabilities(prediction.scores)

    def save(self, url: str | PathLike[str]) -> None:
        """Write a texture store at a path or URL that does not exist yet."""
        first = self.scales[0]
        n_labels, n_atoms, _ = first.atoms.shape
        side = first.basis.diameter
        sizes = {"label": n_labels, "atom": n_atoms, "iteration": first.history.shape[1]}
        sizes |= {"y": side, "x": side, "image": len(self.image_label)} | basis_sizes(first.basis)
        attributes = {
            "config": asdict(self.config),
            "label_names": list(self.label_names),
            "image_names": list(self.image_names),
            "order": self.order,
            "image_contents": list(self.image_contents),
            "patches": self.patches,
            "numerics": self.numerics,
            "atoms_sha256": self.sha256,
            "basis": first.basis.name,
            "diameter": side,
        }
        store = create(url, "texture", sizes, {}, attributes)
        with store.writing():
            store.write("image_label", 0, self.image_label.astype(np.int32))
            add_scales(store, self.scales, self.image_count)
            store.finish()

    @staticmethod
    def load(path: str | PathLike[str]) -> TextureModel:
        """Read a texture store, or the one in a finished run folder."""
        run = None if "://" in str(path) else Run(Path(path))
        if run is not None and run.exists:
            if not run.finished:
                raise DscError(
                    f"{path}: the run is not finished: continue it with --resume, then use it"
                )
            path = run.model
        store = open_store(path, "texture")
        attributes = store.attributes
        with as_written(store.url, "a texture model"):
            config = stored_config(attributes["config"])
            model = TextureModel(
                scales=tuple(Scale.read(store, *pair) for pair in enumerate(config.diameter)),
                config=config,
                label_names=tuple(attributes["label_names"]),
                patches={**attributes["patches"]},
                numerics={**attributes["numerics"]},
                image_count=read_counts(store, config.diameter),
                image_label=store.read("image_label").astype(np.int64),
                image_names=tuple(attributes["image_names"]),
                order=str(attributes["order"]),
                image_contents=tuple(attributes.get("image_contents", ())),
            )
            _check_model(model)
            if model.sha256 != attributes["atoms_sha256"]:  # also refuses what is no atom
                raise DscError("found other atoms than its atoms_sha256 says: make it again")
            return model


def _check_model(model: TextureModel) -> None:
    """Refuse a stored model whose parts do not fit together."""
    (n_labels, n_atoms, _), n_images = model.scales[0].atoms.shape, len(model.image_label)
    config, labels = model.config, model.image_label
    pairs: list[tuple[str, Any, Any]] = [
        ("label_names", len(model.label_names), n_labels),
        ("image_names", len(model.image_names), n_images),
        ("n_atoms", config.n_atoms, n_atoms),
        ("image_count", model.image_count.shape[1:], (n_images, n_labels, n_atoms)),
    ]
    for one in model.scales:
        pairs += [
            ("atoms", one.atoms.shape, (n_labels, n_atoms, one.basis.n_coords)),
            ("history", one.history.shape, (n_labels, model.scales[0].history.shape[1])),
            ("atom_count", one.atom_count.shape, (n_labels, n_atoms)),
            ("basis", one.basis.name, config.basis),
        ]
    problems = [
        f"{name}: found {found}, need {wanted}" for name, found, wanted in pairs if found != wanted
    ]
    words = (*model.label_names, *model.image_names, *model.image_contents)
    if not all(isinstance(word, str) for word in words):
        problems.append("label_names, image_names, image_contents: found other values, need words")
    if model.image_contents and len(model.image_contents) != n_images:
        problems.append(f"image_contents: found {len(model.image_contents)}, need {n_images}")
    if not n_images or not 0 <= labels.min() <= labels.max() < n_labels:
        problems.append(f"image_label: found {set(labels.tolist())}, need 0 to {n_labels - 1}")
    if n_images and not (model.image_count.min() >= 0 < model.image_count.sum((2, 3)).min()):
        problems.append("image_count: found an image without patches, need some of each")
    if any(
        not one.history.size or np.isnan(one.history).any() or one.atom_count.min() < 0
        for one in model.scales
    ):
        problems.append("history and atom_count: found values that no learning leaves")
    if problems:
        raise DscError(f"{'; '.join(problems)}: make it again")


def stored_config(stored: dict[str, Any]) -> TextureConfig:
    """The options of a store, also of one that was written before there were some of them."""
    return TextureConfig(**{**FORMER, **stored})
