"""The page of the demo: what the dictionaries are and do, beside the reports of their runs."""

from __future__ import annotations

from typing import Any

import numpy as np

from dsc.dictionary import plot_disks
from dsc.experiments import Demo
from dsc.report.experiments import plot_figure
from dsc.report.figures import draw
from dsc.report.images import direction_wheel, grey, paint_directions, signed, strength_of
from dsc.report.learn import write_report
from dsc.report.render import Page, Place
from dsc.show import atom_shades, percent, shades

RESIDUAL = 0.25  # of the range of an image: what is drawn white


def write_demo(demo: Demo) -> dict[str, Any]:
    """Write the demo's page, plots and summary.json, which is returned, and a report per run."""
    for kind in demo.models:
        write_report(demo.folder / kind)
    atoms = {
        kind: atom_shades(model.atoms_pixels[np.argsort(-model.count, kind="stable")])
        for kind, model in demo.models.items()
    }
    degrees, rotated = demo.rotated
    low, high = (np.full(len(rotated), end(rotated)) for end in (np.nanmin, np.nanmax))
    figures = {
        **{f"{kind}-atoms": plot_disks(disks) for kind, disks in atoms.items()},
        "error": plot_figure(demo.history),
    }
    angles = [
        (disk, f"one atom rotated by {angle:g} degrees", f"{angle:g}°")
        for disk, angle in zip(shades(rotated, low, high), degrees, strict=True)
    ]
    grids = {kind: [(one, f"{kind} atom", "") for one in disks] for kind, disks in atoms.items()}
    page = Page(
        "demo.html",
        "dsc demo",
        {"kind": "dsc demo", **demo.to_dict()},
        {name: draw(figure) for name, figure in figures.items()},
        {"angles": angles, "atoms": grids, **_images(demo)},
    )
    return Place(demo.folder / "index.html", demo.folder / "summary.json").write(page)


def _images(demo: Demo) -> dict[str, Any]:
    """The images of the story, as bytes."""
    story = demo.story
    true = story.photograph
    rebuilt = {kind: one.image for kind, one in story.rebuilt.items()}
    return {
        "photograph": grey(true, 0, 1),
        "rebuilt": {kind: grey(image, 0, 1) for kind, image in rebuilt.items()},
        "residual": {kind: signed(true - image, RESIDUAL) for kind, image in rebuilt.items()},
        "fur": grey(story.fur, 0, 1),
        "directions": paint_directions(np.asarray(story.maps["angle"]), strength_of(story.maps)),
        "wheel": direction_wheel(),
        "noisy": grey(story.noisy, 0, 1),
        "clean": grey(story.clean, 0, 1),
        "removed": signed(story.noisy - story.clean, 2 * RESIDUAL),
    }


def closing_words(demo: Demo) -> str:
    """What came out, and what to do next."""
    facts = demo.to_dict()
    lines = [
        f"  {kind:<10}  {percent(demo.share[kind]):>6} of the energy left, mse "
        f"{demo.mse[kind]:.6f}; a photograph rebuilt: "
        f"{percent(facts['rebuilt'][kind]['share'])} left, PSNR "
        f"{facts['rebuilt'][kind]['psnr']:.2f} dB"
        for kind in ("standard", "rotational")
    ]
    noise = facts["denoised"]
    size = f"{demo.n_patches:,} patches, {facts['n_atoms']} atoms, {facts['sparsity']} per patch"
    return "\n".join(
        [
            f"\n{size}:",
            *lines,
            f"  noise of σ = {noise['sigma']} removed: PSNR {noise['before']:.2f} dB before, "
            f"{noise['after']:.2f} dB after",
            f"\nlook at {demo.folder / 'index.html'}",
            "then try: dsc learn YOUR_IMAGES --diameter 11 --center --out run",
            "          dsc denoise YOUR_IMAGE --out clean.png",
        ]
    )
