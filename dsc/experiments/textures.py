"""Drawn images, and a small suite of drawn textures, for machines without the paper's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy import ndimage

from dsc.errors import DscError, count_problem

CLASSES = ("dashes", "mesh", "narrow", "wide")
_WAVELENGTHS = {"mesh": 8.0, "narrow": 5.0, "wide": 9.0}  # in pixels
_LENGTH, _WIDTH, _SPACING = 4.0, 1.2, 6.0  # of the dashes, in pixels
_NOISE = 0.3  # standard deviation, that of the texture being 1

Grey = NDArray[np.float64]


def write_suite(
    folder: Path,
    n_train: int = 3,
    n_test: int = 2,
    angles: Sequence[float] = (0, 30, 60, 90),
    size: int = 64,
    seed: int = 0,
) -> Path:
    """Write a suite of four classes in the layout of Outex, and return its folder.

    All images have the same grey values in another order, so that only their arrangement tells
    the classes apart. No two are the same texture: each has its own phases, places and noise. For
    training there are `n_train` of each class, all at angle 0; for testing `n_test` of each class
    and angle, in degrees. The folder is new or empty, the images are squares of `size` pixels.
    """
    counts = {"n_train": (n_train, 1), "n_test": (n_test, 1), "size": (size, 16), "seed": (seed, 0)}
    problems = [count_problem(name, found, least) for name, (found, least) in counts.items()]
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        problems.append(f"folder: found {folder}, need a new or empty one")
    if not len(angles) or not np.isfinite(angles).all():
        problems.append(f"angles: found {angles}, need at least one, in degrees")
    if any(problems):
        raise DscError("; ".join(filter(None, problems)))
    rotated = [("000/train.txt", 0.0)] * n_train
    rotated += [("000/test.txt", float(angle)) for angle in angles for _ in range(n_test)]
    classes = [f"{name} {label} 1" for label, name in enumerate(CLASSES)]
    lines = {"000/classes.txt": classes, "000/train.txt": [], "000/test.txt": [], "defs.txt": []}
    (folder / "images").mkdir(parents=True)
    (folder / "000").mkdir()
    for label, name in enumerate(CLASSES):
        for number, (part, angle) in enumerate(rotated):
            stem = f"{label * len(rotated) + number:06d}"
            rng = np.random.default_rng([seed, label, number])
            pixels = _add_noise(draw_texture(name, size, angle, rng), rng)
            Image.fromarray(pixels).save(folder / "images" / f"{stem}.png")
            lines[part].append(f"{stem}.ras {label}")
            lines["defs.txt"].append(f"{stem}.ras drawn 100dpi {angle:02.10g}")
    for file, some in lines.items():
        (folder / file).write_text("\n".join([str(len(some)), *some]) + "\n")
    return folder


def _add_noise(texture: Grey, rng: np.random.Generator) -> NDArray[np.uint8]:
    """A texture with noise; the 256 levels are equally frequent: (y, x)."""
    texture = (texture - texture.mean()) / texture.std()
    noisy = texture + _NOISE * rng.standard_normal(texture.shape)
    rank = np.empty(noisy.size, np.int64)
    rank[np.argsort(noisy, axis=None, kind="stable")] = np.arange(noisy.size)
    return np.asarray(rank * 256 // noisy.size, np.uint8).reshape(noisy.shape)


def draw_texture(name: str, size: int, angle: float, rng: np.random.Generator) -> Grey:
    """A texture rotated about the image's middle, counter-clockwise, in degrees: (y, x).

    It is evaluated at the rotated coordinates of the pixels, not interpolated.
    """
    v, u = rotated_grid(size, angle)
    if name == "dashes":
        return _dashes(u, v, size, rng)
    phase = 2 * np.pi * rng.random(2)
    wavelength = _WAVELENGTHS[name]
    across = np.cos(2 * np.pi * v / wavelength + phase[1]) if name == "mesh" else 0
    return np.asarray(np.cos(2 * np.pi * u / wavelength + phase[0]) + across)


def rotated_grid(size: int, angle: float) -> tuple[Grey, Grey]:
    """(y, x) of the pixels of a square from its middle, rotated by an angle in degrees."""
    y, x = np.mgrid[:size, :size] - (size - 1) / 2
    cos, sin = np.cos(np.deg2rad(angle)), np.sin(np.deg2rad(angle))
    return y * cos + x * sin, x * cos - y * sin  # y points down


def _dashes(u: Grey, v: Grey, size: int, rng: np.random.Generator) -> Grey:
    """Bright dashes along v, at random places that cover the image however it is rotated."""
    reach = size / np.sqrt(2) + 3 * _LENGTH
    places = reach * (2 * rng.random((int((2 * reach / _SPACING) ** 2), 2)) - 1)
    texture = np.zeros(u.shape)
    for at_u, at_v in places:
        texture += np.exp(-(((u - at_u) / _WIDTH) ** 2 + ((v - at_v) / _LENGTH) ** 2) / 2)
    return texture


def synthetic_image(name: str) -> Grey:
    """Edges and flat regions for "cameraman", a warped mesh for "net": (y, x) in [0, 1]."""
    return _mesh(320) if name == "net" else _regions(256)


def _regions(size: int) -> Grey:
    """Half-planes and disks of random grey, slightly blurred, with a little noise."""
    rng = np.random.default_rng(7)
    y, x = np.mgrid[:size, :size] / size
    grey = np.full((size, size), 0.5)
    for _ in range(60):
        cy, cx, radius, rotation, level = rng.random(5)
        across = (x - cx) * np.cos(2 * np.pi * rotation) + (y - cy) * np.sin(2 * np.pi * rotation)
        inside = np.hypot(x - cx, y - cy) < 0.05 + 0.2 * radius
        grey[inside & (across > -0.08)] = level
    noise = 0.01 * rng.standard_normal(grey.shape)
    return np.asarray((ndimage.gaussian_filter(grey, 0.7) + noise).clip(0, 1))


def _mesh(size: int) -> Grey:
    """A mesh of bright threads whose direction and width vary slowly."""
    rng = np.random.default_rng(8)
    y, x = np.mgrid[:size, :size].astype(float)
    bend = ndimage.gaussian_filter(rng.standard_normal((2, size, size)), (0, 30, 30), mode="wrap")
    bend = 12 * (bend / np.abs(bend).max(axis=(1, 2), keepdims=True))
    u, v = (x + y) / np.sqrt(2) + bend[0], (x - y) / np.sqrt(2) + bend[1]
    threads = np.maximum(np.cos(2 * np.pi * u / 16), np.cos(2 * np.pi * v / 16))
    noise = 0.02 * rng.standard_normal(threads.shape)
    return np.asarray((0.5 + 0.4 * np.tanh(3 * (threads - 0.5)) + noise).clip(0, 1))


def comma_image(diameter: int) -> Grey:
    """A lopsided template in the middle of an image three disks wide: a bar, a hook and a dot."""
    size = 3 * diameter
    y, x = (np.mgrid[:size, :size] - (size - 1) / 2) / (diameter / 2)  # radius 1 is the rim
    bar = np.exp(-((x + 0.15) ** 2) / 0.02) * np.exp(-((y / 0.6) ** 6))
    hook = np.exp(-((np.hypot(x - 0.15, y + 0.25) - 0.32) ** 2) / 0.01) * (x > -0.1) * (y < -0.1)
    dot = np.exp(-((x - 0.4) ** 2 + (y - 0.4) ** 2) / 0.03)
    return np.asarray(ndimage.gaussian_filter(bar + 0.9 * hook - 1.2 * dot, diameter / 42))
