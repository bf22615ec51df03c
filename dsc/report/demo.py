"""The page of the demo: both dictionaries side by side, beside the reports of their runs."""

from __future__ import annotations

from typing import Any

import numpy as np

from dsc.dictionary import plot_disks
from dsc.experiments import Demo
from dsc.report.experiments import plot_figure
from dsc.report.figures import draw
from dsc.report.learn import write_report
from dsc.report.render import Page, Place
from dsc.show import atom_shades


def write_demo(demo: Demo) -> dict[str, Any]:
    """Write the demo's page, plots and summary.json, which is returned, and a report per run."""
    for kind in demo.models:
        write_report(demo.folder / kind)
    atoms = {
        kind: atom_shades(model.atoms_pixels[np.argsort(-model.count, kind="stable")])
        for kind, model in demo.models.items()
    }
    figures = {
        **{f"{kind}-atoms": plot_disks(disks) for kind, disks in atoms.items()},
        "error": plot_figure(demo.history),
        "codings": plot_figure(demo.codings),
    }
    page = Page(
        "demo.html",
        "dsc demo",
        {"kind": "dsc demo", **demo.to_dict()},
        {name: draw(figure) for name, figure in figures.items()},
        {kind: [(disk, f"{kind} atom", "") for disk in disks] for kind, disks in atoms.items()},
    )
    return Place(demo.folder / "index.html", demo.folder / "summary.json").write(page)


def closing_words(demo: Demo) -> str:
    """What came out, and what to do next."""
    facts = demo.to_dict()
    return (
        f"\nerror per pixel, {demo.n_patches:,} patches, {facts['n_atoms']} atoms, "
        f"{facts['sparsity']} per patch:\n  standard    {demo.mse['standard']:.6f}\n"
        f"  rotational  {demo.mse['rotational']:.6f}   "
        f"({facts['ratio']:.2f} × the standard one's)\n\n"
        f"look at {demo.folder / 'index.html'}\n"
        "then try: dsc patches YOUR_IMAGES --out patches.zarr --min-std 0.1 --unit\n"
        "          dsc learn patches.zarr --out run"
    )
