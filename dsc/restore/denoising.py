"""`dsc.denoise`: noise removed by coding all overlapping disks of an image, in two steps.

Pixels are in units of the noise. In the first step every disk is coded until what is left of it is
what noise leaves; the coded disks are averaged to a first estimate. In the second the atoms of
each disk are chosen in the first estimate, and the coefficients of the noisy disk are damped by
what the first estimate says of their share of signal (a Wiener filter). The mean of both is the
result.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.ndimage import convolve

from dsc.dictionary import Dictionary
from dsc.engine import open_engine, part_tasks
from dsc.errors import DscError
from dsc.pursuit import Coder
from dsc.restore import kernels
from dsc.restore.config import ENGINE, RestoreConfig
from dsc.restore.disks import average_disks, inverse_variance, rotated_atoms
from dsc.restore.learning import coder_of, learn_coder, pick_patches
from dsc.restore.pixels import Scale, by_channel, check_pixels, check_size, is_color
from dsc.restore.tiles import tile_places, with_margin
from dsc.show import Stage

NOISE = 1.04**2  # energy per pixel, in units of that of the noise, at which coding stops
GUIDE = 0.15**2  # the same for the first estimate
SPARSITY = 20  # atoms per disk at most; nearly all need fewer
# a Laplacian that smooth edges hardly reach (Immerkær); its norm is 6
LAPLACE = np.array([[1, -2, 1], [-2, 4, -2], [1, -2, 1]])
MAD = 0.6744897501960817  # median of |noise| of variance one

Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class DenoiseStep:
    """What all tiles share."""

    coder: Coder
    scale: Scale  # whose unit is the standard deviation of the noise

    @property
    def margin(self) -> int:
        """Pixels around a tile that its result depends on: two steps reach so far."""
        return 2 * (self.coder.basis.diameter - 1)

    @cached_property
    def rotated(self) -> Floats:
        """(atom, angle, coord) all atoms at all angles."""
        return rotated_atoms(self.coder)


def denoise(
    image: ArrayLike,
    sigma: float | None = None,
    model: Dictionary | None = None,
    **options: Any,
) -> NDArray[Any]:
    """Remove white noise from an image.

    Parameters
    ----------
    image
        (y, x) whole numbers or floats; of (y, x, color) each channel is taken by itself.
    sigma
        Standard deviation of the noise, in the units of the image; estimated if it is not given.
    model
        A dictionary to use; by default one is learned from the noisy image itself.
    **options
        The fields of `RestoreConfig`: diameter, n_atoms, n_iterations, basis, tile, seed. And how
        to run, as in `dsc.learn_many`: scheduler, n_workers, memory_limit, patience, tls,
        progress. The result has the same bits for all tiles and schedulers.

    Returns
    -------
    (y, x) of the same type, whole numbers rounded and clipped to its range; float32 for floats.

    Examples
    --------
    >>> import numpy as np
    >>> edge = np.repeat([[50.0, 200.0]], 32, axis=1) * np.ones((64, 1))
    >>> noisy = edge + np.random.default_rng(0).normal(0, 20, edge.shape)
    >>> clean = denoise(noisy, sigma=20, n_atoms=4, n_iterations=3)
    >>> bool(np.std(clean - edge) < 5)
    True
    """
    if is_color(image):
        return by_channel(image, lambda one: denoise(one, sigma, model, **options))
    how = {name: options.pop(name) for name in ENGINE if name in options}
    config = RestoreConfig.from_options(options, ENGINE)
    pixels = check_pixels(image)
    check_size(pixels, model.basis.diameter if model else config.diameter)
    if pixels.dtype.kind == "f" and np.isnan(pixels).any():
        raise DscError("image: found missing values (NaN), need numbers: fill them with `inpaint`")
    least, most = float(pixels.min()), float(pixels.max())
    unit = estimate_noise(pixels) if sigma is None else check_sigma(sigma, most - least)
    scale = Scale((least + most) / 2, unit or 1.0)
    if unit == 0 or least == most:  # nothing to remove
        return pixels.astype(np.float32) if pixels.dtype.kind == "f" else pixels.copy()
    if model is None:
        squares = scale.apply(pick_patches(pixels, config))
        step = DenoiseStep(learn_coder(squares, config, SPARSITY, NOISE, how), scale)
    else:
        step = DenoiseStep(coder_of(model, SPARSITY), scale)
    places = tile_places(pixels.shape, config.tile)
    tiles = [with_margin(pixels, place, step.margin) for place in places]
    with open_engine(**how) as engine:
        results = engine.compute(
            part_tasks(denoise_tile, tiles, step), Stage("remove the noise", pixels.size)
        )
    clean = np.empty(pixels.shape, results[0].dtype)
    for place, result in zip(places, results, strict=True):
        clean[place] = result
    removed = pixels.astype(np.float64) - clean
    too_much = float(removed.std()) / unit
    if too_much > 1:  # more than the noise: the part beyond it was image, and stays
        kept = scale.apply(pixels - removed / too_much)
        clean = scale.undo(kept, pixels.dtype)
    return clean


def denoise_tile(pixels: NDArray[Any], step: DenoiseStep) -> NDArray[Any]:
    """A tile without its noise, from its pixels with `step.margin` more on each side."""
    noisy = step.scale.apply(pixels)
    basis = step.coder.basis
    edge = basis.diameter - 1
    first = average_disks((noisy,), basis, partial(_code, step.coder))
    inner = (slice(edge, -edge),) * 2
    second = average_disks((noisy[inner], first), basis, partial(_filter, step))
    both = np.asarray((first[inner] + second) / 2, np.float32)
    return step.scale.undo(both, pixels.dtype)


def _code(coder: Coder, noisy: Floats) -> tuple[Floats, Floats]:
    """The first step: disks coded until noise is left, weighted by the inverse of their noise."""
    codes = coder.encode(noisy, NOISE * coder.basis.n_pixels)
    return coder.decode(codes), inverse_variance(codes)


def _filter(step: DenoiseStep, noisy: Floats, guide: Floats) -> tuple[Floats, Floats]:
    """The second step: disks filtered in the span of the atoms that code the first estimate."""
    codes = step.coder.encode(guide, GUIDE * step.coder.basis.n_pixels)
    restored = np.empty_like(noisy)
    degrees = np.empty(len(noisy), np.float32)
    kernels.filter_patches(noisy, guide, codes.atom, codes.angle, step.rotated, restored, degrees)
    return restored, np.asarray(1 / (1 + degrees), np.float32)


def estimate_noise(pixels: NDArray[Any]) -> float:
    """Standard deviation of white noise: the median of |Laplacian| / (6 · 0.6745).

    Examples
    --------
    >>> import numpy as np
    >>> noise = np.random.default_rng(0).normal(0, 25, (128, 128))
    >>> bool(abs(estimate_noise(noise) - 25) < 1)
    True
    """
    inner = np.abs(convolve(pixels.astype(np.float64), LAPLACE)[1:-1, 1:-1])
    found = float(np.median(inner))
    if found == 0 and inner.any():
        raise DscError("sigma: half of the image or more is flat, so no noise is seen: give sigma")
    return found / (6 * MAD)


def check_sigma(sigma: float, span: float) -> float:
    """The level of noise, refused if no image with such values has it."""
    level = float(sigma) if isinstance(sigma, Real) else np.nan
    if not 0 <= level < np.inf:
        raise DscError(f"sigma: found {sigma!r}, need a number ≥ 0, or None to estimate it")
    if 0 < span < level:
        raise DscError(
            f"sigma: found {level:g}, need at most {span:g}, the range of the image's values: "
            "sigma is in the units of the image"
        )
    return level
