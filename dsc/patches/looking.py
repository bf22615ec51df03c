"""Looking at images before patches are taken: tasks over rows of tiles."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dsc.engine import Engine, part_tasks
from dsc.errors import raise_listed
from dsc.images import Image, Inputs, image_problem, scan_inputs
from dsc.patches.config import PatchConfig
from dsc.patches.reading import LEAST, SAMPLE, range_of, sampled, with_range
from dsc.patches.scan import Band, Grid, Scan, bands_of, join_bands, scan_band
from dsc.show import Event, Notice, Stage

TASK_PIXELS = 2**22  # that a task looks at, about


@dataclass(frozen=True, eq=False)
class Choice:
    """Images, what was seen of each, and what was asked for."""

    images: list[list[Image]]  # the channels of each
    scans: list[Scan]
    config: PatchConfig

    @property
    def labels(self) -> list[str | None]:
        """The class of each image."""
        return [channels[0].label for channels in self.images]

    @property
    def label_names(self) -> list[str]:
        """The classes in their order."""
        return sorted({label for label in self.labels if label is not None})

    @property
    def n_channels(self) -> int:
        """Channels of each image."""
        return len(self.images[0])

    @property
    def n_patches(self) -> int:
        """Patches of all images."""
        return sum(seen.n_patches for seen in self.scans)

    @property
    def first_windows(self) -> list[int]:
        """The number of each image's first window among all: what random choices hang on."""
        firsts, total = [], 0
        for seen in self.scans:
            firsts.append(total)
            total += seen.n_windows
        return firsts


class Rows(NamedTuple):
    """Rows of tiles to be looked at."""

    choice: int  # which of many
    image: int
    channels: list[Image]
    mask: Image | None
    y: slice
    config: PatchConfig


Seen = list[tuple[int, int, Band | str]]  # which of many, which image, and what is wrong with it


def look_at(rows: Sequence[Rows], _: None) -> Seen:
    """One task: what is in some rows of tiles, or what is wrong with their images."""
    seen: Seen = []
    for one in rows:
        try:
            for y in bands_of(one.channels[0], one.y):
                band = scan_band(one.channels, y, one.config, one.mask)
                seen.append((one.choice, one.image, band))
        except Exception as error:  # whatever a decoder raises is the file's fault
            seen.append((one.choice, one.image, image_problem(one.channels[0], error)))
    return seen


