"""What a sweep refuses before anything is computed, and what decides its numbers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from numbers import Real
from typing import Any

import numpy as np

from dsc.engine.numerics import numerics_fingerprint
from dsc.errors import DscError, raise_listed
from dsc.patches.scan import Grid
from dsc.texture.config import TextureConfig
from dsc.texture.dataset import Labelled, check_classes, label_places
from dsc.texture.histograms import picture_hash
from dsc.texture.neighbours import cross_validate
from dsc.texture.sweep.results import SWEPT


def check_sweep(
    data: Labelled, settings: Sequence[TextureConfig], held_out: Any, repeats: Any
) -> tuple[str, ...]:
    """The names of the classes; refuses what cannot be swept, all of it at once."""
    label_names: tuple[str, ...] = ()
    problems = []
    try:
        label_names = check_classes(data)
        _check_validation(data, label_names, held_out, repeats)
    except DscError as error:
        problems.append(str(error))
    try:
        _check_sizes(data, settings)
    except DscError as error:
        problems.append(str(error))
    if problems:
        raise DscError("\n".join(problems))
    return label_names


def _check_validation(
    data: Labelled, label_names: Sequence[str], held_out: Any, repeats: Any
) -> None:
    if isinstance(held_out, bool) or not isinstance(held_out, Real):
        raise DscError(f"held_out: found {held_out!r}, need a fraction between 0 and 1")
    once = 1 if isinstance(repeats, int | np.integer) and repeats > 1 else repeats
    cross_validate(np.ones((len(data), 1)), label_places(data, label_names), float(held_out), once)


def _check_sizes(data: Labelled, settings: Sequence[TextureConfig]) -> None:
    """Refuse pictures that are too small for patches, each with the largest that does not fit."""
    kinds = {patches_key(config): config for config in settings}
    largest = sorted(kinds.values(), key=lambda c: (c.diameter, c.method == "augmented"))[::-1]
    problems: dict[int, str] = {}
    for config in largest:
        for place, picture in enumerate(data.pictures):
            try:
                Grid.of(picture.shape, config.patches)
            except DscError as error:
                problems.setdefault(place, f"{picture.name}: {error}")
    raise_listed("pictures", list(problems.values()))


def sweep_identity(
    data: Labelled, base: TextureConfig, held_out: float, repeats: int
) -> dict[str, dict[str, Any]]:
    """What decides the numbers of a setting besides itself, for resuming."""
    pictures, labels = hashlib.sha256(), hashlib.sha256()
    for picture, label in zip(data.pictures, data.labels, strict=True):
        try:
            pictures.update(picture_hash(picture).encode())
        except OSError as error:
            raise DscError(f"{picture.name}: cannot be read: {error}") from error
        labels.update(json.dumps(label).encode())
    config = {name: value for name, value in asdict(base).items() if name not in SWEPT}
    return {
        "data": {
            "n_pictures": len(data),
            "pictures_sha256": pictures.hexdigest(),
            "labels_sha256": labels.hexdigest(),
        },
        "config": config,
        "validation": {"held_out": held_out, "repeats": repeats},
        "numerics": numerics_fingerprint(),
    }


def patches_key(config: TextureConfig) -> tuple[str, int]:
    """What training patches depend on, within a sweep."""
    return config.method, config.diameter
