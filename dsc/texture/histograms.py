"""Histograms of images, image by image, with a log by which an interrupted run continues."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dsc.engine import Engine, part_tasks, readable
from dsc.errors import DscError, raise_listed
from dsc.files import append_records, each_record, n_damaged, read_records
from dsc.images import Image, image_problem
from dsc.show import Event, Notice, Stage
from dsc.texture.dataset import TASKS, image_hash, of_each
from dsc.texture.labelling import NONE, Labellers

TASK_PATCHES = 8192  # in a task, at least
ATOM_WEIGHT = 1 / 4  # beside classes; chosen by `dsc experiment texture-bins`

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Feature:
    """What was counted in an image."""

    # patches that each atom codes best, the atoms of one class after those of another; those of one
    # diameter after those of another
    counts: tuple[int, ...]
    n_patches: int  # patches in all, of all diameters; those of zeros have no class
    evaluated: int  # pairs of an atom and a patch whose every angle and coordinate was tried
    seconds: float = field(default=0.0, compare=False)  # its share of the time that its round took


@dataclass(frozen=True)
class Labelling(Event):
    """Some more images are labelled."""

    line_every: ClassVar[float] = 20.0
    is_kept: ClassVar[bool] = False

    done: int  # images so far, those of an earlier session included, and in all
    total: int
    patches_per_second: float  # in this session
    seconds: float  # since its begin, and until all images are done
    seconds_left: float

    @property
    def is_last(self) -> bool:
        """Whether a bar ends with it."""
        return self.done == self.total

    def line(self) -> str:
        """One line for a log."""
        return self.bar()[1]

    def bar(self) -> tuple[float, str]:
        """The share that is done, and what is said beside it."""
        return self.done / self.total, (
            f"labelled {self.done:,} of {self.total:,} images: "
            f"{self.patches_per_second:,.0f} patches/s, {self.seconds_left:.0f} s left"
        )


@dataclass(frozen=True)
class FeatureLog:
    """A JSON-lines file of finished images: a header that names the model, then a line each."""

    path: Path  # the file; made if it is not there
    # what the counts depend on besides the image; a log of another model is refused
    model: dict[str, Any]

    def read(self) -> dict[str, Feature]:
        """Finished images by their hashes; a line that a kill has cut does not count."""
        if self.path.is_dir() or not self.path.parent.is_dir():
            raise DscError(f"{self.path}: need a file, in a folder that exists")
        records = read_records(self.path)
        if next(each_record(self.path), records) is None:
            raise DscError(f"{self.path}: its first line is damaged: remove the file")
        if not records:
            # the first line of a log of ours may have been cut by a kill
            found = self.path.read_bytes() if self.path.is_file() else b""
            if not json.dumps({"model": self.model}).encode().startswith(found):
                raise DscError(f"{self.path}: is no log of features of ours: choose another file")
            return {}
        header = records[0].get("model")
        if header != self.model:
            raise DscError(
                f"{self.path}: found features of another model ({header}), need those of "
                f"{self.model}: choose another file, or remove it"
            )
        return {
            record.pop("image"): Feature(**{**record, "counts": tuple(record["counts"])})
            for record in records[1:]
        }

    def append(self, features: dict[str, Feature]) -> None:
        """Add finished images."""
        header = [] if any(True for _ in each_record(self.path)) else [{"model": self.model}]
        lines = ({"image": name, **asdict(feature)} for name, feature in features.items())
        append_records(self.path, [*header, *lines])


def count_labels(
    images: Sequence[Image],
    labellers: Labellers,
    engine: Engine,
    log: FeatureLog | None = None,
) -> list[Feature]:
    """Label all patches of images and count them by diameter and atom: nothing else is kept.

    Images that are in the log are not looked at again.
    """
    check_images(images, labellers.diameter)
    check_memory(labellers.task_bytes(images), engine)
    names = [image_hash(p) if log else str(i) for i, p in enumerate(images)]
    done = log.read() if log else {}
    if log and (damaged := n_damaged(log.path)):
        text = f"{log.path}: {damaged} damaged lines are left out, their images are counted again"
        engine.report(Notice(text))
    todo = {name: p for name, p in zip(names, images, strict=True) if name not in done}
    began, n_patches, n_done = time.perf_counter(), 0, len(images) - len(todo)
    n_todo = sum(labellers.n_windows(image.shape) for image in todo.values())
    for batch in _rounds(todo, labellers, engine.resources.n_threads):
        parts = [tuple(part.values()) for part in batch]
        started = time.perf_counter()
        n_round = sum(labellers.n_windows(p.shape) for part in parts for p in part)
        # as if all rounds were as long: what a bar shows goes on from round to round
        stage = Stage("label images", n_round, n_patches // n_round, -(-n_todo // n_round))
        results = engine.compute(part_tasks(label_part, parts, labellers), stage)
        share = (time.perf_counter() - started) / sum(len(part) for part in parts)
        found = {
            name: replace(feature, seconds=share)
            for part, features in zip(batch, results, strict=True)
            for name, feature in zip(part, features, strict=True)
        }
        if log:
            log.append(found)
        done |= found
        n_done += len(found)
        n_patches += sum(feature.n_patches for feature in found.values())
        seconds = time.perf_counter() - began
        pace = seconds / max(1, n_done - (len(images) - len(todo)))
        remaining = pace * (len(images) - n_done)
        engine.report(Labelling(n_done, len(images), n_patches / seconds, seconds, remaining))
    return [done[name] for name in names]


def label_part(images: tuple[Image, ...], labellers: Labellers) -> list[Feature]:
    """The features of a task's images."""
    features = []
    for image in images:
        counts = np.zeros((len(labellers.each), labellers.n_atoms), np.int64)
        n_patches = evaluated = 0
        try:
            for row, labeller in zip(counts, labellers.each, strict=True):
                for _, atoms, n_pairs in labeller.best_pieces(image):
                    row += np.bincount(atoms[atoms != NONE], minlength=row.size)
                    n_patches += atoms.size
                    evaluated += n_pairs
        except Exception as error:  # whatever a decoder raises is the file's fault
            raise DscError(image_problem(image, error)) from error
        features.append(Feature(tuple(counts.ravel().tolist()), n_patches, evaluated))
    return features


