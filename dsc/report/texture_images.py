"""What the report of a texture evaluation shows in images, made small for a page."""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt

import numpy as np
import PIL.Image
from numpy.typing import NDArray

from dsc.images import Image
from dsc.show import atom_shades
from dsc.texture import Evaluation, TextureModel, class_colours, label_map, paint, unit_range

COLUMNS = 10  # atoms in a row
N_MAPS = 6  # images whose class map is shown
N_MISTAKES = 8  # most confused pairs of classes shown with images
MOST_SIDE = 320  # pixels of an image on the page
IMAGE_PIXELS = 1_500_000  # of all images on the page together: it stays below some 6 MB
ATOM_PIXELS = 1_500_000  # of all atoms on the page together

Bytes = NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class ClassMap:
    """A test image and the class of each of its patches."""

    name: str  # of the image
    true: str  # its class, and the class that it was given
    predicted: str
    image: Bytes  # (y, x) greys
    painted: Bytes  # (y, x, 4) colours of the classes, of the same size
    # (label, share of the pixels with a class) of the classes that occur, most first
    shares: list[tuple[int, float]]


@dataclass(frozen=True, eq=False)
class Mistake:
    """A test image that was taken for another class."""

    true: str  # its class, and the class that it was given
    predicted: str
    query: Bytes  # the image, (y, x) greys
    query_name: str
    nearest: Bytes | None  # the training image that it is nearest to; None if not at hand
    nearest_name: str
    example: Bytes | None  # a training image of its own class


@dataclass(frozen=True, eq=False)
class Gallery:
    """The images of a report."""

    # of each dictionary (atom, y, x, 2) grey and alpha of the most used atoms, as many as fit
    atoms: list[Bytes]
    maps: list[ClassMap]  # test images with the class of each patch
    # an example of every pair of confused classes, most often confused first
    mistakes: list[Mistake]

    @staticmethod
    def of(evaluation: Evaluation) -> Gallery:
        """The images of an evaluation, such that all of them are not too much for a page."""
        shown = choose_images(evaluation)
        pairs = evaluation.confused_pairs[:N_MISTAKES]
        n_images = 2 * len(shown) + 3 * len(pairs)
        side = min(MOST_SIDE, isqrt(IMAGE_PIXELS // max(1, n_images)))
        maps = []
        for index in shown:
            maps.append(_map(evaluation, index, side))
        return Gallery(
            atoms=draw_atoms(evaluation.model),
            maps=maps,
            mistakes=[_mistake(evaluation, true, given, side) for true, given, _ in pairs],
        )


def choose_images(evaluation: Evaluation) -> list[int]:
    """Test images to show: some that are wrong, then one of each class while there is room."""
    is_right = evaluation.truth == evaluation.prediction.labels
    wrong = np.flatnonzero(~is_right)[: N_MAPS // 2].tolist()
    right = np.flatnonzero(is_right)
    _, first = np.unique(evaluation.truth[right], return_index=True)
    step = max(1, len(first) // N_MAPS)
    return [*wrong, *right[first][::step].tolist()][:N_MAPS]


def draw_atoms(model: TextureModel) -> list[Bytes]:
    """(atom, y, x, 2) the atoms of each dictionary, most used first; whole rows of them."""
    n_labels, n_atoms = len(model.label_names), model.config.n_atoms
    fit = ATOM_PIXELS // (n_labels * sum(one.basis.diameter**2 for one in model.scales))
    n_drawn = min(n_atoms, max(COLUMNS, fit - fit % COLUMNS))
    drawn: list[Bytes] = []
    for one in model.scales:
        order = np.argsort(-one.atom_count, axis=1, kind="stable")[:, :n_drawn, None]
        atoms = np.take_along_axis(one.atoms, order, axis=1)
        disks = atom_shades(one.basis.to_image(atoms.reshape(-1, one.basis.n_coords)))
        drawn += list(disks.reshape(n_labels, n_drawn, *disks.shape[1:]))
    return drawn


def label_shares(labels: NDArray[np.integer], n_labels: int) -> list[tuple[int, float]]:
    """(class, share of the pixels with a class) of the classes that occur, most first."""
    count = np.bincount(labels[labels >= 0].ravel(), minlength=n_labels)
    order = np.argsort(-count, kind="stable")
    total = max(1, int(count.sum()))
    return [(int(label), int(count[label]) / total) for label in order if count[label]]


def small_grey(image: Image, side: int) -> Bytes:
    """An image as bytes, made smaller if it is larger than `side`."""
    value = np.asarray(unit_range(image.whole()) * 255).round().astype(np.uint8)
    return _fitted(value, side, PIL.Image.Resampling.BOX)


def _map(evaluation: Evaluation, index: int, side: int) -> ClassMap:
    model, image = evaluation.model, evaluation.data.test.images[index]
    n_labels = len(model.label_names)
    whole = label_map(model.labellers, image)
    painted = paint(whole, class_colours(n_labels))
    return ClassMap(
        name=image.name,
        true=model.label_names[evaluation.truth[index]],
        predicted=model.label_names[evaluation.prediction.labels[index]],
        image=small_grey(image, side),
        painted=_fitted(painted, side, PIL.Image.Resampling.NEAREST),
        shares=label_shares(whole, n_labels),
    )


def _mistake(evaluation: Evaluation, true: str, predicted: str, side: int) -> Mistake:
    names, train = evaluation.model.label_names, evaluation.data.train
    same = evaluation.truth == names.index(true)
    index = int(np.flatnonzero(same & (evaluation.prediction.labels == names.index(predicted)))[0])
    query = evaluation.data.test.images[index]
    neighbour = int(evaluation.prediction.neighbours[index])
    nearest = example = None
    if train is not None:
        nearest = small_grey(train.images[neighbour], side)
        example = small_grey(train.images[train.labels.index(true)], side)
    return Mistake(
        true=true,
        predicted=predicted,
        query=small_grey(query, side),
        query_name=query.name,
        nearest=nearest,
        nearest_name=evaluation.model.image_names[neighbour],
        example=example,
    )


def _fitted(image: Bytes, side: int, how: PIL.Image.Resampling) -> Bytes:
    height, width = image.shape[:2]
    scale = side / max(height, width)
    if scale >= 1:
        return image
    size = max(1, round(width * scale)), max(1, round(height * scale))
    return np.asarray(PIL.Image.fromarray(image).resize(size, how))
