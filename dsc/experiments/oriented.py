"""Images whose orientation is known at every pixel: sinusoids, rings, fibres, crossings."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

BORDER = 8  # pixels at the border that are not judged
WIDTH = 1.5  # of fibres: the standard deviation of their profile
CLEAR = 10  # pixels around a crossing, or a place on a fibre, without any other fibre
LEAST_ANGLE = 30  # degrees between fibres that cross

Doubles = NDArray[np.float64]


class Oriented(NamedTuple):
    """An image of amplitude 1, its orientation in degrees, and the pixels that have one."""

    image: Doubles
    angle: Doubles
    judged: NDArray[np.bool_]


class Crossing(NamedTuple):
    """A place where two structures cross, and their orientations in degrees."""

    y: int
    x: int
    angles: tuple[float, float]


def difference(a: Doubles | float, b: Doubles | float) -> Doubles:
    """Degrees between orientations: 0 to 90.

    Examples
    --------
    >>> float(difference(85, -85))
    10.0
    """
    return np.asarray(np.abs(np.mod(np.subtract(a, b) + 90, 180) - 90))


def across(size: int, degrees: float, middle: tuple[float, float] = (0, 0)) -> Doubles:
    """Distance of every pixel to the line through a point (y, x), counter-clockwise from x."""
    y, x = np.mgrid[:size, :size]
    theta = np.radians(degrees)
    return np.asarray((middle[1] - x) * np.sin(theta) + (middle[0] - y) * np.cos(theta))


def sinusoid(size: int, degrees: float, period: float) -> Oriented:
    """A sinusoid whose lines run along one direction."""
    image = np.cos(2 * np.pi * across(size, degrees) / period)
    return Oriented(image, np.full((size, size), degrees), inside(size))


def rings(size: int) -> Oriented:
    """A chirp: rings around the middle, finer outwards, from 14 to some 7 pixels."""
    y, x = np.mgrid[:size, :size] - (size / 2 - 0.25)
    radius = np.hypot(y, x)
    image = np.cos(2 * np.pi * (radius / 14 + radius**2 / (14 * 1.4 * size)))
    return Oriented(image, np.degrees(np.arctan2(-y, x)) + 90, inside(size) & (radius > 12))


def fibres(size: int, count: int, seed: int) -> tuple[Oriented, list[Crossing]]:
    """Straight fibres at random, and where two of them cross with no other near.

    Judged are the pixels of one fibre that are far from all others.
    """
    rng = np.random.default_rng(seed)
    degrees = rng.uniform(-90, 90, count)
    middles = rng.uniform(0.15 * size, 0.85 * size, (count, 2))
    distance = np.stack([np.abs(across(size, *one)) for one in zip(degrees, middles, strict=True)])
    nearest, second = np.sort(distance, 0)[:2]
    image = np.exp(-(distance**2) / (2 * WIDTH**2)).sum(0)
    judged = (nearest < WIDTH) & (second > CLEAR) & inside(size)
    crossings = []
    for i in range(count):
        for j in range(i):
            place = _meeting(degrees[[i, j]], middles[[i, j]])
            if place is None or not (np.abs(place - size / 2) < size / 2 - 10).all():
                continue
            y, x = np.round(place).astype(int)
            others = np.delete(distance[:, y, x], [i, j])
            if others.min(initial=np.inf) > CLEAR:
                crossings.append(Crossing(int(y), int(x), (degrees[i], degrees[j])))
    return Oriented(image, degrees[distance.argmin(0)], judged), crossings


def inside(size: int) -> NDArray[np.bool_]:
    """(y, x) all pixels but those at the border."""
    mask = np.zeros((size, size), bool)
    mask[BORDER:-BORDER, BORDER:-BORDER] = True
    return mask


def _meeting(degrees: Doubles, middles: Doubles) -> Doubles | None:
    """(y, x) where two lines meet; None if their directions are too close."""
    if difference(degrees[0], degrees[1]) < LEAST_ANGLE:
        return None
    along = np.stack([-np.sin(np.radians(degrees)), np.cos(np.radians(degrees))])  # (y and x, line)
    steps = np.linalg.solve(along * [1, -1], middles[1] - middles[0])
    return np.asarray(middles[0] + steps[0] * along[:, 0])
