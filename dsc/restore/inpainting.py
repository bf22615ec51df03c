"""`dsc.inpaint`: missing pixels filled by coding all overlapping disks, again and again.

Missing pixels start from a mean of the known ones nearby. Each round codes the disks of the filled
image and averages them, and what comes out at missing pixels is their next filling; known pixels
stay. The tolerance falls from round to round: first what is strong is continued into the holes,
then what is fine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.ndimage import gaussian_filter

from dsc.dictionary import Dictionary
from dsc.engine import open_engine, part_tasks
from dsc.errors import DscError
from dsc.pursuit import Coder
from dsc.restore.config import ENGINE, RestoreConfig
from dsc.restore.disks import average_disks, inverse_variance
from dsc.restore.learning import coder_of, learn_coder, pick_patches
from dsc.restore.pixels import Scale, by_channel, check_pixels, check_size, is_color
from dsc.restore.tiles import tile_places, with_margin
from dsc.show import Stage

# error per pixel at which coding stops, in units of the variance of the known pixels
LEVELS = tuple(float(level) for level in np.geomspace(0.3, 0.03, 12) ** 2)
LEARNING = 0.09**2  # the same while the dictionary is learned
SPARSITY = 10  # atoms per disk at most
WIDTHS = tuple(float(width) for width in np.geomspace(0.7, 40, 11))  # of the first filling
ENOUGH = 0.05  # weight of known pixels in a mean that is trusted

Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class InpaintStep:
    """What all tiles of a round share."""

    coder: Coder
    tolerance: float  # error per pixel at which coding stops

    @property
    def margin(self) -> int:
        """Pixels around a tile that its result depends on."""
        return self.coder.basis.diameter - 1


def inpaint(
    image: ArrayLike,
    mask: ArrayLike | None = None,
    model: Dictionary | None = None,
    **options: Any,
) -> NDArray[Any]:
    """Fill the missing pixels of an image.

    Parameters
    ----------
    image
        (y, x) whole numbers or floats; NaN is a missing pixel. Of (y, x, color) each channel is
        taken by itself.
    mask
        (y, x) True, or not zero, where a pixel is missing.
    model
        A dictionary to use; by default one is learned from the image itself, once it is roughly
        filled.
    **options
        As in `denoise`.

    Returns
    -------
    (y, x) of the same type; float32 for floats. Known pixels keep their values.

    Examples
    --------
    >>> import numpy as np
    >>> stripes = np.tile([0, 0, 0, 200, 200, 200], (40, 7)).astype(np.uint8)
    >>> missing = np.random.default_rng(0).random(stripes.shape) < 0.2
    >>> filled = inpaint(np.where(missing, 0, stripes), missing, n_atoms=4, n_iterations=3)
    >>> bool((filled == stripes)[~missing].all())
    True
    """
    if is_color(image):
        return by_channel(image, lambda one: inpaint(one, mask, model, **options))
    how = {name: options.pop(name) for name in ENGINE if name in options}
    config = RestoreConfig.from_options(options, ENGINE)
    pixels = check_pixels(image)
    check_size(pixels, model.basis.diameter if model else config.diameter)
    missing = find_missing(pixels, mask)
    known = pixels[~missing].astype(np.float64)
    kept = pixels.astype(np.float32) if pixels.dtype.kind == "f" else pixels.copy()
    scale = Scale(float(known.mean()), float(known.std()) or 1.0)
    filled = first_filling(scale.apply(np.where(missing, known[0], pixels)), missing)
    if missing.any() and known.min() < known.max():
        if model is None:
            coder = learn_coder(pick_patches(filled, config), config, SPARSITY, LEARNING, how)
        else:
            coder = coder_of(model, SPARSITY)
        filled = _rounds(filled, missing, coder, config.tile, how)
    return np.where(missing, scale.undo(filled, pixels.dtype), kept)


def _rounds(
    filled: Floats, missing: NDArray[np.bool_], coder: Coder, tile: int, how: dict[str, Any]
) -> Floats:
    """The image with its missing pixels filled, after all rounds."""
    places = [at for at in tile_places(filled.shape, tile) if missing[at].any()]
    n_pixels = sum(missing[at].size for at in places)
    with open_engine(**how) as engine:
        for i, level in enumerate(LEVELS):
            step = InpaintStep(coder, level)
            tiles = [with_margin(filled, at, step.margin) for at in places]
            stage = Stage(f"round {i + 1} of {len(LEVELS)}", n_pixels, i, len(LEVELS))
            results = engine.compute(part_tasks(inpaint_tile, tiles, step), stage)
            filled = filled.copy()
            for at, result in zip(places, results, strict=True):
                filled[at] = np.where(missing[at], result, filled[at])
    return filled


def inpaint_tile(pixels: Floats, step: InpaintStep) -> Floats:
    """The mean of the coded disks, from a tile with `step.margin` more pixels on each side."""
    coder = step.coder

    def code(coords: Floats) -> tuple[Floats, Floats]:
        codes = coder.encode(coords, step.tolerance * coder.basis.n_pixels)
        return coder.decode(codes), inverse_variance(codes)

    return average_disks((pixels,), coder.basis, code)


def first_filling(pixels: Floats, missing: NDArray[np.bool_]) -> Floats:
    """Missing pixels as means of the known ones nearby, as near as there are enough of them.

    (G ∗ v) / (G ∗ 1), sums over known pixels, with Gaussians G of growing width; zero, the mean
    of all, where even the widest finds none.
    """
    known = ~missing
    values = np.where(known, pixels, 0).astype(np.float64)
    filled, left = values.copy(), missing.copy()
    for width in WIDTHS:
        if not left.any():
            break
        weight = gaussian_filter(known.astype(np.float64), width)
        new = left & (weight > ENOUGH)
        filled[new] = gaussian_filter(values, width)[new] / weight[new]
        left &= ~new
    return filled.astype(np.float32)


def find_missing(pixels: NDArray[Any], mask: ArrayLike | None) -> NDArray[np.bool_]:
    """(y, x) True where a pixel is missing: in the mask, or NaN."""
    missing = np.isnan(pixels) if pixels.dtype.kind == "f" else np.zeros(pixels.shape, bool)
    if mask is not None:
        masked = np.asarray(mask)
        if masked.shape != pixels.shape:
            raise DscError(f"mask: found shape {masked.shape}, need {pixels.shape}, the image's")
        missing |= masked != 0
    if missing.all():
        raise DscError("mask: found all pixels missing, need some known ones")
    return missing
