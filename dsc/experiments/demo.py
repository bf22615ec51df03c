"""The demo: a rotational and a standard dictionary of the same patches."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image
from skimage import data

from dsc import Dictionary, DscError, PatchConfig, extract_patches, learn
from dsc.bench import MIN_STD
from dsc.experiments.coding import code_some
from dsc.experiments.result import ImageRows, Lines

IMAGES = ("brick", "camera", "coins", "grass", "gravel")  # CC0, inside scikit-image
PATCHES = PatchConfig(diameter=11, min_std=MIN_STD, per_image=4000, unit=True)
LEARNING = {"n_atoms": 20, "sparsity": 2, "n_iterations": 10}
KINDS = {"rotational": "disk", "standard": "pixels"}


@dataclass(frozen=True, eq=False)
class Demo:
    """What the demo made."""

    folder: Path  # where its images, patches, runs and codes are
    n_patches: int  # patches that were learned from
    models: dict[str, Dictionary]  # the dictionaries and their errors per pixel, by kind
    mse: dict[str, float]
    codings: ImageRows  # some patches as both dictionaries code them
    seconds: float  # how long it took

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "n_patches": self.n_patches,
            "mse": self.mse,
            "ratio": self.mse["rotational"] / self.mse["standard"],
            "seconds": self.seconds,
            "out": str(self.folder),
            "diameter": PATCHES.diameter,
            "images": list(IMAGES),
            **LEARNING,
        }

    @property
    def history(self) -> Lines:
        """The errors over the iterations."""
        return Lines(
            "mean squared error per pixel",
            {kind: model.history.tolist() for kind, model in self.models.items()},
            range(LEARNING["n_iterations"] + 1),
            x_name="iteration",
            y_name="error per pixel",
        )


def run_demo(
    folder: Path, say: Callable[[str], None], progress: Callable[[Any], None] | bool = False
) -> Demo:
    """Extract patches, learn both dictionaries and code, all in a folder that must not exist.

    `say` is called with a line about every step, `progress` as in `learn`.
    """
    if folder.exists():
        raise DscError(f"{folder}: exists already: choose another --out, or remove it")
    begin = time.perf_counter()
    (folder / "images").mkdir(parents=True)
    for name in IMAGES:
        Image.fromarray(getattr(data, name)()).save(folder / "images" / f"{name}.png")
    say(f"cutting patches out of {len(IMAGES)} images of scikit-image")
    out = str(folder / "patches.zarr")
    patches = extract_patches([str(folder / "images")], out, PATCHES, progress=progress)
    models, mse = {}, {}
    size = "{n_atoms} atoms, {sparsity} per patch".format(**LEARNING)
    for kind, basis in KINDS.items():
        say(f"learning a {kind} dictionary: {size}")
        options: dict[str, Any] = {**LEARNING, "basis": basis}
        models[kind] = learn(patches, run=folder / kind, progress=progress, **options)
        out = str(folder / f"{kind}-codes.zarr")
        mse[kind] = models[kind].encode(patches, out, progress=progress).mse
    codings = code_some(models, patches)
    seconds = time.perf_counter() - begin
    return Demo(folder, patches.n_patches, models, mse, codings, seconds)
