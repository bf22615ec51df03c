"""Class maps of pictures as files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from dsc.errors import DscError
from dsc.patches import Picture
from dsc.report.texture_images import class_colours
from dsc.texture.histograms import check_pictures
from dsc.texture.labelling import spread
from dsc.texture.model import TextureModel


def label_map(model: TextureModel, picture: Picture) -> NDArray[np.int64]:
    """(y, x) the class of the patch around every pixel; −1 at the rim and where nothing is to code.

    With a stride, a patch stands for the pixels nearest to its middle.
    """
    check_pictures([picture], model.config.diameter)
    labels, _ = model.labeller.label_picture(picture)
    return spread(labels, picture.shape, model.basis.diameter // 2, model.config.stride)


def write_maps(model: TextureModel, pictures: Sequence[Picture], folder: Path) -> None:
    """Write the class map of every picture as a PNG of colours, black where there is no class."""
    files = [folder / f"{picture.name.replace('/', '_')}.png" for picture in pictures]
    taken = [str(path) for path in files if path.exists() or files.count(path) > 1]
    if taken:
        raise DscError(f"{taken[0]}: exists already, or two pictures share it: choose other names")
    folder.mkdir(parents=True, exist_ok=True)
    colours = np.concatenate([class_colours(len(model.label_names)), np.zeros((1, 3), np.uint8)])
    for picture, path in zip(pictures, files, strict=True):
        Image.fromarray(colours[label_map(model, picture)]).save(path)
