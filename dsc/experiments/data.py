"""Pictures for the experiments: the paper's where they are at hand, or free ones in their place."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy import ndimage
from skimage import data as free

from dsc import DscError, PatchConfig, StoredPatches, extract_patches
from dsc.experiments.synthetic import synthetic_image

CHOICES = ("auto", "paper", "cc0", "synthetic")
MIN_STD = 0.1  # the paper's filter; gives its 17,330 and 396,855 patches exactly
SPLINE_ORDER = 5

Grey = NDArray[np.float64]


@dataclass(frozen=True)
class PaperImage:
    """A picture of the paper, which we may not ship."""

    file: str
    source: str
    stand_in: str  # CC0, inside scikit-image


PAPER = {
    "cameraman": PaperImage(
        "cameraman.tif",
        "the 256 × 256 grey test picture; it comes with MATLAB's Image Processing Toolbox and with "
        "the standard test pictures of imageprocessingplace.com",
        "camera",
    ),
    "net": PaperImage(
        "brodatz_D103.gif",
        "Brodatz D103, 640 × 640 grey; D103.gif of www.ux.uis.no/~tranden/brodatz.html",
        "brick",
    ),
}
TEXTURES = PaperImage(
    "Outex_tl84/000/train.txt",
    "a suite in Outex layout: 24 classes under the lamp TL84, from the Outex database of the "
    "University of Oulu",
    "",
)
NEEDED = {**PAPER, "textures": TEXTURES}  # what may have to be in DSC_DATA
NATURAL = ("camera", "coins", "brick", "grass", "gravel", "moon")  # CC0, inside scikit-image


@dataclass(frozen=True, eq=False)
class LabelledImage:
    """A grey picture (y, x) in [0, 1] and where it is from."""

    label: str
    grey: Grey

    @cached_property
    def spline(self) -> Grey:
        """Coefficients of the 5th-order spline that stands for the continuous picture."""
        return np.asarray(ndimage.spline_filter(self.grey, SPLINE_ORDER, mode="mirror"))


def paper_or_stand_in(name: str, choice: str) -> LabelledImage:
    """The picture called "cameraman" or "net", or what is to run in its place."""
    about = PAPER[name]
    if choice == "synthetic":
        return LabelledImage(f"synthetic in place of {name}", synthetic_image(name))
    if choice == "cc0":
        step = 2 if name == "cameraman" else 1  # the camera picture has twice the size
        grey = getattr(free, about.stand_in)()[::step, ::step] / 255
        return LabelledImage(f"{about.stand_in} (CC0) in place of {name}", grey)
    check_paper([name])
    with Image.open(Path(os.environ["DSC_DATA"]) / about.file) as image:
        return LabelledImage(name, np.asarray(image.convert("L")) / 255)


def check_paper(names: Iterable[str]) -> None:
    """Refuse if pictures of the paper are missing, and say how to get each of them."""
    folder = os.environ.get("DSC_DATA")
    missing = [n for n in names if not folder or not (Path(folder) / NEEDED[n].file).is_file()]
    if not missing:
        return
    found = f"DSC_DATA is {folder}, without" if folder else "DSC_DATA is not set, need"
    files = " and ".join(NEEDED[name].file for name in missing)
    sources = "".join(f"  {NEEDED[name].file} is {NEEDED[name].source}\n" for name in missing)
    raise DscError(
        f"{', '.join(missing)}: {found} {files}: put the paper's pictures in a folder and name it "
        f"in the environment variable DSC_DATA (they have no free licence that we know of, so they "
        f"are not shipped)\n{sources}  or use --data cc0 or --data synthetic to run on other "
        "pictures in their place"
    )


def natural_images(choice: str) -> list[LabelledImage]:
    """Pictures to rotate: CC0 ones unless others are asked for."""
    if choice in ("paper", "synthetic"):
        return [paper_or_stand_in(name, choice) for name in PAPER]
    return [LabelledImage(f"{name} (CC0)", getattr(free, name)() / 255) for name in NATURAL]


def label_of(images: list[LabelledImage]) -> str:
    """One label for several pictures."""
    return ", ".join(image.label for image in images)


@contextmanager
def coding_patches(
    name: str, choice: str, diameter: int, at_most: int | None
) -> Iterator[tuple[str, StoredPatches]]:
    """The paper's patches of a picture: filtered, unit norm, a random part if there are more.

    Yields
    ------
    The label and the patch set, which exists while the context is open.
    """
    image = paper_or_stand_in(name, choice)
    config = PatchConfig(diameter=diameter, min_std=MIN_STD, unit=True)
    grey = [image.grey.astype(np.float32)]
    with tempfile.TemporaryDirectory() as folder:
        whole = extract_patches(grey, f"{folder}/whole.zarr", config)
        n_all = whole.n_patches
        if at_most is None or n_all <= at_most:
            yield f"{image.label}, all {n_all:,} patches", whole
            return
        part = extract_patches(grey, f"{folder}/part.zarr", replace(config, per_image=at_most))
        yield f"{image.label}, {at_most:,} random patches of {n_all:,}", part
