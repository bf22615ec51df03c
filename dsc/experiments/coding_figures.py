"""Figures of the coding experiments."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from dsc import Dictionary, StoredPatches
from dsc.experiments.coding_findings import Curves
from dsc.experiments.draw import DPI, Floats, atom_grid, picture_rows
from dsc.experiments.result import Drawing

STYLES = {"standard": "--", "rotational": "-", "SPAMS online": ":"}
FRAMES = ("#d62728", "#1f77b4", "#2ca02c", "#ff7f0e", "#9467bd", "#8c564b", "#e377c2", "#17becf")
N_SHOWN = 10


def draw_curves(curves: Curves) -> Drawing:
    """Error against the number of atoms: a colour for each K, a line style for each kind."""
    figure = Figure(figsize=(7.5, 5.4), dpi=DPI, layout="constrained")
    axes = figure.add_subplot()
    for number, k in enumerate(curves.sparsities):
        for kind in curves.kinds:
            axes.plot(
                curves.n_atoms,
                [1e3 * curves.mse[kind, m, k] for m in curves.n_atoms],
                STYLES[kind],
                color=f"C{number}",
                marker="o",
                markersize=3,
                label=f"{kind}, K = {k}",
            )
    axes.axhline(1e3 * curves.bound, color="0.5", linewidth=1)
    axes.annotate(
        "projection bound", (curves.n_atoms[0], 1e3 * curves.bound), va="bottom", fontsize=8
    )
    axes.set(xlabel="atoms M", ylabel="error per pixel × 10³", yscale="log")
    axes.grid(alpha=0.3)
    figure.legend(
        loc="outside lower center",
        frameon=False,
        fontsize=7,
        handlelength=3,
        ncols=len(curves.sparsities),
    )
    return Drawing(figure, "coding error against the number of atoms", plot=True)


def draw_atoms(model: Dictionary, groups: list[list[int]], caption: str) -> Drawing:
    """Atoms, most used first, the groups framed; within colours, groups are told by place."""
    colours: list[str | None] = [None] * len(model.atoms)
    for number, group in enumerate(groups):
        for m in group:
            colours[m] = FRAMES[number % len(FRAMES)]
    order = np.argsort(-model.count, kind="stable")
    figure = atom_grid(model.atoms_pixels[order], [colours[m] for m in order])
    return Drawing(figure, f"{caption}; M = {len(model.atoms)}, K = {model.config.sparsity}")


def draw_codings(models: dict[str, Dictionary], patches: StoredPatches) -> Drawing:
    """Some patches, and how each dictionary codes them."""
    numbers = np.linspace(0, patches.n_patches - 1, N_SHOWN).astype(int)
    pixels = np.concatenate([patches.pixels(int(p), int(p) + 1) for p in numbers])
    basis = next(iter(models.values())).basis
    rows: dict[str, list[Floats]] = {"patches": list(basis.to_image(pixels))}
    for kind, model in models.items():
        codes = model.encode(np.nan_to_num(basis.to_image(pixels))).codes
        assert codes is not None
        rows[kind] = list(model.decode(codes))
    return Drawing(picture_rows(rows, like="patches"), "patches and their codings")
