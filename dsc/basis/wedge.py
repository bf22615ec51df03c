"""The symmetry of the square grid: eight-fold, so an eighth of the disk holds all of a basis.

A complex function ψ = c + js of frequency t, with the sampled cosine-like c and sine-like s as its
parts, is of *class* t mod 4 when a quarter rotation multiplies it by a power of j,

    ψ(rotated by 90°) = jᵗ ψ,    and mirrored, ψ(y → −y) = ψ̄ .

Its values on the pixels with 0 ≤ y ≤ x (the *wedge*) then give all others by swapped signs: a
quarter rotation is exact to the bit. Functions of different classes are orthogonal, a function of
class 3 is the conjugate of one of class 1, and the conditions at the axis and at the diagonal
leave real coordinates: a quarter of the pixels for class 1, and for the classes 0 and 2 an eighth
each for c and for s.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dsc.basis.grid import disk_mask

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

HALF = 0.5**0.5
DIRECTIONS = np.array([[1, 0], [HALF, HALF], [0, 1]])  # of a value c + js: eighths of a rotation


@dataclass(frozen=True, eq=False)
class Wedge:
    """The pixels with 0 ≤ y ≤ x (y upwards) of a disk, and how the others follow from them."""

    x: Ints  # (place,) twice the coordinates, so that they are whole numbers
    y: Ints
    count: Ints  # (place,) pixels that follow from this one: 8, 4 on axis and diagonal, 1
    place: Ints  # (pixel,) the wedge's pixel that this one follows from,
    mirrored: NDArray[np.bool_]  # (pixel,) whether mirrored first,
    quarters: Ints  # (pixel,) and then rotated so many quarters

    @property
    def n_pixels(self) -> int:
        """Pixels of the disk."""
        return self.place.size

    def spread(self, values: Floats, frequency: Ints) -> Floats:
        """Columns [t=0 | t=1 cos | t=1 sin | …] on the wedge → the same on all pixels."""
        partner, is_sine = pair_partners(frequency)
        spread = np.empty((self.n_pixels, frequency.size))
        for m in range(4):
            # (c + js) jᵗᵐ has the cosines c, −s, −c, s and the sines s, c, −s, −c
            power = m * frequency % 4
            swapped = power % 2 == 1
            minus = np.where(is_sine, power >= 2, (power == 1) | (power == 2))
            source = np.where(swapped, partner, np.arange(frequency.size))
            for mirrored in (False, True):  # c − js: another sign where s is taken
                rows = (self.quarters == m) & (self.mirrored == mirrored)
                other = minus ^ (mirrored & (is_sine ^ swapped))
                spread[rows] = values[self.place[rows]][:, source] * np.where(other, -1.0, 1.0)
        return spread


def wedge_of(diameter: int) -> Wedge:
    """The wedge of the disk of this diameter."""
    axis = 2 * np.arange(diameter) - (diameter - 1)
    mask = disk_mask(diameter)
    down, x = (grid[mask] for grid in np.meshgrid(axis, axis, indexing="ij"))
    y, quarters = -down, np.zeros_like(x)
    for _ in range(3):  # rotate back until −x < y ≤ x
        outside = ~((-x < y) & (y <= x)) & ((x != 0) | (y != 0))
        x, y = np.where(outside, y, x), np.where(outside, -x, y)
        quarters += outside
    mirrored = y < 0
    pairs, place, count = np.unique(
        np.stack([x, np.abs(y)]), axis=1, return_inverse=True, return_counts=True
    )
    return Wedge(pairs[0], pairs[1], count, place.ravel(), mirrored, quarters)


def pair_partners(frequency: Ints) -> tuple[Ints, NDArray[np.bool_]]:
    """The other column of each pair, and which columns are sines: [t=0 | t=1 cos | t=1 sin | …]."""
    partner, is_sine = np.arange(frequency.size), np.zeros(frequency.size, bool)
    for t in np.unique(frequency[frequency > 0]):
        columns = np.flatnonzero(frequency == t)
        cosines, sines = np.split(columns, 2)
        partner[cosines], partner[sines], is_sine[sines] = sines, cosines, True
    return partner, is_sine


@dataclass(frozen=True, eq=False)
class ClassCoords:
    """Orthonormal real coordinates of the functions of one class (0, 1 or 2)."""

    number: int
    place: Ints  # (coord,) the wedge's pixel
    direction: Ints  # (coord,) that of its value: 0 cosine, 1 both alike, 2 sine
    weight: Floats  # (coord,) the coordinate per value
    angle: Floats  # (coord,) of the pixel

    @property
    def parts(self) -> list[NDArray[np.bool_]]:
        """(coord,) rows that are orthonormalised apart: c and s, which class 1 has as one."""
        if self.number == 1:
            return [np.ones(self.place.size, bool)]
        return [self.direction == 0, self.direction == 2]

    def harmonic(self, s: int) -> Floats:
        """(coord,) the coordinates of e^{jsθ}, for s of this class."""
        return self.weight * np.cos(s * self.angle - self.direction * (np.pi / 4))


def class_coords(wedge: Wedge, number: int) -> ClassCoords:
    """The real coordinates of a class on this wedge."""
    center, axis = wedge.x == 0, (wedge.y == 0) & (wedge.x > 0)
    diagonal = (wedge.x == wedge.y) & ~center
    generic = ~(center | axis | diagonal)
    some = [(generic, 0), (generic, 2), (axis, 0), (diagonal, number)]
    if number == 0:
        some.append((center, 0))
    place = np.concatenate([np.flatnonzero(places) for places, _ in some])
    direction = np.concatenate([np.full(places.sum(), way) for places, way in some])
    angle = np.arctan2(wedge.y, wedge.x)[place]
    weight = np.sqrt(wedge.count[place])
    return ClassCoords(number, place, direction, weight, angle)
