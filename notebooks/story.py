"""Draws story.png of the README: a photograph, its atoms, one of them, the rebuilding."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from skimage import data

import dsc

ANGLES = 16  # at which the one atom is shown

photograph = data.camera()[40:296, 120:376] / 255
windows = np.lib.stride_tricks.sliding_window_view(photograph, (11, 11)).reshape(
    -1, 11, 11
)
patches = dsc.ArrayPatches(windows[windows.std(axis=(1, 2)) > 0.03], center=True)
model = dsc.learn(patches, n_atoms=25, sparsity=4, n_iterations=20)
rebuilt = model.reconstruct(photograph)

pixels = model.atoms_pixels[np.argsort(-model.count)]
structured = max(range(len(pixels)), key=lambda m: np.nanstd(np.diff(pixels[m], axis=0)))
theta = 2 * np.pi * np.arange(ANGLES) / ANGLES
one = model.atoms[np.argsort(-model.count)[structured]]
rotated = model.basis.to_image(model.basis.steer(np.repeat(one[None], ANGLES, 0), theta))


def draw_disks(axes, disks, columns):
    """Disks in rows, each with its own contrast."""
    side, gap = disks.shape[1], 2
    rows = -(-len(disks) // columns)
    canvas = np.full((rows * (side + gap), columns * (side + gap)), np.nan)
    for index, disk in enumerate(disks):
        y, x = (place * (side + gap) for place in divmod(index, columns))
        canvas[y : y + side, x : x + side] = disk / np.nanmax(np.abs(disk))
    axes.imshow(canvas, cmap="gray", vmin=-1, vmax=1, interpolation="none")


figure = Figure(figsize=(15, 4.1), dpi=110, layout="constrained", facecolor="white")
axes = figure.subplots(1, 4)
axes[0].imshow(photograph, cmap="gray", vmin=0, vmax=1)
axes[0].set_title("a photograph")
draw_disks(axes[1], pixels, 5)
axes[1].set_title(f"{len(pixels)} atoms learned from it")
draw_disks(axes[2], rotated, 4)
axes[2].set_title("one of them, at some of its angles")
axes[3].imshow(rebuilt, cmap="gray", vmin=0, vmax=1)
axes[3].set_title(f"rebuilt from {model.config.sparsity} atoms a patch")
for one_axes in axes:
    one_axes.set_axis_off()
    one_axes.title.set_fontsize(15)
figure.savefig(Path(__file__).with_name("story.png"))
error = float(((rebuilt - photograph) ** 2).mean())
print(f"story.png: the rebuilding has a PSNR of {-10 * np.log10(error):.1f} dB")
