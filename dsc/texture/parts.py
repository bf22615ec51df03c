"""Training and test images: cut apart class by class, and none in both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dsc.errors import DscError, raise_listed
from dsc.texture.dataset import Dataset, check_classes


def split_dataset(data: Dataset, share: float, seed: int = 0) -> tuple[Dataset, Dataset]:
    """Training and test images, drawn at random within each class, in the order they have.

    The share of each class is to learn from, rounded, at least one image, and at least one is left
    for the test. The draw depends on the names of the images, not on their order.
    """
    names = check_classes(data)
    if isinstance(share, bool) or not 0 < share < 1:
        raise DscError(f"split: found {share}, need a share between 0 and 1 to learn from")
    of = np.array(data.labels)
    chosen = np.zeros(len(data), bool)
    alone = []
    for number, name in enumerate(names):
        members = sorted(np.flatnonzero(of == name), key=lambda i: data.images[i].name)
        if len(members) < 2:
            alone.append(f"class {name}: found 1 image, need two at least, to split it")
        n = min(max(1, round(share * len(members))), len(members) - 1)
        drawn = np.random.default_rng([seed, number]).permutation(len(members))[:n]
        chosen[[members[place] for place in drawn]] = True
    raise_listed("split", alone)
    return part_of(data, np.flatnonzero(chosen)), part_of(data, np.flatnonzero(~chosen))


def part_of(data: Dataset, chosen: NDArray[np.int64]) -> Dataset:
    """The images at some places."""
    places = chosen.tolist()
    return replace(
        data,
        images=tuple(data.images[i] for i in places),
        labels=tuple(data.labels[i] for i in places),
        angles=tuple(data.angles[i] for i in places),
        contents=tuple(data.contents[i] for i in places) if data.contents else (),
    )


def check_apart(test: Dataset, train_names: Sequence[str], train_contents: Sequence[str]) -> None:
    """Refuse test images that are training images, too, by their pixels: they would be known.

    The test images have their `contents`; `train_contents` are those of the training images.
    """
    known = dict(zip(train_contents, train_names, strict=True))
    both = [
        f"{image.name}: found the same pixels in the training image {known[content]}"
        for image, content in zip(test.images, test.contents, strict=True)
        if content in known
    ]
    raise_listed("test images that are learned from: give others, or take them out of one", both)
