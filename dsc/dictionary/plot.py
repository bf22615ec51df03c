"""Pictures of atoms."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray


def plot_atoms(images: NDArray[np.float32], columns: int = 10) -> Figure:
    """A grid of atoms (atom, y, x), grey around zero, transparent outside the disk."""
    n_columns = min(columns, len(images))
    n_rows = -(-len(images) // n_columns)
    figure = Figure(figsize=(n_columns, 1.02 * n_rows), dpi=110)
    figure.subplots_adjust(0.005, 0.01, 0.995, 0.99, 0.06, 0.06)
    for place, image in enumerate(images):
        axes = figure.add_subplot(n_rows, n_columns, place + 1)
        axes.set_axis_off()
        limit = float(np.nanmax(np.abs(image))) or 1.0
        axes.imshow(image, cmap="gray", vmin=-limit, vmax=limit)
    return figure
