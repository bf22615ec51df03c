"""Pictures of basis functions."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from dsc import SteerableBasis
from dsc.experiments.draw import atom_grid

PICTURED_CUTOFFS = (1, 5, 8)  # T of the three rings in the paper's figure
FINE = 96  # pixels across a finely drawn element


def mid_ring_rule(diameter: int) -> tuple[int, ...]:
    """Cut-offs ⌊π × mid-ring radius⌋ of ⌊diameter/2⌋ rings: what the paper's figure follows.

    Examples
    --------
    >>> mid_ring_rule(11)
    (1, 5, 8, 12, 15)
    """
    n_rings = diameter // 2
    width = diameter / 2 / n_rings
    return tuple(int(np.pi * width * (s + 0.5)) for s in range(n_rings))


def draw_elements(basis: SteerableBasis) -> Figure:
    """Every element as a disk, in the order of the coordinates."""
    return atom_grid(basis.to_image(np.eye(basis.n_coords)), columns=13)


def draw_rings(cutoffs: tuple[int, ...]) -> Figure:
    """Circular harmonics on rings: one row a ring, the cosine above the sine."""
    axis = (np.arange(FINE) - (FINE - 1) / 2) / (FINE / 2)
    x, y = np.meshgrid(axis, -axis)
    radius, angle = np.hypot(x, y), np.arctan2(y, x)
    n_rings, n_columns = len(cutoffs), max(cutoffs) + 1
    elements = np.full((2 * n_rings * n_columns, FINE, FINE), np.nan)
    for s, cutoff in enumerate(cutoffs):
        ring = (radius > s / n_rings) & (radius <= (s + 1) / n_rings)
        for t in range(cutoff + 1):
            waves = (np.cos(t * angle), np.sin(t * angle))[: 1 + (t > 0)]
            for row, wave in enumerate(waves):
                place = (2 * s + row) * n_columns + t
                elements[place] = np.where(radius > 1, np.nan, ring * wave)
    return atom_grid(elements, columns=n_columns)
