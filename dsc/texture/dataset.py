"""Pictures and their classes, from what a user has: arrays, files, a folder per class, a suite."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsc.errors import DscError, raise_listed
from dsc.images import (
    NUMPY,
    SUFFIXES,
    Picture,
    is_zarr,
    open_pictures,
    picture_problem,
    probe_array,
    take_plane,
)
from dsc.texture.outex import Sample, is_suite, read_suite


@dataclass(frozen=True, eq=False)
class Dataset:
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

    @property
    def order(self) -> str:
        """Hash of the names and classes in order."""
        names = [picture.name for picture in self.pictures]
        return hashlib.sha256(repr((names, self.labels)).encode()).hexdigest()

    @cached_property
    def hashes(self) -> tuple[str, ...]:
        """SHA-256 of each picture."""
        return tuple(map(picture_hash, self.pictures))


def read_inputs(
    images: Any,
    labels: Sequence[Any] | None = None,
    problem: str = "000",
    classes: Sequence[str] = (),
    part: str = "train",
) -> Dataset:
    """Pictures and their classes.

    Parameters
    ----------
    images
        An array (image, y, x), a sequence of arrays (y, x) or (y, x, color) or of files; a folder
        with one folder per class; or a suite in Outex layout.
    labels
        The class of each picture, where the input does not say it.
    problem
        Which problem of a suite.
    classes
        Keep only these; all if there are none.
    part
        "train" or "test" of a suite.
    """
    if isinstance(images, Dataset):
        return images
    if isinstance(images, str | os.PathLike) and is_suite(images):
        suite = read_suite(images, problem, classes)
        return read_samples(suite.train if part == "train" else suite.test)
    if isinstance(images, str | os.PathLike):
        if labels is None and part == "train":
            _check_folders(Path(images))
        pictures = open_pictures(images)
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
    return Dataset(
        tuple(pictures[i] for i in kept), tuple(named[i] for i in kept), (None,) * len(kept)
    )


def read_samples(samples: Sequence[Sample]) -> Dataset:
    """The pictures of a suite."""
    if not samples:
        raise DscError("pictures: found none in this part of the suite, need at least one")
    return Dataset(
        tuple(_open_each([sample.path for sample in samples])),
        tuple(sample.label for sample in samples),
        tuple(sample.angle for sample in samples),
    )


def label_indices(data: Dataset, label_names: Sequence[str]) -> NDArray[np.int64]:
    """The classes of pictures as indices in `label_names`, refused if one is not among them."""
    unlabelled = sum(label is None for label in data.labels)
    if unlabelled:
        raise DscError(
            f"labels: found {unlabelled} pictures without a class, need one for each: give labels, "
            "or one folder per class"
        )
    unknown = sorted({str(label) for label in data.labels if label not in label_names})
    if unknown:
        raise DscError(
            f"labels: found {', '.join(unknown)}, which the model has not learned; need some of "
            f"{', '.join(label_names)}"
        )
    return np.array([label_names.index(str(label)) for label in data.labels], np.int64)


def check_classes(data: Dataset) -> tuple[str, ...]:
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


def _check_folders(root: Path) -> None:
    """Refuse classes without pictures: folders that have none beside others that have some."""
    if not root.is_dir() or is_zarr(root):
        return
    folders = [sub for sub in sorted(root.iterdir()) if sub.is_dir() and sub.name[0] != "."]
    empty = [sub.name for sub in folders if not is_zarr(sub) and not any(_pictures_of(sub))]
    if len(empty) < len(folders):
        problems = (
            f"class {name}: found no pictures in its folder, need at least one" for name in empty
        )
        raise_listed("pictures", list(problems))


def _pictures_of(folder: Path) -> Iterator[Path]:
    return (path for path in folder.iterdir() if path.suffix.lower() in SUFFIXES or is_zarr(path))


def _read_items(images: Any) -> list[Picture]:
    items = list(images)
    if all(isinstance(item, str | os.PathLike) for item in items):
        return _open_each(items)
    return [
        item if isinstance(item, Picture) else _array_picture(np.asarray(item), f"picture {number}")
        for number, item in enumerate(items)
    ]


def _open_each(paths: Sequence[Any]) -> list[Picture]:
    """One picture per path, in order; all that cannot be used is named in one error."""
    pictures, problems = [], []
    for path in paths:
        try:
            found = open_pictures(path)
        except DscError as error:
            problems.append(str(error).splitlines()[-1].strip())
            continue
        if len(found) == 1:
            pictures.append(replace(found[0], label=None))
        else:
            problems.append(f"{path}: found {len(found)} pictures, need one")
    raise_listed("pictures", problems)
    return pictures


def _array_picture(array: Any, name: str) -> Picture:
    pages = probe_array(array) if array.ndim in (2, 3) else []
    if len(pages) != 1:
        raise DscError(f"{name}: found shape {array.shape}, need (y, x) or (y, x, color)")
    return Picture(name, None, pages[0][1], take_plane(array, 0))


def picture_hash(picture: Picture) -> str:
    """SHA-256 of what a picture is read from: the bytes of its file, or its pixels."""
    source = picture.source
    try:
        if isinstance(source, tuple) and source[0].suffix.lower() not in NUMPY:
            path, page = source
            status = path.stat()
            whole = _file_hash(path, status.st_mtime_ns, status.st_size)
            return hashlib.sha256(f"{whole} page {page}".encode()).hexdigest()
        total = hashlib.sha256(repr(picture.shape).encode())
        height, width = picture.shape
        for y in range(0, height, picture.tile[0]):
            rows = picture.read(y, min(y + picture.tile[0], height), 0, width)
            total.update(np.ascontiguousarray(rows).data)
        return total.hexdigest()
    except Exception as error:  # whatever a decoder raises is the file's fault
        raise DscError(picture_problem(picture, error)) from error


@lru_cache(maxsize=64)
def _file_hash(path: Path, *_: int) -> str:
    """Of a file as it is now: its time and size make another call of another file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
