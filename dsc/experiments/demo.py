"""The demo: a rotational and a standard dictionary of the same patches, and what they are for."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from skimage import data
from skimage.color import rgb2gray

from dsc import Dictionary, DscError, PatchConfig, denoise, extract_patches, learn, orientation
from dsc.bench import MIN_STD
from dsc.dictionary import Rebuilt
from dsc.experiments.result import Lines

if TYPE_CHECKING:
    import xarray

IMAGES = ("brick", "camera", "coins", "grass", "gravel")  # CC0, inside scikit-image
PATCHES = PatchConfig(diameter=11, min_std=MIN_STD, per_image=4000, unit=True)
LEARNING = {"n_atoms": 20, "sparsity": 2, "n_iterations": 10}
KINDS = {"rotational": "disk", "standard": "pixels"}
STRIDE = 2  # pixels between the patches that an image is rebuilt from
NOISE = 25  # standard deviation in grey levels of 0 to 255
N_ANGLES = 6  # at which one atom is shown

Floats = NDArray[np.floating]


@dataclass(frozen=True, eq=False)
class Story:
    """What the dictionaries make of images (y, x) in [0, 1]."""

    photograph: Floats
    rebuilt: dict[str, Rebuilt]  # from its coded patches, by the kind of dictionary
    fur: Floats  # an image in which every place has its direction, and its maps
    maps: xarray.Dataset
    noisy: Floats  # the photograph with noise, and after `denoise`
    clean: Floats

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "rebuilt": {
                kind: {name: float(getattr(one, name)) for name in ("share", "psnr", "mse")}
                for kind, one in self.rebuilt.items()
            },
            "stride": STRIDE,
            "denoised": {
                "sigma": NOISE,
                "before": psnr(self.photograph, self.noisy),
                "after": psnr(self.photograph, self.clean),
            },
        }


@dataclass(frozen=True, eq=False)
class Demo:
    """What the demo made."""

    folder: Path  # where its images, patches, runs and codes are
    n_patches: int  # patches that were learned from
    models: dict[str, Dictionary]  # the dictionaries, by kind
    share: dict[str, float]  # of the energy of all patches that their codes leave, by kind
    mse: dict[str, float]  # and their errors per pixel
    story: Story
    seconds: float  # how long it took

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "n_patches": self.n_patches,
            "share": self.share,
            "mse": self.mse,
            "ratio": self.mse["rotational"] / self.mse["standard"],
            **self.story.to_dict(),
            "seconds": self.seconds,
            "out": str(self.folder),
            "diameter": PATCHES.diameter,
            "n_angles": self.models["rotational"].n_angles,
            "images": list(IMAGES),
            **LEARNING,
        }

    @property
    def history(self) -> Lines:
        """The errors over the iterations."""
        return Lines(
            "energy left after each iteration",
            {
                kind: (100 * model.history / model.energy).tolist()
                for kind, model in self.models.items()
            },
            range(LEARNING["n_iterations"] + 1),
            x_name="iteration",
            y_name="energy left, %",
        )

    @property
    def rotated(self) -> tuple[list[float], Floats]:
        """Degrees, and one atom (angle, y, x) rotated by them: of those much used a bar.

        Half a rotation changes it little, a quarter of one much.
        """
        model = self.models["rotational"]
        used = np.argsort(-model.count, kind="stable")[: max(1, len(model.atoms) // 2)]
        atoms = model.atoms[used]
        half, quarter = (
            ((model.basis.steer(atoms, angle) - atoms) ** 2).sum(1) for angle in (np.pi, np.pi / 2)
        )
        one = used[np.argmax(quarter - half)]
        degrees = [180 / N_ANGLES * step for step in range(N_ANGLES)]
        same = np.repeat(model.atoms[one][None], N_ANGLES, axis=0)
        return degrees, model.basis.to_image(model.basis.steer(same, np.radians(degrees)))


def psnr(true: Floats, other: Floats) -> float:
    """Peak signal-to-noise ratio in dB of an image in [0, 1]."""
    return float(-10 * np.log10(np.mean((other.clip(0, 1) - true) ** 2)))


def run_demo(
    folder: Path, say: Callable[[str], None], progress: Callable[[Any], None] | bool = False
) -> Demo:
    """Extract patches, learn both dictionaries and use them, in a folder that must not exist.

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
    models, coded = {}, {}
    size = "{n_atoms} atoms, {sparsity} per patch".format(**LEARNING)
    for kind, basis in KINDS.items():
        say(f"learning a {kind} dictionary: {size}")
        options: dict[str, Any] = {**LEARNING, "basis": basis}
        models[kind] = learn(patches, run=folder / kind, progress=progress, **options)
        out = str(folder / f"{kind}-codes.zarr")
        coded[kind] = models[kind].encode(patches, out, progress=progress)
    photograph, fur = data.camera()[60:316, 100:356] / 255, rgb2gray(data.chelsea()[20:276, 90:346])
    story = tell_story(models, photograph, fur, say, progress=progress)
    return Demo(
        folder,
        patches.n_patches,
        models,
        {kind: one.share for kind, one in coded.items()},
        {kind: one.mse for kind, one in coded.items()},
        story,
        time.perf_counter() - begin,
    )


def tell_story(
    models: dict[str, Dictionary],
    photograph: Floats,
    fur: Floats,
    say: Callable[[str], None],
    **options: Any,
) -> Story:
    """Rebuild a photograph with each dictionary, map a direction, remove noise.

    `options` are those of `denoise` besides the noise, of which all take `progress`.
    """
    how = {"progress": options.get("progress", False)}
    say("rebuilding a photograph with each")
    rebuilt = {kind: model.rebuild(photograph, STRIDE, **how) for kind, model in models.items()}
    say("mapping which way fur runs")
    maps = orientation(fur, models["rotational"], **how)
    say("removing noise from the photograph")
    noise = np.random.default_rng(0).normal(0, NOISE, photograph.shape)
    noisy = np.clip(np.rint(255 * photograph + noise), 0, 255).astype(np.uint8)
    clean = denoise(noisy, NOISE, **options)
    return Story(photograph, rebuilt, fur, maps, noisy / 255, clean / 255)
