"""Draws story.png of the README: atoms at angles, directions, and images restored."""

from io import BytesIO
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from PIL import Image
from skimage import data
from skimage.color import rgb2gray

import dsc
from dsc.report import direction_wheel, paint_directions, strength_of

N_ANGLES = 6  # at which atoms are shown
NOISE = 25  # standard deviation in grey levels of 0 to 255

photograph = data.camera()[60:316, 100:356] / 255
fur = rgb2gray(data.chelsea()[20:276, 90:346])

windows = [
    np.lib.stride_tricks.sliding_window_view(image, (11, 11)).reshape(-1, 11, 11)
    for image in (photograph, fur)
]
squares = np.concatenate([some[some.std(axis=(1, 2)) > 0.03] for some in windows])
patches = dsc.ArrayPatches(squares, center=True)
model = dsc.learn(patches, n_atoms=25, sparsity=4, n_iterations=20)

rebuilt = model.rebuild(photograph)
maps = dsc.orientation(fur, model)
noise = np.random.default_rng(0).normal(0, NOISE, photograph.shape)
noisy = np.clip(np.rint(255 * photograph + noise), 0, 255).astype(np.uint8)
clean = dsc.denoise(noisy, NOISE)
psnr = {
    name: -10 * np.log10(np.mean((image / 255 - photograph) ** 2))
    for name, image in (("noisy", noisy), ("clean", clean))
}

pixels = model.atoms_pixels
steepness = [np.nanstd(np.diff(pixel, axis=0)) for pixel in pixels]
structured = np.argsort(steepness)[: -N_ANGLES - 1 : -1]
theta = np.pi * np.arange(N_ANGLES) / N_ANGLES
rotated = np.concatenate(
    [
        model.basis.to_image(
            model.basis.steer(np.repeat(model.atoms[[m]], N_ANGLES, 0), theta)
        )
        for m in structured
    ]
)


def draw_disks(axes, disks, columns):
    """Disks in rows, each with its own contrast."""
    side, gap = disks.shape[1], 2
    rows = -(-len(disks) // columns)
    canvas = np.full((rows * (side + gap) - gap, columns * (side + gap) - gap), np.nan)
    for index, disk in enumerate(disks):
        y, x = (place * (side + gap) for place in divmod(index, columns))
        canvas[y : y + side, x : x + side] = disk / np.nanmax(np.abs(disk))
    axes.imshow(canvas, cmap="gray", vmin=-1, vmax=1, interpolation="none")


figure = Figure(figsize=(12, 8.5), dpi=80, layout="constrained", facecolor="white")
(top, bottom) = figure.subplots(2, 3)
draw_disks(top[0], rotated, N_ANGLES)
top[0].set_title(f"atoms, each at {N_ANGLES} of its angles")
top[1].imshow(fur, cmap="gray", vmin=0, vmax=1)
top[1].set_title("a photograph")
top[2].imshow(paint_directions(maps["angle"].values, strength_of(maps)))
top[2].set_title("which way its fur runs")
wheel = top[2].inset_axes((0.02, 0.02, 0.2, 0.2))
wheel.imshow(direction_wheel())
wheel.set_axis_off()
bottom[0].imshow(noisy, cmap="gray", vmin=0, vmax=255)
bottom[0].set_title(f"noisy: {psnr['noisy']:.1f} dB")
bottom[1].imshow(clean, cmap="gray", vmin=0, vmax=255)
bottom[1].set_title(f"cleaned: {psnr['clean']:.1f} dB")
bottom[2].imshow(rebuilt.image, cmap="gray", vmin=0, vmax=1)
bottom[2].set_title(f"rebuilt: {model.config.sparsity} atoms a patch")
for axes in (*top, *bottom):
    axes.set_axis_off()
    axes.title.set_fontsize(17)
drawn = BytesIO()
figure.savefig(drawn)
opaque = Image.open(drawn).convert("RGB")
opaque.save(Path(__file__).with_name("story.png"), optimize=True)
print(
    f"story.png: noisy {psnr['noisy']:.1f} dB, cleaned {psnr['clean']:.1f} dB; rebuilt: "
    f"{rebuilt.line()}"
)
