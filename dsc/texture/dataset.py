"""Images and their classes, from what a user has: arrays, files, a folder per class, a suite."""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path, PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsc.engine import Engine, part_tasks
from dsc.errors import DscError, raise_listed
from dsc.images import (
    NUMPY,
    SUFFIXES,
    Image,
    image_problem,
    is_zarr,
    open_images,
    probe_array,
    take_plane,
)
from dsc.show import Stage
from dsc.texture.outex import is_suite, read_suite

TASKS = 12  # per thread


@dataclass(frozen=True, eq=False)
class Dataset:
    """Images with their classes."""

    images: tuple[Image, ...]  # in the order they were given
    labels: tuple[str | None, ...]  # the class of each; None where it is not known
    # degrees that an image is rotated by; None where it is not known
    angles: tuple[float | None, ...]
    # SHA-256 of the grey values of each image, whatever file they are in; none before they are
    # asked for, see `with_contents`
    contents: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.images)

    @property
    def order(self) -> str:
        """Hash of the names and classes in order."""
        names = [image.name for image in self.images]
        return hashlib.sha256(repr((names, self.labels)).encode()).hexdigest()

    @cached_property
    def hashes(self) -> tuple[str, ...]:
        """SHA-256 of each image."""
        return tuple(map(image_hash, self.images))


def read_inputs(
    inputs: Any,
    labels: Sequence[Any] | None = None,
    problem: str = "000",
    classes: Sequence[str] = (),
    part: str = "train",
) -> Dataset:
    """Images and their classes, of which only `classes` are kept, all if there are none.

    From an array (image, y, x), a sequence of arrays (y, x) or (y, x, color) or of files; a folder
    with one folder per class; or the "train" or "test" part of a problem of a suite in Outex
    layout. `labels` are the classes, where the input does not say them.
    """
    if isinstance(inputs, Dataset):
        return inputs
    if isinstance(inputs, str | os.PathLike) and is_suite(inputs):
        suite = read_suite(inputs, problem, classes)
        samples = suite.train if part == "train" else suite.test
        if not samples:
            raise DscError("images: found none in this part of the suite, need at least one")
        return Dataset(
            tuple(_open_each([sample.path for sample in samples])),
            tuple(sample.label for sample in samples),
            tuple(sample.angle for sample in samples),
        )
    if isinstance(inputs, str | os.PathLike):
        if labels is None and part == "train":
            _check_folders(Path(inputs))
        images = open_images(inputs)
    else:
        images = _read_items(inputs)
    if not images:
        raise DscError("images: found none, need at least one")
    if labels is None:
        named: list[str | None] = [image.label for image in images]
    else:
        named = [None if label is None else str(label) for label in labels]
        if len(named) != len(images):
            raise DscError(f"labels: found {len(named)}, need {len(images)}, one per image")
    if missing := sorted(set(classes) - set(named)):
        raise DscError(f"classes: found no images of {', '.join(missing)}")
    kept = [i for i, name in enumerate(named) if not classes or name in classes]
    return Dataset(
        tuple(images[i] for i in kept), tuple(named[i] for i in kept), (None,) * len(kept)
    )


def label_indices(data: Dataset, label_names: Sequence[str]) -> NDArray[np.int64]:
    """The classes of images as indices in `label_names`, refused if one is not among them."""
    _check_labelled(data)
    unknown = sorted({str(label) for label in data.labels if label not in label_names})
    if unknown:
        raise DscError(
            f"labels: found {', '.join(unknown)}, which the model has not learned; need some of "
            f"{', '.join(label_names)}"
        )
    return np.array([label_names.index(str(label)) for label in data.labels], np.int64)


def check_classes(data: Dataset) -> tuple[str, ...]:
    """The names of the classes, refused if an image has none or there are fewer than two."""
    _check_labelled(data)
    names = tuple(sorted({str(label) for label in data.labels}))
    if len(names) < 2:
        raise DscError(f"labels: found {len(names)} class ({', '.join(names)}), need at least two")
    return names


def _check_labelled(data: Dataset) -> None:
    unknown = [p.name for p, label in zip(data.images, data.labels, strict=True) if label is None]
    if unknown:
        listed = ", ".join(unknown[:5]) + (" …" if len(unknown) > 5 else "")
        raise DscError(
            f"labels: found {len(unknown)} images without a class ({listed}), need one for each: "
            f"give labels, or one folder per class{_advice(unknown)}"
        )