def _rounds(
    todo: dict[str, Image], labellers: Labellers, n_threads: int
) -> Iterator[list[dict[str, Image]]]:
    """Some tasks for every thread at a time, each of some images with enough patches."""
    batch: list[dict[str, Image]] = []
    part: dict[str, Image] = {}
    n_patches = 0
    for name, image in todo.items():
        part[name] = image
        n_patches += labellers.n_windows(image.shape)
        if n_patches >= TASK_PATCHES:
            batch.append(part)
            part, n_patches = {}, 0
        if len(batch) >= TASKS * n_threads:  # a round, after which the log is written
            yield batch
            batch = []
    if part:
        batch.append(part)
    if batch:
        yield batch


def check_memory(task_bytes: int, engine: Engine) -> None:
    """Refuse to label where a thread has less memory than labelling needs at a time."""
    resources = engine.resources
    if task_bytes > resources.memory_per_thread:
        raise DscError(
            f"labelling needs about {readable(task_bytes)} at a time but {resources.memory_of} has "
            f"{readable(resources.memory_per_thread)} for each of {resources.n_threads} threads: "
            "give more memory, or use fewer threads, fewer atoms or a smaller diameter"
        )


def check_images(images: Sequence[Image], diameter: int) -> None:
    """Refuse images that are smaller than a patch, all of them at once."""
    small = [
        f"{image.name}: found {image.shape[0]} × {image.shape[1]} pixels, need at least "
        f"{diameter} × {diameter}, the diameter of a patch"
        for image in images
        if min(image.shape) < diameter
    ]
    raise_listed("images", small)


def check_textured(images: Sequence[Image], engine: Engine) -> None:
    """Refuse training images of one grey level, all of them at once, before anything is learned.

    They would have no histogram.
    """
    flat = of_each(is_flat, images, engine)
    problems = [_flat(image.name) for image, found in zip(images, flat, strict=True) if found]
    raise_listed("images", problems)


def is_flat(image: Image) -> bool:
    """Whether an image has one grey level; reads no more than is needed to see it."""
    height, width = image.shape
    level = None
    try:
        for y in range(0, height, image.tile[0]):
            rows = image.read(y, min(y + image.tile[0], height), 0, width)
            level = rows[0, 0] if level is None else level
            if (rows != level).any():
                return False
    except Exception as error:  # whatever a decoder raises is the file's fault
        raise DscError(image_problem(image, error)) from error
    return True


def _flat(name: str) -> str:
    return f"{name}: found nothing but constant patches, need an image with some texture"


def pruned_share(features: Sequence[Feature], labellers: Labellers) -> float | None:
    """The share of (atom, patch) pairs passed over by a bound; None without pruning."""
    if not labellers.prunes:
        return None
    n_pairs = sum(feature.n_patches for feature in features) * labellers.n_atoms
    return float(1 - sum(feature.evaluated for feature in features) / n_pairs)


def joined_counts(
    features: Sequence[Feature], names: Sequence[str], labellers: Labellers
) -> Counts:
    """(scale, image, label, atom) the counts of images; refuses those without any texture."""
    shape = len(features), len(labellers.each), labellers.n_labels, -1
    counts = np.array([feature.counts for feature in features], np.int64).reshape(shape)
    textured = (counts.sum(axis=(2, 3)) > 0).all(axis=1)  # at every diameter
    flat = [_flat(name) for name, good in zip(names, textured, strict=True) if not good]
    raise_listed("images", flat)
    return np.moveaxis(counts, 1, 0)


def histograms_of(counts: Counts, kind: str) -> NDArray[np.float64]:
    """(image, bin) of counts (scale, image, label, atom), each row summing to one.

    Bins are "classes", "atoms", or "both", first the classes, then the atoms, all of them together
    with `ATOM_WEIGHT` of the weight of the classes. Those of all scales, one after the other, have
    the same weight. Every image must have a labelled patch at each.

    Examples
    --------
    >>> histograms_of(np.array([[[[1, 1], [2, 0]]]]), "both")
    array([[0.4 , 0.4 , 0.05, 0.05, 0.1 , 0.  ]])
    >>> histograms_of(np.array([[[[1, 1], [2, 0]]], [[[3, 1], [0, 0]]]]), "classes")
    array([[0.25, 0.25, 0.5 , 0.  ]])
    """
    return np.hstack([_histograms(scale, kind) for scale in counts]) / len(counts)


def _histograms(counts: Counts, kind: str) -> NDArray[np.float64]:
    """(image, bin) of the counts (image, label, atom) of a scale."""
    classes, atoms = map(shares, by_class_and_atom(counts))
    if kind == "both":
        return np.hstack([classes, ATOM_WEIGHT * atoms]) / (1 + ATOM_WEIGHT)
    return classes if kind == "classes" else atoms


def by_class_and_atom(counts: Counts) -> tuple[Counts, Counts]:
    """(image, label) and (image, atom of any label) of counts (image, label, atom)."""
    return counts.sum(axis=2), counts.reshape(len(counts), -1)


def shares(counts: NDArray[np.generic]) -> NDArray[np.float64]:
    """Rows (image, bin) that sum to one."""
    return np.asarray(counts / counts.sum(axis=1, keepdims=True))
