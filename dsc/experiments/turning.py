"""True rotations: the whole picture is turned, and the disk cut out of it afterwards."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage, sparse

from dsc import pixel_basis, rotation_matrix
from dsc.experiments.data import SPLINE_ORDER, LabelledImage

RIM = 4  # pixels around a disk, more than an interpolation reaches

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TurnedDisks:
    """Disks of pictures, before and after a turn of the picture: (patch, pixel), (patch,)."""

    before: Floats
    after: Floats
    theta: Floats

    def without_mean(self) -> TurnedDisks:
        """The same with the mean of each disk (before the turn) subtracted from both."""
        mean = self.before.mean(1, keepdims=True)
        return TurnedDisks(self.before - mean, self.after - mean, self.theta)

    def joined(self, other: TurnedDisks) -> TurnedDisks:
        """These disks, then the other ones."""
        names = ("before", "after", "theta")
        return TurnedDisks(*(np.concatenate([getattr(self, n), getattr(other, n)]) for n in names))

    def error(self, turned: NDArray[np.floating]) -> float:
        """Energy of the difference to the truth, as a fraction of the truth's energy."""
        return float(((turned - self.after) ** 2).sum() / (self.after**2).sum())


def cut_turned(image: LabelledImage, y: Floats, x: Floats, theta: Floats, diameter: int) -> Floats:
    """Disks centred at (y, x) of the picture turned about them by theta: (patch, pixel)."""
    center = (diameter - 1) / 2
    dy, dx = (axis - center for axis in np.nonzero(pixel_basis(diameter).mask))
    offset = (dx - 1j * dy) * np.exp(-1j * theta)[:, None]  # y points down, angles grow upwards
    places = [y[:, None] - offset.imag, x[:, None] + offset.real]
    return np.asarray(
        ndimage.map_coordinates(
            image.spline, places, order=SPLINE_ORDER, prefilter=False, mode="mirror"
        )
    )


def turned_disks(
    images: list[LabelledImage], diameter: int, per_image: int, n_turns: int
) -> TurnedDisks:
    """Random disks of all pictures, each turned by one of `n_turns` random angles."""
    rng = np.random.default_rng(diameter)
    turns = rng.uniform(0, 2 * np.pi, n_turns)
    parts = []
    for image in images:
        high = np.array(image.grey.shape)[:, None] - diameter
        y, x = rng.integers(diameter, high, (2, per_image)).astype(float)
        theta = np.resize(turns, per_image)
        still = np.zeros(per_image)
        parts.append([cut_turned(image, y, x, t, diameter) for t in (still, theta)] + [theta])
    return TurnedDisks(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def interpolate(
    disks: TurnedDisks, diameter: int, method: str, zeros_outside: bool = False
) -> Floats:
    """The disks turned by "nearest" or "bicubic" interpolation of their own pixels.

    Parameters
    ----------
    disks
        What to turn, and by how much.
    diameter
        Pixels across.
    method
        "nearest" or "bicubic".
    zeros_outside
        Take what is outside the disk for zero; else the weights of the neighbours inside are
        scaled to sum to one.
    """
    make = zero_padded_matrix if zeros_outside else rotation_matrix
    turned = np.empty_like(disks.before)
    for theta in np.unique(disks.theta):
        rows = disks.theta == theta
        turned[rows] = (make(diameter, float(theta), method) @ disks.before[rows].T).T
    return turned


def zero_padded_matrix(diameter: int, theta: float, method: str) -> sparse.csr_array:
    """The matrix of a disk with zeros around it: the middle of that of a larger disk."""
    larger = pixel_basis(diameter + 2 * RIM)
    middle = np.pad(pixel_basis(diameter).mask, RIM)
    inside = np.flatnonzero(middle[larger.mask])
    return rotation_matrix(larger.diameter, theta, method)[inside][:, inside]
