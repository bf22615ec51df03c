"""What the report of a texture evaluation shows in pictures, and how these become small PNGs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import isqrt

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from skimage.color import rgb2lab

from dsc.report.disks import Shades, atom_shades
from dsc.texture.labelling import spread
from dsc.texture.lbp import unit_range

Floats = NDArray[np.float32]
Ints = NDArray[np.integer]

COLUMNS = 10  # atoms in a row
MOST_SIDE = 320  # pixels of a picture on the page
PICTURE_PIXELS = 1_500_000  # of all pictures on the page together: it stays below some 6 MB
ATOM_PIXELS = 1_500_000  # of all atoms on the page together

MOST_CHROMA = 78  # in CIELAB: colours that do not glare
FIRST_COLOURS = (  # Okabe and Ito: told apart by colour-blind people
    (0, 114, 178), (230, 159, 0), (0, 158, 115), (204, 121, 167), (86, 180, 233), (213, 94, 0),
    (240, 228, 66),
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class ClassMap:
    """A test picture and the class of each of its patches.

    Attributes
    ----------
    name
        Of the picture.
    true, predicted
        Its class, and the class that it was given.
    grey
        (y, x) in [0, 1].
    labels
        (y, x) of the patches, numbers of classes, −1 for none.
    offset
        Pixels from the picture's edge to the middle of the first patch.
    stride
        Pixels from one patch to the next.
    """

    name: str
    true: str
    predicted: str
    grey: Floats
    labels: Ints
    offset: int
    stride: int


@dataclass(frozen=True, eq=False)
class ConfusedPair:
    """Two classes that were confused, with an example.

    Attributes
    ----------
    true, predicted
        The class of the pictures, and the class that they were given.
    count
        How many there are.
    query, query_name
        One of them, (y, x) in [0, 1].
    nearest, nearest_name
        The training picture that it was nearest to.
    true_example
        A training picture of its own class.
    """

    true: str
    predicted: str
    count: int
    query: Floats
    query_name: str
    nearest: Floats
    nearest_name: str
    true_example: Floats


@dataclass(frozen=True, eq=False)
class Pictures:
    """The pictures of a report.

    Attributes
    ----------
    atoms
        (label, atom, y, x), NaN off the disk, of each class the most used first.
    count
        (label, atom), how often each is used.
    maps
        Test pictures with the class of each patch.
    confused
        Classes that were confused, most often first.
    """

    atoms: Floats
    count: Ints
    maps: list[ClassMap]
    confused: list[ConfusedPair]

    @property
    def side(self) -> int:
        """The largest side of a picture on the page, such that all of them are not too much."""
        n_pictures = 2 * len(self.maps) + 3 * len(self.confused)
        return min(MOST_SIDE, isqrt(PICTURE_PIXELS // max(1, n_pictures)))

    @property
    def n_atoms_drawn(self) -> int:
        """How many atoms of each class are on the page: whole rows of them."""
        n_labels, n_atoms, height, width = self.atoms.shape
        fit = ATOM_PIXELS // max(1, n_labels * height * width)
        return int(min(n_atoms, max(COLUMNS, fit - fit % COLUMNS)))


@lru_cache
def _colours(n_colours: int) -> NDArray[np.uint8]:
    levels = np.linspace(0, 255, 14).round().astype(np.uint8)
    pool = np.stack(np.meshgrid(levels, levels, levels, indexing="ij"), -1).reshape(-1, 3)
    lab = rgb2lab(pool / 255.0)
    seen = (lab[:, 0] > 30) & (lab[:, 0] < 88)  # on a dark page and on a light one
    seen &= np.hypot(lab[:, 1], lab[:, 2]) < MOST_CHROMA
    pool, lab = pool[seen], lab[seen]
    chosen = [np.array(colour, np.uint8) for colour in FIRST_COLOURS[:n_colours]]
    distance = np.full(len(pool), np.inf)
    for place in range(n_colours):
        if place == len(chosen):
            chosen.append(pool[distance.argmax()])
        here = rgb2lab(chosen[place] / 255.0)
        distance = np.minimum(distance, ((lab - here) ** 2).sum(1))
    colours = np.array(chosen, np.uint8).reshape(n_colours, 3)
    colours.setflags(write=False)
    return colours


def class_colours(n_labels: int) -> NDArray[np.uint8]:
    """(n_labels, 3) colours, always the same; a class keeps its own when others are added.

    The first seven are told apart by colour-blind people; each further one is as far as possible
    (in CIELAB) from all before it.

    Examples
    --------
    >>> class_colours(2).tolist()
    [[0, 114, 178], [230, 159, 0]]
    """
    return _colours(n_labels)


def hex_colour(colour: NDArray[np.uint8]) -> str:
    """A colour as in CSS."""
    return "#" + bytes(colour.tolist()).hex()


def paint_map(shown: ClassMap, colours: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """(y, x, 4) colours of a class map over its picture, clear where there is no patch."""
    label = spread(shown.labels, shown.grey.shape, shown.offset, shown.stride)
    table = np.zeros((len(colours) + 1, 4), np.uint8)  # the last is for −1
    table[:-1, :3], table[:-1, 3] = colours, 255
    return table[label]


def label_shares(labels: Ints, n_labels: int) -> list[tuple[int, float]]:
    """(class, share of the labelled patches) of the classes that occur, most first."""
    count = np.bincount(labels[labels >= 0].ravel(), minlength=n_labels)
    order = np.argsort(-count, kind="stable")
    total = max(1, int(count.sum()))
    return [(int(label), int(count[label]) / total) for label in order if count[label]]


def small_grey(grey: Floats, side: int) -> NDArray[np.uint8]:
    """A picture as bytes, made smaller if it is larger than `side`."""
    value = np.asarray(unit_range(grey) * 255).round().astype(np.uint8)
    return _fitted(value, side, Image.Resampling.BOX)


def small_map(shown: ClassMap, colours: NDArray[np.uint8], side: int) -> NDArray[np.uint8]:
    """A class map as colours and alpha, of the size of its picture."""
    return _fitted(paint_map(shown, colours), side, Image.Resampling.NEAREST)


def _fitted(image: NDArray[np.uint8], side: int, how: Image.Resampling) -> NDArray[np.uint8]:
    height, width = image.shape[:2]
    scale = side / max(height, width)
    if scale >= 1:
        return image
    size = max(1, round(width * scale)), max(1, round(height * scale))
    return np.asarray(Image.fromarray(image).resize(size, how))


def atom_strip(atoms: Floats) -> Shades:
    """Atoms (atom, y, x) in rows as one picture, grey and alpha; each has its own contrast."""
    disks = atom_shades(atoms)
    n_atoms, height, width = disks.shape[:3]
    gap = max(1, width // 8)
    n_rows = -(-n_atoms // COLUMNS)
    canvas = np.zeros((n_rows * (height + gap), COLUMNS * (width + gap), 2), np.uint8)
    for place, disk in enumerate(disks):
        row, column = divmod(place, COLUMNS)
        top, left = row * (height + gap), column * (width + gap)
        canvas[top : top + height, left : left + width] = disk
    return canvas
