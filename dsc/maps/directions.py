"""Which way an atom runs: its structure tensor, the mean over all of its rotations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dsc.basis import SteerableBasis

ROTATIONS = 64  # at which an atom is looked at; a multiple of four

Doubles = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Directions:
    """Of every atom (atom,)."""

    angle: Doubles  # radians counter-clockwise from the x axis to the way its structure runs
    coherence: Doubles  # from 0, no direction, to 1, only one
    energy: Doubles  # share of its energy that is not its mean


def atom_directions(atoms: NDArray[np.float32], basis: SteerableBasis) -> Directions:
    """The direction of every atom from its gradients.

    With g the gradient at a pixel as a complex number (x to the right, y up), the tensor of an
    atom is E = Σ |g|² and z = Σ g², and g = |g| e^{jγ} is across the structure, so that it runs
    along ½ arg(−z), with coherence |z| / E. Differences of pixels bend the directions of fine
    structures towards the axes: hence z is the mean of e^{−2jθ} z(R(θ) d) over a circle of θ,
    which has no preferred direction.
    """
    total = np.zeros(len(atoms), np.complex128)
    energy = np.zeros(len(atoms))
    for step in range(ROTATIONS):
        theta = 2 * np.pi * step / ROTATIONS
        squares, amount = gradient_moments(basis.to_image(basis.steer(atoms, theta)))
        total += np.exp(-2j * theta) * squares
        energy += amount
    pixels = basis.reconstruct(atoms).astype(np.float64)
    norms = (pixels**2).sum(1)
    means = pixels.reshape(len(atoms), basis.n_channels, -1).mean(2)  # of each channel
    varying = 1 - basis.n_pixels * (means**2).mean(1) / norms
    coherence = np.divide(np.abs(total), energy, out=np.zeros(len(atoms)), where=energy > 0)
    return Directions(np.angle(-total) / 2, coherence, varying.clip(0, 1))


def gradient_moments(images: NDArray[np.floating]) -> tuple[NDArray[np.complex128], Doubles]:
    """Σ g² and Σ |g|² of images (image, y, x), NaN off the disk, by central differences.

    Of images (image, y, x, channel) the sums are over channels, too.
    """
    values = images.astype(np.float64)
    right = values[:, 1:-1, 2:] - values[:, 1:-1, :-2]
    up = values[:, :-2, 1:-1] - values[:, 2:, 1:-1]
    gradient = right + 1j * up
    rest = tuple(range(1, values.ndim))
    return np.nansum(gradient**2, rest), np.nansum(np.abs(gradient) ** 2, rest)
