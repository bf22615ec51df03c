"""Pictures and their classes, from what a user has: arrays, files, a folder per class, a suite."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dsc.errors import DscError
from dsc.patches import Picture, open_pictures
from dsc.patches.formats import probe_array, take_plane
from dsc.patches.pictures import raise_problems
from dsc.texture.suite import Sample, is_suite, read_suite


@dataclass(frozen=True, eq=False)
class Labelled:
    """Pictures with their classes.

    Attributes
    ----------
    pictures
        In the order they were given.
    labels
        The class of each; None where it is not known.
    angles
        Degrees that a picture is turned by; None where it is not known.
    """

    pictures: tuple[Picture, ...]
    labels: tuple[str | None, ...]
    angles: tuple[float | None, ...]

    def __len__(self) -> int:
        return len(self.pictures)


def read_inputs(
    images: Any,
    labels: Sequence[Any] | None = None,
    problem: str = "000",
    classes: Sequence[str] = (),
    part: str = "train",
) -> Labelled:
    """Pictures and their classes.

    Parameters
    ----------
    images
        An array (image, y, x), a sequence of arrays (y, x) or (y, x, color), files or folders; a
        folder with one folder per class; or a suite in Outex layout.
    labels
        The class of each picture, where the input does not say it.
    problem
        Which problem of a suite.
    classes
        Keep only these; all if there are none.
    part
        "train" or "test" of a suite.
    """
    if isinstance(images, Labelled):
        return images
    if isinstance(images, str | os.PathLike) and is_suite(images):
        suite = read_suite(images, problem, classes)
        return read_samples(suite.train if part == "train" else suite.test)
    if isinstance(images, str | os.PathLike):
        pictures = _read_path(Path(images), need_classes=labels is None and part == "train")
    else:
        pictures = _read_items(images)
    if not pictures:
        raise DscError("pictures: found none, need at least one")
    if labels is None:
        named: list[str | None] = [picture.label for picture in pictures]
    else:
        named = [None if label is None else str(label) for label in labels]
        if len(named) != len(pictures):
            raise DscError(f"labels: found {len(named)}, need {len(pictures)}, one per picture")
    if classes:
        missing = sorted(set(classes) - {name for name in named if name is not None})
        if missing:
            raise DscError(f"classes: found no pictures of {', '.join(missing)}")
    kept = [i for i, name in enumerate(named) if not classes or name in classes]
    return Labelled(
        tuple(pictures[i] for i in kept), tuple(named[i] for i in kept), (None,) * len(kept)
    )


def read_samples(samples: Sequence[Sample]) -> Labelled:
    """The pictures of a suite."""
    return Labelled(
        tuple(_one_picture(sample.path) for sample in samples),
        tuple(sample.label for sample in samples),
        tuple(sample.angle for sample in samples),
    )


def check_classes(data: Labelled) -> tuple[str, ...]:
    """The names of the classes, refused if a picture has none or there are fewer than two."""
    unknown = [p.name for p, label in zip(data.pictures, data.labels, strict=True) if label is None]
    if unknown:
        listed = ", ".join(unknown[:5]) + (" …" if len(unknown) > 5 else "")
        raise DscError(
            f"labels: found {len(unknown)} pictures without a class ({listed}), need one for each: "
            "give labels, or one folder per class"
        )
    names = tuple(sorted({label for label in data.labels if label is not None}))
    if len(names) < 2:
        raise DscError(f"labels: found {len(names)} class ({', '.join(names)}), need at least two")
    return names


def _read_path(path: Path, need_classes: bool) -> list[Picture]:
    pictures = open_pictures(path)
    if need_classes and path.is_dir():
        present = {picture.label for picture in pictures}
        raise_problems(
            [
                f"class {sub.name}: found no pictures in its folder, need at least one"
                for sub in sorted(path.iterdir())
                if sub.is_dir() and not sub.name.startswith(".") and sub.name not in present
            ]
            if None not in present
            else []
        )
    return pictures


def _read_items(images: Any) -> list[Picture]:
    pictures: list[Picture] = []
    for number, item in enumerate(images):
        if isinstance(item, Picture):
            pictures.append(item)
        elif isinstance(item, str | os.PathLike):
            pictures.append(_one_picture(Path(item)))
        else:
            pictures.append(_array_picture(np.asarray(item), f"picture {number}"))
    return pictures


def _one_picture(path: Path) -> Picture:
    found = open_pictures(path)
    if len(found) != 1:
        raise DscError(f"{path}: found {len(found)} pictures, need one")
    return replace(found[0], label=None)


def _array_picture(array: Any, name: str) -> Picture:
    pages = probe_array(array) if array.ndim in (2, 3) else []
    if len(pages) != 1:
        raise DscError(f"{name}: found shape {array.shape}, need (y, x) or (y, x, color)")
    return Picture(name, None, pages[0][1], take_plane(array, 0))
