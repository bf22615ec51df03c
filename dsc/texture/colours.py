"""A colour for every class."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from skimage.color import rgb2lab

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