def look(jobs: Sequence[tuple[Inputs, PatchConfig]], engine: Engine) -> list[Choice]:
    """What is in the images of several patch sets, in one graph; refuses what cannot be used."""
    opened = [_open(inputs, config, engine) for inputs, config in jobs]
    problems = [found[2] for found in opened]
    rows: list[Rows] = []
    for number, ((images, masks, wrong), (_, config)) in enumerate(zip(opened, jobs, strict=True)):
        small: dict[str, list[str]] = {}  # what is wrong with the images of each stack
        for index, (channels, mask) in enumerate(zip(images, masks, strict=True)):
            here = (number, index, channels, mask)
            try:
                Grid.of(channels[0].shape, config)  # refuses what is too small
                rows += [Rows(*here, y, replace(config, mask=())) for y in _task_rows(channels)]
            except Exception as error:  # whatever its metadata say
                stack = channels[0].name.rpartition("[")[0] or channels[0].name
                small.setdefault(stack, []).append(image_problem(channels[0], error))
        wrong += [line for name, lines in small.items() for line in _in_one(name, lines)]
    in_memory = any(
        plane.in_memory for one in rows for plane in (*one.channels, *filter(None, [one.mask]))
    )
    n_images = sum(len(found[0]) for found in opened)
    n_windows = sum(_n_pixels(one) // one.config.stride**2 for one in rows)  # about
    stage = Stage(f"look at {n_images:,} images", n_windows)
    bands: dict[tuple[int, int], list[Band]] = {}
    for task in engine.near(in_memory).compute(part_tasks(look_at, _tasks(rows)), stage):
        for number, index, band in task:
            if isinstance(band, Band):
                bands.setdefault((number, index), []).append(band)
            elif band not in problems[number]:
                problems[number].append(band)
    choices = []
    for number, ((images, _, wrong), (_, config)) in enumerate(zip(opened, jobs, strict=True)):
        raise_listed("images", wrong)
        scans = [join_bands(one[0], config, bands[number, i]) for i, one in enumerate(images)]
        choices.append(Choice(images, scans, config))
    return choices


def _in_one(name: str, lines: list[str]) -> list[str]:
    """What is wrong with the images of a stack, which are alike, in one line."""
    if len(lines) == 1:
        return lines
    reason = lines[0].partition(": ")[2]
    return [
        f"{name}: was read as a stack of images; {len(lines)} of them: {reason}; if its last axis "
        'are channels, say which (channel="all", --channel all)'
    ]


def _task_rows(channels: list[Image]) -> Iterator[slice]:
    """Whole rows of tiles of an image, as many as a task looks at."""
    height, width = channels[0].shape
    tile = channels[0].tile[0]
    step = tile * max(1, TASK_PIXELS // (tile * width * len(channels)))
    for y in range(0, height, step):
        yield slice(y, min(y + step, height))


def _n_pixels(rows: Rows) -> int:
    return int(rows.y.stop - rows.y.start) * rows.channels[0].shape[1] * len(rows.channels)


def _tasks(rows: list[Rows]) -> list[list[Rows]]:
    """Rows of tiles put together, in their order, to tasks of about the same size."""
    tasks: list[list[Rows]] = []
    size = math.inf
    for one in rows:
        if size >= TASK_PIXELS:
            tasks.append([])
            size = 0
        tasks[-1].append(one)
        size += _n_pixels(one)
    return tasks


def _open(
    inputs: Inputs, config: PatchConfig, engine: Engine
) -> tuple[list[list[Image]], list[Image | None], list[str]]:
    """The channels of each image, its mask, and what is wrong so far."""
    planes, problems = scan_inputs(inputs, config.read_options)
    n_channels = planes[0].n_channels if planes else 1
    if config.percentile is not None and not problems:
        planes = _ranged(planes, config, config.percentile, engine)
    images = [planes[i : i + n_channels] for i in range(0, len(planes), n_channels)]
    if config.per_class is not None and any(image[0].label is None for image in images):
        problems.append("per_class: found images without a class, need one folder per class")
    masks = _masks(images, config.masks, problems, engine.report)
    if len(config.masks) > 1 and not _is_sorted(inputs):
        problems.append(
            "mask: found images that are not given in the order of their paths, need them so: "
            "masks are taken in this order"
        )
    return images, masks, problems


def _ranged(
    planes: list[Image], config: PatchConfig, percentile: tuple[float, float], engine: Engine
) -> list[Image]:
    """Images whose 0 and 1 are percentiles of all of them, channel by channel."""
    n_channels, own = planes[0].n_channels, replace(config, mask=())
    rows = [
        Rows(0, number, [plane], None, y, own)
        for number, plane in enumerate(planes)
        for y in _task_rows([plane])
    ]
    most = max(LEAST, SAMPLE * n_channels // len(planes))
    near = engine.near(any(plane.in_memory for plane in planes))
    stage = Stage(f"find the range of {len(planes) // n_channels:,} images", len(planes))
    values: list[list[NDArray[np.float32]]] = [[] for _ in range(n_channels)]
    for task in near.compute(part_tasks(sample_rows, _tasks(rows), most), stage):
        for number, some in task:
            values[number % n_channels].append(some)
    ranges = [range_of(some, percentile) for some in values]
    return [with_range(one, ranges[number % n_channels]) for number, one in enumerate(planes)]


def sample_rows(rows: Sequence[Rows], most: int) -> list[tuple[int, NDArray[np.float32]]]:
    """One task: values of some rows of tiles, with the numbers of their images."""
    return [(one.image, sampled(one.channels[0], one.y, most)) for one in rows]


def _is_sorted(inputs: Any) -> bool:
    """Whether paths are given in the order in which images are taken."""
    if not isinstance(inputs, list | tuple):
        return True
    paths = [Path(one).absolute().parts for one in inputs if isinstance(one, str | PathLike)]
    return paths == sorted(paths)


def _masks(
    images: list[list[Image]],
    masks: list[Any],
    problems: list[str],
    report: Callable[[Event], None],
) -> list[Image | None]:
    """The mask of each image: one for all, or as many as there are images."""
    if not masks:
        return [None] * len(images)
    found: list[Image] = []
    for mask in masks:
        some, wrong = scan_inputs(mask)
        found += some
        problems += [f"mask: {problem}" for problem in wrong]
    wrong = [problem for problem in problems if problem.startswith("mask: ")]
    if len(found) == 1 and len(images) > 1:
        found = found * len(images)
        report(Notice(f"mask: one is given, and taken for all {len(images)} images"))
    if len(found) != len(images) and not wrong:
        problems.append(f"mask: found {len(found)}, need one, or one for each of {len(images)}")
    pairs = list(zip(images, found, strict=False))
    problems += [
        f"mask: found {one.shape[0]} × {one.shape[1]} pixels in {one.name}, need "
        f"{image[0].shape[0]} × {image[0].shape[1]} as in {image[0].name}"
        for image, one in pairs
        if one.shape != image[0].shape
    ]
    raise_listed("images", problems)
    return [one for _, one in pairs]
