"""True rotations: the whole image is rotated, and the disk cut out of it afterwards."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dsc import SteerableBasis, pixel_basis, rotation_matrix
from dsc.experiments.data import LabelledImage

RIM = 4  # pixels around a disk, more than an interpolation reaches

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class RotatedDisks:
    """Disks of images, before and after a rotation of the image: (patch, pixel), (patch,)."""

    before: Floats
    after: Floats
    theta: Floats

    def without_mean(self) -> RotatedDisks:
        """The same with the mean of each disk (before the rotation) subtracted from both."""
        mean = self.before.mean(1, keepdims=True)
        return RotatedDisks(self.before - mean, self.after - mean, self.theta)

    def joined(self, other: RotatedDisks) -> RotatedDisks:
        """These disks, then the other ones."""
        names = ("before", "after", "theta")
        return RotatedDisks(*(np.concatenate([getattr(self, n), getattr(other, n)]) for n in names))

    def steered(self, basis: SteerableBasis) -> NDArray[np.floating]:
        """The disks rotated in a basis."""
        return basis.reconstruct(basis.steer(basis.project(self.before), self.theta))

    def error(self, rotated: NDArray[np.floating]) -> float:
        """Energy of the difference to the truth, as a fraction of the truth's energy."""
        return float(((rotated - self.after) ** 2).sum() / (self.after**2).sum())


def cut_rotated(image: LabelledImage, y: Floats, x: Floats, theta: Floats, diameter: int) -> Floats:
    """Disks centred at (y, x) of the image rotated about them by theta: (patch, pixel)."""
    dy, dx = (axis - (diameter - 1) / 2 for axis in np.nonzero(pixel_basis(diameter).mask))
    offset = (dx - 1j * dy) * np.exp(-1j * theta)[:, None]  # y points down, angles grow upwards
    return image.at(y[:, None] - offset.imag, x[:, None] + offset.real)


def cut_both(
    image: LabelledImage, y: Floats, x: Floats, theta: Floats, diameter: int
) -> RotatedDisks:
    """Disks centred at (y, x), before and after the rotation."""
    before, after = (
        cut_rotated(image, y, x, rotation, diameter) for rotation in (0 * theta, theta)
    )
    return RotatedDisks(before, after, theta)


def rotated_disks(
    images: list[LabelledImage], diameter: int, per_image: int, n_rotations: int
) -> RotatedDisks:
    """Random disks of all images, each rotated by one of `n_rotations` angles around the circle."""
    rng = np.random.default_rng(diameter)
    steps = np.arange(n_rotations) + rng.uniform()  # evenly spread: few angles stand for all
    theta = np.resize(2 * np.pi / n_rotations * steps, per_image)
    parts = []
    for image in images:
        high = np.array(image.grey.shape)[:, None] - diameter
        y, x = rng.integers(diameter, high, (2, per_image)).astype(float)
        parts.append(cut_both(image, y, x, theta, diameter))
    return reduce(RotatedDisks.joined, parts)


def interpolate(
    disks: RotatedDisks, diameter: int, method: str, zeros_outside: bool = False
) -> Floats:
    """The disks rotated by "nearest" or "bicubic" interpolation of their own pixels.

    With `zeros_outside`, what is outside the disk counts as zero; else the weights of the
    neighbours inside are scaled to sum to one.
    """
    make = zero_padded_matrix if zeros_outside else rotation_matrix
    rotated = np.empty_like(disks.before)
    for theta in np.unique(disks.theta):
        rows = disks.theta == theta
        rotated[rows] = (make(diameter, float(theta), method) @ disks.before[rows].T).T
    return rotated


def zero_padded_matrix(diameter: int, theta: float, method: str) -> sparse.csr_array:
    """The matrix of a disk with zeros around it: the middle of that of a larger disk."""
    larger = pixel_basis(diameter + 2 * RIM)
    inside = np.flatnonzero(np.pad(pixel_basis(diameter).mask, RIM)[larger.mask])
    return rotation_matrix(larger.diameter, theta, method)[inside][:, inside]
