"""Images for the experiments: the paper's where they are at hand, or free ones in their place."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from PIL import Image
from scipy import ndimage
from skimage import data as free

from dsc import DscError, PatchConfig, StoredPatches, extract_patches
from dsc.bench import MIN_STD, PAPER_FILES, paper_file
from dsc.experiments.textures import Grey, synthetic_image

CHOICES = ("auto", "paper", "cc0", "synthetic")
SPLINE_ORDER = 5
SOURCES = {  # of the paper's images, which we may not ship
    "cameraman": "the 256 × 256 grey test image; it comes with MATLAB's Image Processing Toolbox "
    "and with the standard test images of imageprocessingplace.com",
    "net": "Brodatz D103, 640 × 640 grey; D103.gif of www.ux.uis.no/~tranden/brodatz.html",
    "textures": "a suite in Outex layout: 24 classes under the lamp TL84, from the Outex database "
    "of the University of Oulu",
}
STAND_INS = {"cameraman": "camera", "net": "brick"}  # CC0, inside scikit-image, as are the next
HEAD = (0.28, 0.44)  # of the cameraman, full of detail: fractions of height and width
NATURAL = ("camera", "coins", "brick", "grass", "gravel", "moon")


@dataclass(frozen=True, eq=False)
class LabelledImage:
    """A grey image (y, x) in [0, 1] and where it is from."""

    label: str
    grey: Grey

    @cached_property
    def spline(self) -> Grey:
        """Coefficients of the 5th-order spline that stands for the continuous image."""
        return np.asarray(ndimage.spline_filter(self.grey, SPLINE_ORDER, mode="mirror"))

    def at(self, y: Grey, x: Grey) -> Grey:
        """Values of the spline between the pixels."""
        options = {"order": SPLINE_ORDER, "prefilter": False, "mode": "mirror"}
        return np.asarray(ndimage.map_coordinates(self.spline, [y, x], **options))


def paper_or_stand_in(name: str, choice: str) -> LabelledImage:
    """The image called "cameraman" or "net", or what is to run in its place."""
    if choice == "synthetic":
        return LabelledImage(f"synthetic in place of {name}", synthetic_image(name))
    if choice == "cc0":
        step = 2 if name == "cameraman" else 1  # the camera image has twice the size
        grey = getattr(free, STAND_INS[name])()[::step, ::step] / 255
        return LabelledImage(f"{STAND_INS[name]} (CC0) in place of {name}", grey)
    check_paper([name])
    with Image.open(str(paper_file(name))) as image:
        return LabelledImage(name, np.asarray(image.convert("L")) / 255)


def check_paper(names: Iterable[str]) -> None:
    """Refuse if images of the paper are missing, and say how to get each of them."""
    missing = [name for name in names if not paper_file(name)]
    if not missing:
        return
    folder = os.environ.get("DSC_DATA")
    found = f"DSC_DATA is {folder}, without" if folder else "DSC_DATA is not set, need"
    files = " and ".join(PAPER_FILES[name] for name in missing)
    sources = "".join(f"  {PAPER_FILES[name]} is {SOURCES[name]}\n" for name in missing)
    raise DscError(
        f"{', '.join(missing)}: {found} {files}: put the paper's images in a folder and name it "
        f"in the environment variable DSC_DATA (they have no free licence that we know of, so they "
        f"are not shipped)\n{sources}  or use --data cc0 or --data synthetic to run on other "
        "images in their place"
    )


def natural_images(choice: str) -> list[LabelledImage]:
    """Images to rotate: CC0 ones unless others are asked for."""
    if choice in ("paper", "synthetic"):
        return [paper_or_stand_in(name, choice) for name in STAND_INS]
    return [LabelledImage(f"{name} (CC0)", getattr(free, name)() / 255) for name in NATURAL]


@contextmanager
def coding_patches(
    name: str, choice: str, diameter: int, at_most: int | None
) -> Iterator[tuple[str, StoredPatches]]:
    """Label and patches of an image, as in the paper: filtered, unit norm, a random part of more.

    The patch set exists while the context is open.
    """
    image = paper_or_stand_in(name, choice)
    config = PatchConfig(diameter=diameter, min_std=MIN_STD, unit=True)
    grey = [image.grey.astype(np.float32)]
    with tempfile.TemporaryDirectory() as folder:
        whole = extract_patches(grey, f"{folder}/whole.zarr", config, progress=False)
        n_all = whole.n_patches
        if at_most is None or n_all <= at_most:
            yield f"{image.label}, all {n_all:,} patches", whole
            return
        fewer = replace(config, per_image=at_most)
        part = extract_patches(grey, f"{folder}/part.zarr", fewer, progress=False)
        yield f"{image.label}, {at_most:,} random patches of {n_all:,}", part
