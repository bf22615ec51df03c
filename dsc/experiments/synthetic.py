"""Drawn pictures, for machines without the paper's."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

Grey = NDArray[np.float64]


def synthetic_image(name: str) -> Grey:
    """Edges and flat regions for "cameraman", a warped mesh for "net": (y, x) in [0, 1]."""
    return _mesh(320) if name == "net" else _regions(256)


def _regions(size: int) -> Grey:
    """Half-planes and disks of random grey, slightly blurred, with a little noise."""
    rng = np.random.default_rng(7)
    y, x = np.mgrid[:size, :size] / size
    grey = np.full((size, size), 0.5)
    for _ in range(60):
        cy, cx, radius, turn, level = rng.random(5)
        across = (x - cx) * np.cos(2 * np.pi * turn) + (y - cy) * np.sin(2 * np.pi * turn)
        inside = np.hypot(x - cx, y - cy) < 0.05 + 0.2 * radius
        grey[inside & (across > -0.08)] = level
    noise = 0.01 * rng.standard_normal(grey.shape)
    return np.asarray((ndimage.gaussian_filter(grey, 0.7) + noise).clip(0, 1))


def _mesh(size: int) -> Grey:
    """A mesh of bright threads whose direction and width vary slowly."""
    rng = np.random.default_rng(8)
    y, x = np.mgrid[:size, :size].astype(float)
    bend = [12 * _smooth(rng, size) for _ in range(2)]
    u = (x + y) / np.sqrt(2) + bend[0]
    v = (x - y) / np.sqrt(2) + bend[1]
    threads = np.maximum(np.cos(2 * np.pi * u / 16), np.cos(2 * np.pi * v / 16))
    noise = 0.02 * rng.standard_normal(threads.shape)
    return np.asarray((0.5 + 0.4 * np.tanh(3 * (threads - 0.5)) + noise).clip(0, 1))


def _smooth(rng: np.random.Generator, size: int) -> Grey:
    field = ndimage.gaussian_filter(rng.standard_normal((size, size)), 30, mode="wrap")
    return np.asarray(field / np.abs(field).max())


def comma_image(diameter: int) -> Grey:
    """A lopsided template in the middle of a picture three disks wide: a bar, a hook and a dot."""
    size = 3 * diameter
    y, x = (np.mgrid[:size, :size] - (size - 1) / 2) / (diameter / 2)  # radius 1 is the rim
    bar = np.exp(-((x + 0.15) ** 2) / 0.02) * np.exp(-((y / 0.6) ** 6))
    hook = np.exp(-((np.hypot(x - 0.15, y + 0.25) - 0.32) ** 2) / 0.01) * (x > -0.1) * (y < -0.1)
    dot = np.exp(-((x - 0.4) ** 2 + (y - 0.4) ** 2) / 0.03)
    return np.asarray(ndimage.gaussian_filter(bar + 0.9 * hook - 1.2 * dot, diameter / 42))
