"""Class maps of images as files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import PIL.Image
from xarray import DataArray

from dsc.errors import DscError
from dsc.images import Image, new_file, write_pixels
from dsc.texture import TextureModel, check_images, class_colours, label_map, paint


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
    check_images(images, model.labellers.diameter)
    folder.mkdir(parents=True, exist_ok=True)
    colours = class_colours(len(model.label_names))
    for image, path in zip(images, files, strict=True):
        PIL.Image.fromarray(paint(label_map(model.labellers, image), colours)[..., :3]).save(path)


@contextmanager
def painted_file(
    out: str, source: str, overwrite: bool, resume: bool
) -> Iterator[Callable[[DataArray], None]]:
    """What writes a class map as a PNG of colours; a file that cannot be is refused at once."""
    if Path(out).suffix.lower() != ".png":
        raise DscError(f"out: found {out!r}, need a name that ends in .png or .zarr")
    if resume:
        raise DscError(f"resume: found {out!r}, need an OME-Zarr (.zarr), which has tiles to keep")
    with new_file(out, overwrite, source) as path:

        def write(found: DataArray) -> None:
            colours = class_colours(len(found.attrs["label_names"]))
            pixels = paint(found.to_numpy().astype(np.int64) - 1, colours)[..., :3]
            write_pixels(path, pixels, pixels)

        yield write
