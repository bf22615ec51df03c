"""Class maps: a colour for every class, and maps of images as files."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
import PIL.Image
from numpy.typing import NDArray
from skimage.color import rgb2lab

from dsc.errors import DscError
from dsc.images import Image
from dsc.texture import TextureModel, check_images, label_map

MOST_CHROMA = 78  # in CIELAB: colours that do not glare
FIRST_COLOURS = (  # Okabe and Ito: colour-blind people can tell them apart
    (0, 114, 178), (230, 159, 0), (0, 158, 115), (204, 121, 167), (86, 180, 233), (213, 94, 0),
    (240, 228, 66),
)  # fmt: skip

Colours = NDArray[np.uint8]


@lru_cache
def class_colours(n_labels: int) -> Colours:
    """(n_labels, 3) colours, always the same; a class keeps its own when others are added.

    Colour-blind people can tell the first seven apart; each further one is as far as possible (in
    CIELAB) from all before it.

    Examples
    --------
    >>> class_colours(2).tolist()
    [[0, 114, 178], [230, 159, 0]]
    """
    levels = np.linspace(0, 255, 14).round().astype(np.uint8)
    pool = np.stack(np.meshgrid(levels, levels, levels, indexing="ij"), -1).reshape(-1, 3)
    lab = rgb2lab(pool / 255.0)
    seen = (lab[:, 0] > 30) & (lab[:, 0] < 88)  # on a dark page and on a light one
    seen &= np.hypot(lab[:, 1], lab[:, 2]) < MOST_CHROMA
    pool, lab = pool[seen], lab[seen]
    chosen = [np.array(colour, np.uint8) for colour in FIRST_COLOURS[:n_labels]]
    distance = np.full(len(pool), np.inf)
    for label in range(n_labels):
        if label == len(chosen):
            chosen.append(pool[distance.argmax()])
        here = rgb2lab(chosen[label] / 255.0)
        distance = np.minimum(distance, ((lab - here) ** 2).sum(1))
    colours = np.array(chosen, np.uint8).reshape(n_labels, 3)
    colours.setflags(write=False)
    return colours


def paint(labels: NDArray[np.integer], colours: Colours) -> NDArray[np.uint8]:
    """(y, x, 4) colours of labels (y, x), clear where there is no class, −1."""
    table = np.zeros((len(colours) + 1, 4), np.uint8)  # the last is for −1
    table[:-1, :3], table[:-1, 3] = colours, 255
    painted: NDArray[np.uint8] = table[labels]
    return painted


def map_files(images: Sequence[Image], folder: Path) -> list[Path]:
    """The files of class maps; refuses names that exist or that two images share."""
    files = [folder / f"{image.name.replace('/', '_')}.png" for image in images]
    taken = [path for path in files if path.exists() or files.count(path) > 1]
    if taken:
        raise DscError(f"{taken[0]}: exists already, or two images share it: choose other names")
    return files


def write_maps(model: TextureModel, images: Sequence[Image], folder: Path) -> None:
    """Write the class map of every image as a PNG of colours, black where there is no class."""
    files = map_files(images, folder)
    check_images(images, model.config.diameter)
    folder.mkdir(parents=True, exist_ok=True)
    colours = class_colours(len(model.label_names))
    for image, path in zip(images, files, strict=True):
        PIL.Image.fromarray(paint(label_map(model.labeller, image), colours)[..., :3]).save(path)
