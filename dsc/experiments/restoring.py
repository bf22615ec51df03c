"""Denoising and inpainting by rotational and standard dictionaries, beside other ways."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont
from skimage import data as free
from skimage.restoration import denoise_nl_means, denoise_wavelet, inpaint_biharmonic

from dsc import denoise, inpaint
from dsc.experiments.data import LabelledImage, paper_or_stand_in
from dsc.experiments.result import Experiment, Finding, ImageRows, Options, Result
from dsc.restore import EACH, TOGETHER, RestoreConfig

PEAK = 255
BAR = 29.2  # dB on cameraman at σ = 25
LEAD = 0.5  # dB above a standard dictionary
COLORFUL = ("astronaut", "coffee", "chelsea")  # free photographs in color
COLOR_SIGMA = 25
N_ATOMS = RestoreConfig.n_atoms
STANDARD, SMALLER, ROTATIONAL = "standard", "standard, smaller", "rotational"
OWN = (STANDARD, SMALLER, ROTATIONAL)
TWICE = "{}, twice as many atoms"
MORE = tuple(map(TWICE.format, OWN))
COLUMNS = ("damaged", *OWN, *MORE, "non-local means", "wavelets", "biharmonic")

Pixels = NDArray[Any]


@dataclass(frozen=True)
class Subject:
    """How much is restored."""

    size: int  # rows and columns of the images, from their middle
    sigmas: tuple[int, ...]
    diameter: int
    n_colorful: int  # images in color
    options: dict[str, int]  # others of `denoise` and `inpaint`

    @property
    def ways(self) -> dict[str, dict[str, Any]]:
        """Options of the dictionaries; a standard one is better on smaller disks."""
        how: dict[str, Any] = {"progress": False, "n_atoms": N_ATOMS, **self.options}
        return {
            STANDARD: {**how, "basis": "pixels", "diameter": self.diameter},
            SMALLER: {**how, "basis": "pixels", "diameter": self.diameter - 2},
            ROTATIONAL: {**how, "diameter": self.diameter},
        }

    @property
    def more(self) -> dict[str, dict[str, Any]]:
        """The same with twice as many atoms."""
        return {
            TWICE.format(name): {**how, "n_atoms": how["n_atoms"] * 2}
            for name, how in self.ways.items()
        }


FULL = Subject(256, (15, 25, 50), 11, 3, {})
QUICK = Subject(64, (25,), 7, 1, {"n_atoms": 8, "n_iterations": 3})


def run(options: Options) -> Result:
    """Add noise to three images, and take pixels away; restore them in every way."""
    subject = QUICK if options.quick else FULL
    images = _images(options.data, subject.size)
    numbers: dict[str, dict[str, float]] = {}
    shown: dict[str, Pixels] = {}
    for image in images:
        for sigma in subject.sigmas:
            made = _denoise(image.grey, sigma, subject)
            numbers[f"{image.label}, noise of σ = {sigma}"] = _psnrs(made, image.grey)
            shown = shown or {"true": image.grey, **made}
        for name, missing in _masks(subject.size).items():
            made = _inpaint(image.grey, missing, subject)
            numbers[f"{image.label}, {name}"] = _psnrs(made, image.grey)
    colors = {name: _colors(name, subject) for name in COLORFUL[: subject.n_colorful]}
    rows = [
        (name, *(f"{found[c]:.2f}" if c in found else "–" for c in COLUMNS))
        for name, found in numbers.items()
    ]
    return Result(
        data="; ".join(image.label for image in images),
        header=("PSNR in dB", *COLUMNS),
        rows=tuple(rows),
        figures={
            "denoised": ImageRows(
                f"{images[0].label}, noise of σ = {subject.sigmas[0]}",
                {"": np.stack(list(shown.values()))},
                like="",
                labels=tuple(shown),
                scale=(0, PEAK),
            )
        },
        numbers={**numbers, **colors},
        findings=(*_findings(numbers, options), _together(colors)),
        notes=(
            "PSNR of whole images of 8 bits, clipped to their range; seed 0; σ is given to all. "
            "Standard is the pixel basis in the same code, with as many atoms, on disks of the "
            "same diameter and on disks two pixels smaller. Twice as many atoms gain a rotational "
            "dictionary little, a standard one much. The parameters were chosen "
            "for rotational dictionaries, on other images than these; standard ones have the same.",
            "Images whose structure lies along rows and columns gain nothing by rotation: on the "
            "brick and the clock of scikit-image (σ = 25) a standard dictionary is 0.5 dB better.",
        ),
    )


def _images(choice: str, size: int) -> list[LabelledImage]:
    """Images (y, x) of 8 bits: cameraman or what stands for it, and free ones."""
    first = paper_or_stand_in("cameraman", choice)
    images = [LabelledImage(first.label, first.grey * PEAK)]
    if choice != "cc0":
        images.append(LabelledImage("camera (CC0)", free.camera()[::2, ::2]))
    images.append(LabelledImage("coins (CC0)", free.coins()))
    return [LabelledImage(i.label, _middle(np.rint(i.grey).astype(float), size)) for i in images]


def _middle(pixels: Pixels, size: int) -> Pixels:
    y, x = ((n - size) // 2 for n in pixels.shape[:2])
    return pixels[y : y + size, x : x + size]


def _psnrs(made: dict[str, Pixels], true: Pixels) -> dict[str, float]:
    """PSNR of each, in dB: 10 log₁₀ (255² / mean squared error)."""
    errors = {n: np.mean((np.clip(pixels, 0, PEAK) - true) ** 2) for n, pixels in made.items()}
    return {name: float(10 * np.log10(PEAK**2 / error)) for name, error in errors.items()}


def _denoise(true: Pixels, sigma: int, subject: Subject) -> dict[str, Pixels]:
    """The noisy image and what each way makes of it."""
    noisy = true + np.random.default_rng(0).normal(0, sigma, true.shape)
    made = {
        "damaged": noisy,
        **{n: denoise(noisy, sigma, **how) for n, how in {**subject.ways, **subject.more}.items()},
        "non-local means": denoise_nl_means(
            noisy, patch_size=5, patch_distance=6, h=0.8 * sigma, sigma=sigma, fast_mode=False
        ),
    }
    if find_spec("pywt"):
        made["wavelets"] = denoise_wavelet(noisy / PEAK, sigma / PEAK) * PEAK
    return made


def _colors(name: str, subject: Subject) -> dict[str, float]:
    """PSNR of a photograph in color: noisy, its colors cleaned each by itself, and together."""
    true = _middle(getattr(free, name)().astype(float), subject.size)
    noisy = true + np.random.default_rng(0).normal(0, COLOR_SIGMA, true.shape)
    how = subject.ways[ROTATIONAL]
    made = {way: denoise(noisy, COLOR_SIGMA, colors=way, **how) for way in (EACH, TOGETHER)}
    return _psnrs({"damaged": noisy, **made}, true)


def _together(colors: dict[str, dict[str, float]]) -> Finding:
    """Whether colors that are coded together lose more of their noise."""
    leads = {name: found[TOGETHER] - found[EACH] for name, found in colors.items()}
    each = "; ".join(f"{n} {v[EACH]:.2f}, together {v[TOGETHER]:.2f} dB" for n, v in colors.items())
    return Finding.added(
        f"noise of σ = {COLOR_SIGMA} in color: coding the colors together is better than each",
        f"{min(leads.values()):.2f} to {max(leads.values()):.2f} dB better: {each}",
        min(leads.values()) > 0,
        "Not so everywhere.",
    )


def _inpaint(true: Pixels, missing: NDArray[np.bool_], subject: Subject) -> dict[str, Pixels]:
    """The image with black holes and what each way makes of it."""
    holes = np.where(missing, 0, true).astype(np.uint8)
    return {
        "damaged": holes.astype(float),
        **{n: inpaint(holes, missing, **how).astype(float) for n, how in subject.ways.items()},
        "biharmonic": inpaint_biharmonic(holes / PEAK, missing) * PEAK,
    }


def _masks(size: int) -> dict[str, NDArray[np.bool_]]:
    """What is missing of an image: half of its pixels, letters, scratches."""
    random = np.random.default_rng(0)

    def letters(draw: ImageDraw.ImageDraw) -> None:
        font = ImageFont.load_default(18)
        for y in range(0, size, 24):
            draw.text((4, y), "atoms that may appear in any orientation", fill=255, font=font)

    def scratches(draw: ImageDraw.ImageDraw) -> None:
        for ends in random.uniform(0, size, (25, 4)):
            draw.line(ends.tolist(), fill=255, width=3)

    return {
        "50 % missing": random.random((size, size)) < 0.5,
        "letters": _drawn(size, letters),
        "scratches": _drawn(size, scratches),
    }


def _drawn(size: int, draw: Callable[[ImageDraw.ImageDraw], None]) -> NDArray[np.bool_]:
    image = Image.new("L", (size, size))
    draw(ImageDraw.Draw(image))
    return np.asarray(image) > PEAK // 2


def _findings(numbers: dict[str, dict[str, float]], options: Options) -> list[Finding]:
    noisy = {n: v for n, v in numbers.items() if "noise" in n}
    holed = {n: v for n, v in numbers.items() if "noise" not in n}
    ahead = {n: v[ROTATIONAL] - v["biharmonic"] for n, v in holed.items()}
    behind = [n for n, lead in ahead.items() if lead < 0]
    better = (ROTATIONAL, OWN[:2], "as many atoms (the default)")
    twice_same = (MORE[2], MORE[:1], "as many atoms (twice the default), on disks of the same size")
    twice = (MORE[2], MORE[:2], "as many atoms (twice the default)")
    found = [
        *(_lead(noisy, *compared) for compared in (better, twice_same, twice)),
        Finding.added(
            "missing pixels: rotational dictionaries are above biharmonic filling everywhere",
            f"{min(ahead.values()):.2f} to {max(ahead.values()):.2f} dB above",
            not behind,
            f"Not so: {'; '.join(behind)}.",
        ),
    ]
    if not options.quick and "cameraman, noise of σ = 25" in noisy:
        value = noisy["cameraman, noise of σ = 25"][ROTATIONAL]
        claim = f"cameraman, σ = 25: at least {BAR} dB"
        found.append(Finding.added(claim, f"{value:.2f} dB", value >= BAR))
    return found


def _lead(
    noisy: dict[str, dict[str, float]], own: str, others: tuple[str, ...], how: str
) -> Finding:
    """Whether a dictionary removes noise better than the best of others by `LEAD`."""
    leads = {n: v[own] - max(v[other] for other in others) for n, v in noisy.items()}
    short = [n for n, lead in leads.items() if lead < LEAD]
    which = "the standard one" if len(others) == 1 else "the better standard one"
    return Finding.added(
        f"noise: rotational dictionaries are {LEAD} dB above {which} with {how}",
        f"{min(leads.values()):.2f} to {max(leads.values()):.2f} dB above",
        not short,
        f"Not so in {len(short)} of {len(leads)}: {'; '.join(short)}.",
    )


EXPERIMENT = Experiment(
    name="restore",
    title="Noise removed, missing pixels filled",
    paper="nothing; BM3D reaches 29.46 dB on this cameraman with noise of σ = 25",
    ours="29.22 dB, a standard dictionary of as many atoms 27.62 (28.26 on smaller disks); 0.9 to "
    "2.1 dB above biharmonic filling",
    needs="cameraman.tif in DSC_DATA, or --data cc0",
    duration="about five minutes",
    run=run,
    images=("cameraman",),
)