def _advice(names: Sequence[str]) -> str:
    """Which folders to make where file names carry the class, as in grass_01.png; else nothing."""
    stems = [re.fullmatch(r"(.*[^\W\d_].*?)[\W_]*\d+", PurePath(name).stem) for name in names]
    first = Counter(stem.group(1) for stem in stems if stem)
    if not (2 <= len(first) <= len(names) // 2 and first.total() == len(names)):
        return ""
    classes = sorted(first)
    listed = ", ".join(classes[:5]) + (" …" if len(classes) > 5 else "")
    example = PurePath(min(name for name in names if PurePath(name).name.startswith(classes[0])))
    return (
        f". The names of the files seem to carry the class ({listed}): move the files into folders "
        f"of these names, such as {classes[0]}/{example.name}"
    )


def _check_folders(root: Path) -> None:
    """Refuse classes without images: folders that have none beside others that have some."""
    if not root.is_dir() or is_zarr(root):
        return
    folders = [sub for sub in sorted(root.iterdir()) if sub.is_dir() and sub.name[0] != "."]
    problems = [
        f"class {sub.name}: found no images in its folder, need at least one"
        for sub in folders
        if not is_zarr(sub)
        and not any(path.suffix.lower() in SUFFIXES or is_zarr(path) for path in sub.iterdir())
    ]
    if len(problems) < len(folders):
        raise_listed("images", problems)


def _read_items(images: Any) -> list[Image]:
    items = list(images)
    if all(isinstance(item, str | os.PathLike) for item in items):
        return _open_each(items)
    return [
        item if isinstance(item, Image) else _array_image(np.asarray(item), f"image {number}")
        for number, item in enumerate(items)
    ]


def _open_each(paths: Sequence[Any]) -> list[Image]:
    """One image per path, in order; all that cannot be used is named in one error."""
    images, problems = [], []
    for path in paths:
        try:
            found = open_images(path)
        except DscError as error:
            problems.append(str(error).splitlines()[-1].strip())
            continue
        if len(found) == 1:
            images.append(replace(found[0], label=None))
        else:
            problems.append(f"{path}: found {len(found)} images, need one")
    raise_listed("images", problems)
    return images


def _array_image(array: Any, name: str) -> Image:
    pages = probe_array(array) if array.ndim in (2, 3) else []
    if len(pages) != 1:
        raise DscError(f"{name}: found shape {array.shape}, need (y, x) or (y, x, color)")
    return Image(name, None, pages[0][1], take_plane(array, 0))


def with_contents(data: Dataset, engine: Engine) -> Dataset:
    """The same images with the hashes of their pixels, which are read in tasks."""
    if data.contents:
        return data
    return replace(data, contents=tuple(of_each(pixel_hash, data.images, engine)))


def of_each(function: Callable[[Image], Any], images: Sequence[Image], engine: Engine) -> list[Any]:
    """What a function says of every image, in tasks; of arrays in memory in this process."""
    away = [image for image in images if not image.in_memory]
    step = max(1, -(-len(away) // (TASKS * engine.resources.n_threads)))
    parts = [tuple(away[begin : begin + step]) for begin in range(0, len(away), step)]
    tasks = part_tasks(of_part, parts, function)
    found = iter(
        [one for part in engine.compute(tasks, Stage("look at the images", 0)) for one in part]
    )
    return [function(image) if image.in_memory else next(found) for image in images]


def of_part(images: tuple[Image, ...], function: Callable[[Image], Any]) -> list[Any]:
    """One task: what the function says of some images."""
    return [function(image) for image in images]


def image_hash(image: Image) -> str:
    """SHA-256 of what an image is read from: the bytes of its file, or its pixels."""
    source = image.source
    try:
        if isinstance(source, tuple) and source[0].suffix.lower() not in NUMPY:
            path, page, _ = source
            status = path.stat()
            whole = _file_hash(path, status.st_mtime_ns, status.st_size)
            return hashlib.sha256(f"{whole} page {page}".encode()).hexdigest()
    except Exception as error:  # whatever a decoder raises is the file's fault
        raise DscError(image_problem(image, error)) from error
    return pixel_hash(image)


def pixel_hash(image: Image) -> str:
    """SHA-256 of the shape and the grey values of an image."""
    total = hashlib.sha256(repr(image.shape).encode())
    height, width = image.shape
    try:
        for y in range(0, height, image.tile[0]):
            rows = image.read(y, min(y + image.tile[0], height), 0, width)
            total.update(np.ascontiguousarray(rows).data)
    except Exception as error:  # whatever a decoder raises is the file's fault
        raise DscError(image_problem(image, error)) from error
    return total.hexdigest()


@lru_cache(maxsize=64)
def _file_hash(path: Path, *_: int) -> str:
    """Of a file as it is now: its time and size make another call of another file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
