"""`dsc demo`: a rotational and a standard dictionary of the same patches, side by side."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from PIL import Image
from skimage import data

from dsc.dictionary import Dictionary, learn
from dsc.errors import DscError
from dsc.patches import PatchConfig, StoredPatches, extract_patches
from dsc.report.page import figure_tag, page, table_tag
from dsc.report.write import write_report

PICTURES = ("brick", "camera", "coins", "grass", "gravel")  # CC0, inside scikit-image
PATCHES = PatchConfig(diameter=11, min_std=0.1, per_image=4000, unit=True)
N_ATOMS, SPARSITY, N_ITERATIONS = 20, 2, 10
KINDS = {"rotational": "disk", "standard": "pixels"}


def run_demo(folder: Path, say: Callable[[str], None]) -> dict[str, Any]:
    """Extract, learn both dictionaries, code, and write the folder; returns the numbers."""
    if folder.exists():
        raise DscError(f"{folder}: exists already: choose another --out, or remove it")
    begin = time.perf_counter()
    (folder / "pictures").mkdir(parents=True)
    for name in PICTURES:
        Image.fromarray(getattr(data, name)()).save(folder / "pictures" / f"{name}.png")
    say(f"cutting patches out of {len(PICTURES)} pictures of scikit-image")
    patches = extract_patches([str(folder / "pictures")], str(folder / "patches.zarr"), PATCHES)
    models, errors = {}, {}
    for kind, basis in KINDS.items():
        say(f"learning a {kind} dictionary: {N_ATOMS} atoms, {SPARSITY} per patch")
        models[kind] = learn(
            patches,
            N_ATOMS,
            SPARSITY,
            n_iterations=N_ITERATIONS,
            basis=basis,
            run=folder / kind,
        )
        coded = models[kind].encode(patches, out=str(folder / f"{kind}-codes.zarr"))
        errors[kind] = coded.mse
        write_report(folder / kind)
        models[kind].plot().savefig(folder / f"{kind}-atoms.png", transparent=True)
    summary = {
        "n_patches": patches.n_patches,
        "mse": errors,
        "ratio": errors["rotational"] / errors["standard"],
        "seconds": time.perf_counter() - begin,
        "out": str(folder),
    }
    (folder / "index.html").write_text(_page(summary, models, patches), encoding="utf-8")
    (folder / "summary.json").write_text(json.dumps(summary, indent=2), encoding="utf-8")
    say(_closing(summary, folder))
    return summary


def _closing(summary: dict[str, Any], folder: Path) -> str:
    mse = summary["mse"]
    return (
        f"\nerror per pixel, {summary['n_patches']:,} patches, {N_ATOMS} atoms, {SPARSITY} per "
        f"patch:\n  standard    {mse['standard']:.6f}\n  rotational  {mse['rotational']:.6f}   "
        f"({summary['ratio']:.2f} × the standard one's)\n\nlook at {folder / 'index.html'}\n"
        f"then try: dsc patches YOUR_PICTURES --out patches.zarr --min-std 0.1 --unit\n"
        f"          dsc learn patches.zarr --out run"
    )


def _page(summary: dict[str, Any], models: dict[str, Dictionary], patches: StoredPatches) -> str:
    mse = summary["mse"]
    body = [
        "<p>Two dictionaries of the same size, learned from the same patches. The atoms of the "
        "rotational one may appear in any orientation; the standard one has to spend atoms on "
        "rotated copies.</p>",
        table_tag(
            ["dictionary", "error per pixel", "against standard"],
            [[kind, f"{mse[kind]:.6f}", f"{mse[kind] / mse['standard']:.2f}"] for kind in mse],
        ),
        f'<p class="note">{summary["n_patches"]:,} patches of diameter {PATCHES.diameter} from '
        f"{', '.join(PICTURES)} (CC0, scikit-image), unit norm, {N_ATOMS} atoms, {SPARSITY} per "
        f"patch, {N_ITERATIONS} iterations.</p>",
    ]
    for kind, model in models.items():
        body += [
            f"<h2>{kind.capitalize()} atoms</h2>",
            figure_tag(model.plot(), f"{N_ATOMS} {kind} atoms, most used first"),
        ]
    body += [
        "<h2>Error over iterations</h2>",
        figure_tag(_plot_history(models), "mean squared error per pixel", plot=True),
        "<h2>Patches and their codes</h2>",
        figure_tag(
            _plot_codes(models, patches), "top to bottom: patches, rotational codes, standard codes"
        ),
    ]
    return page("dsc demo", body)


def _plot_history(models: dict[str, Dictionary]) -> Figure:
    figure = Figure(figsize=(7, 3.2), dpi=110, layout="constrained")
    axes = figure.add_subplot()
    for kind, model in models.items():
        axes.semilogy(model.history, marker="o", markersize=3, label=kind)
    axes.set_xlabel("iteration")
    axes.set_ylabel("error per pixel")
    axes.legend(frameon=False)
    return figure


def _plot_codes(
    models: dict[str, Dictionary], patches: StoredPatches, n_columns: int = 10
) -> Figure:
    picked = np.linspace(0, patches.n_patches - 1, n_columns).astype(int)
    pixels = np.concatenate([patches.pixels(int(p), int(p) + 1) for p in picked])
    rows = []
    for model in models.values():
        basis = model.basis
        images = basis.to_image(pixels)
        coded = model.encode(np.nan_to_num(images)).codes
        assert coded is not None
        rows.append(model.decode(coded))
    figure = Figure(figsize=(n_columns, 3.1), dpi=110)
    figure.subplots_adjust(0.005, 0.01, 0.995, 0.99, 0.06, 0.06)
    for i, row in enumerate([images, *rows]):
        for j, image in enumerate(row):
            axes = figure.add_subplot(3, n_columns, i * n_columns + j + 1)
            axes.set_axis_off()
            low, high = np.nanmin(images[j]), np.nanmax(images[j])
            axes.imshow(image, cmap="gray", vmin=low, vmax=high)
    return figure
