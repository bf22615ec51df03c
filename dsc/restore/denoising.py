"""`dsc.denoise`: noise removed by coding all overlapping disks of an image, in two steps.

Pixels are in units of the noise. In the first step every disk is coded until what is left of it is
what noise leaves; the coded disks are averaged to a first estimate. Its coarse structure is that of
the halved image, treated alike by the same atoms: there a disk spans twice as much, and structure
stands out from the noise. In the second step the atoms of each disk are chosen in the first
estimate, and the coefficients of the noisy disk are damped by what the first estimate says of their
share of signal (a Wiener filter). The mean of both is the result. Missing pixels (NaN) are roughly
filled for the disks around them, and stay missing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from numbers import Real
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import convolve

from dsc.dictionary import Dictionary, as_dictionary
from dsc.engine import Engine, open_engine
from dsc.errors import DscError
from dsc.pursuit import Coder
from dsc.restore import kernels
from dsc.restore.config import ENGINE, TOGETHER, RestoreConfig
from dsc.restore.disks import average_disks, inverse_variance, rotated_atoms
from dsc.restore.filling import REACH
from dsc.restore.learning import coder_identity, coder_of, groups_of, learn_coder, pick_patches
from dsc.restore.pixels import (
    Found,
    Group,
    Part,
    Place,
    Scale,
    Subject,
    as_it_is,
    check_size,
    color_of,
    open_subject,
    scan,
)
from dsc.restore.result import Restored, keep
from dsc.restore.scales import LOST, correct, halve
from dsc.show import Notice
from dsc.tiling import PICKED, Output, Pick, TileJob, Window, map_tiles

NAME = "remove the noise"
NOISE = 1.04**2  # energy per pixel, in units of that of the noise, at which coding stops
GUIDE = 0.15**2  # the same for the first estimate
SPARSITY = 20  # atoms per disk at most; nearly all need fewer
CHECKED = 32  # windows of a large image in which it is seen how much is removed
PIXEL_BYTES = 300  # that a tile takes while it is coded, for each color that is coded with others
# a Laplacian that smooth edges hardly reach (Immerkær); its norm is 6
LAPLACE = np.array([[1, -2, 1], [-2, 4, -2], [1, -2, 1]])
MAD = 0.6744897501960817  # median of |noise| of variance one

Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Cleaner:
    """How colors that are coded together are denoised."""

    coder: Coder
    group: Group  # whose units are the standard deviations of the noise
    noisy: tuple[bool, ...]  # (channel,) whether anything is removed of a color
    # (channel,) standard deviation of what is removed, in units of the noise, if larger
    too_much: tuple[float, ...]

    @cached_property
    def rotated(self) -> Floats:
        """(atom, angle, coord) all atoms at all angles."""
        return rotated_atoms(self.coder)

    def keep_image(self, channel: int, pixels: NDArray[Any], clean: NDArray[Any]) -> NDArray[Any]:
        """What is removed of a color, scaled to the noise: what is beyond it was image."""
        scale, too_much = self.group.scales[channel], self.too_much[channel]
        if not too_much > 1:
            return clean
        removed = pixels.astype(np.float64) - clean
        return scale.undo(scale.apply(pixels - removed / too_much), clean.dtype)

    def removing(self, removed: NDArray[np.float64]) -> Cleaner:
        """The same once it is known how much is removed of all colors of the image."""
        units = zip(self.group.colors, self.group.scales, strict=True)
        return replace(self, too_much=tuple(float(removed[c]) / s.unit for c, s in units))


@dataclass(frozen=True, eq=False)
class DenoiseStep:
    """What all tiles share."""

    cleaners: tuple[Cleaner, ...]  # of colors of which something is to be removed
    dtype: np.dtype[Any]
    n_missing: int  # values that are NaN
    n_colors: int  # of the image; alpha is none

    @property
    def margin(self) -> int:
        """Pixels around a tile that its result depends on."""
        reach = max(map(edge_of, self.cleaners), default=0)
        return reach + REACH * (self.n_missing > 0)

    @property
    def identity(self) -> str:
        """What decides the values, as text."""
        return "; ".join(
            f"{coder_identity(c.coder)} {c.group} {c.noisy} {c.too_much}" for c in self.cleaners
        )


def edge_of(cleaner: Cleaner) -> int:
    """Pixels around a tile that are cleaned with it: an even number.

    The second step needs `edge` pixels of the guide, which loses some on each side, one more where
    half a square is left over, and is made of coarse disks, twice as large.
    """
    edge = cleaner.coder.basis.diameter - 1
    least = 3 * edge + LOST + 1
    return least + least % 2


def denoise(
    image: Any,
    sigma: float | None = None,
    model: Dictionary | str | PathLike[str] | None = None,
    out: str | PathLike[str] | None = None,
    **options: Any,
) -> Any:
    """Remove white noise from an image.

    Parameters
    ----------
    image
        (y, x) whole numbers or floats, or the path of an image, which is read by window if it is a
        Zarr array or an OME-Zarr. Colors of (y, x, color) are coded together; each by itself with
        `colors="each"`, which is better if they have little in common, or by a model of one
        channel; alpha stays. NaN is a missing pixel, and stays one.
    sigma
        Standard deviation of the noise, in the units of the image; estimated if it is not given.
    model
        A dictionary to use, or the path of a run or a model; by default one is learned from the
        noisy image itself. An image that has a path is read as those were that the model was
        learned from (channel, level).
    out
        Path or URL of a new OME-Zarr (channel, y, x), written tile by tile; None keeps the result
        in memory.
    **options
        The fields of `RestoreConfig`: diameter, n_atoms, n_iterations, basis, colors, seed. With
        `out`,
        overwrite: whether a finished store that is there is replaced; resume: whether the tiles of
        an unfinished one are kept. And how to run, as in `dsc.learn_many`: scheduler, n_workers,
        memory_limit, patience, tls, progress. The result has the same bits for all of these.
        Of an image that has a path, what to read: channel ("all", or numbers or names with commas
        between, which are taken together), level of a pyramid, page (which image of a stack), and
        missing_as_fill. With `channel`, an array (y, x, channel) may have any number of them.

    Colors that are coded together are divided by their noise, each by its own, and the atoms of a
    model are scaled alike, so that it is used as it is meant in whatever units it was learned.

    Returns
    -------
    (y, x) of the same type, whole numbers rounded and clipped to its range; float32 for floats.
    With `out`, an array of xarray that is read from there when it is asked for: (channel, y, x).

    Examples
    --------
    >>> import numpy as np
    >>> edge = np.repeat([[50.0, 200.0]], 32, axis=1) * np.ones((64, 1))
    >>> noisy = edge + np.random.default_rng(0).normal(0, 20, edge.shape)
    >>> clean = denoise(noisy, sigma=20, n_atoms=4, n_iterations=3)
    >>> bool(np.std(clean - edge) < 5)
    True
    """
    return denoise_image(image, sigma, model, Output.take(out, options), options).array


def denoise_image(
    image: Any,
    sigma: float | None,
    model: Dictionary | str | PathLike[str] | None,
    out: Output,
    options: dict[str, Any],
) -> Restored:
    """The same, with what is known of the noise and of what was removed."""
    how = {name: options.pop(name) for name in ENGINE if name in options}
    model, pick = None if model is None else as_dictionary(model), Pick.take(options)
    config = RestoreConfig.from_options(options, (*ENGINE, *PICKED))
    subject = open_subject(image, None, model, pick)
    check_size(subject.image, model.basis.diameter if model else config.diameter)
    out.check(subject.image)
    with open_engine(**how) as engine:
        found = scan(subject, engine)
        if found.n_missing:
            text = f"{found.n_missing:,} pixels are missing (NaN) and stay so: `inpaint` fills them"
            engine.report(Notice(f"{subject.image.name}: {text}"))
        groups = groups_of(subject.image, subject.n_colors, model, config.colors or TOGETHER)
        level = None if sigma is None else check_sigma(sigma, (found.high - found.low).max())
        places = subject.sample(config.seed, config.diameter)
        windows = [subject.window(place) for place in places]
        levels = (
            [level] * subject.n_colors
            if level is not None
            else [
                estimate_noise(*(color_of(window, color)[0] for window in windows))
                for color in range(subject.n_colors)
            ]
        )
        cleaners = []
        for colors in groups:
            noisy = tuple(bool(levels[c] and found.low[c] < found.high[c]) for c in colors)
            if not any(noisy):
                continue
            group = scaled_group(colors, levels, found)
            units = [scale.unit for scale in group.scales]
            if model is None:
                filled = [group.fill(*group.pixels_of(window)) for window in windows]
                squares = pick_patches(filled, config)
                coder = learn_coder(squares, config, SPARSITY, NOISE, engine)
            else:
                coder = coder_of(model, SPARSITY, units)
            cleaners.append(Cleaner(coder, group, noisy, (1.0,) * len(colors)))
        step = DenoiseStep(tuple(cleaners), subject.dtype, found.n_nan, subject.n_colors)
        del windows
        if subject.is_small:
            return _denoise_whole(subject, step, levels, out, engine)
        return _denoise_tiles(subject, step, places[:CHECKED], levels, out, engine)


def scaled_group(colors: tuple[int, ...], levels: list[float], found: Found) -> Group:
    """Colors in units of their noise; one without noise, in those of the noise of the others."""
    some = [levels[c] ** 2 for c in colors if levels[c]]
    mean = float(np.sqrt(np.mean(some)))
    middle = (found.low + found.high) / 2
    return Group(colors, tuple(Scale(float(middle[c]), levels[c] or mean) for c in colors))


def _job(subject: Subject, step: DenoiseStep) -> TileJob:
    return TileJob(
        NAME,
        denoise_tile,
        step,
        margin=step.margin,
        channels=subject.channels,
        pixel_bytes=PIXEL_BYTES * max((len(c.noisy) for c in step.cleaners), default=1),
        measure=partial(measure_removed, n_colors=step.n_colors),
        identity=step.identity,
        raw=True,
        checked=False,
        dtype=subject.dtype.name,
    )


def _denoise_whole(
    subject: Subject, step: DenoiseStep, levels: list[float], out: Output, engine: Engine
) -> Restored:
    """A small image: what is removed of all of it is seen before anything is written."""
    found = map_tiles(subject.image, _job(subject, step), scheduler=engine).values
    assert found is not None
    whole = subject.window(subject.sample(0, 1)[0])
    pixels = [color_of(whole, color)[0] for color in range(subject.n_colors)]
    differing = [
        (own[~np.isnan(own)].astype(np.float64) - clean[~np.isnan(own)]).std()
        for own, clean in zip(pixels, found, strict=False)
    ]
    for cleaner in step.cleaners:
        known = cleaner.removing(np.array(differing))
        for channel, color in enumerate(cleaner.group.colors):
            found[color] = known.keep_image(channel, pixels[color], found[color])
    each = found[: subject.n_colors].astype(np.float64) - np.stack(pixels)
    values = [own[~np.isnan(own)].astype(np.float64) for own in pixels]
    energy = float(sum(own.var() * own.size for own in values))
    facts = {
        "share": share_of(float(np.nansum(each**2)), energy),
        "removed": float(np.std(each[~np.isnan(each)])),
        "sigma": levels,
    }
    return keep(subject, found, facts, out, engine, NAME)


def _denoise_tiles(
    subject: Subject,
    step: DenoiseStep,
    places: list[Place],
    levels: list[float],
    out: Output,
    engine: Engine,
) -> Restored:
    """A large image: what is removed is seen in some windows, and then tile by tile."""
    sums = subject.map_windows(removed_sums, places, step, step.margin, engine)
    number, value, energy = np.sum(sums, axis=0)  # (color,)
    number = np.maximum(1, number)
    removed = np.sqrt(np.maximum(0, energy / number - (value / number) ** 2))
    step = replace(step, cleaners=tuple(c.removing(removed) for c in step.cleaners))
    done = map_tiles(subject.image, _job(subject, step), out, scheduler=engine)
    total, square, *of_colors = done.sums[len(subject.channels) :].tolist()
    known, value, energy = np.reshape(of_colors, (3, -1))  # (color,)
    n_values = known.sum()
    facts = {
        "share": share_of(square, float((energy - value**2 / np.maximum(1, known)).sum())),
        "removed": float(np.sqrt(max(0.0, square / n_values - (total / n_values) ** 2))),
        "sigma": levels,
    }
    return Restored.of(subject, done, facts)


def share_of(removed: float, energy: float) -> float:
    """The share of the energy of an image, each color around its mean, that is removed."""
    return removed / energy if energy > 0 else 0.0


def removed_sums(part: Part, step: DenoiseStep) -> NDArray[np.float64]:
    """(3, color) number, sum and energy of what is removed in a window."""
    window = part.read()
    clean = denoise_tile(window, step)
    removed = removed_of(window, clean, step.n_colors)
    number = (~np.isnan(clean[: len(removed)])).sum((1, 2))
    return np.stack([number, removed.sum((1, 2)), (removed**2).sum((1, 2))])


def removed_of(window: Window, maps: NDArray[Any], n_colors: int) -> NDArray[np.float64]:
    """(color, y, x) what is removed from a tile; nothing of missing pixels."""
    colors = slice(n_colors)
    noisy = np.moveaxis(np.atleast_3d(window.inner())[:, :, colors], 2, 0)
    removed = noisy.astype(np.float64) - maps[colors]
    return np.where(np.isnan(removed), 0, removed)


def denoise_tile(window: Window, step: DenoiseStep) -> NDArray[Any]:
    """(channel, y, x) a tile without its noise."""
    clean = as_it_is(window, step.dtype)
    for cleaner in step.cleaners:
        group = cleaner.group
        pixels, missing = group.pixels_of(window)
        own, gone = pixels[window.place], missing[window.place]
        beyond = window.margin - edge_of(cleaner)
        padded = replace(window, pixels=group.fill(pixels, missing)).mirrored()
        inner = tuple(slice(beyond, size - beyond) for size in padded.shape[:2])
        both = group.undo(clean_disks(padded[inner], cleaner), step.dtype)
        for channel, color in enumerate(group.colors):
            if cleaner.noisy[channel]:
                less = cleaner.keep_image(channel, own[..., channel], both[..., channel])
                clean[color] = np.where(gone[..., channel], own[..., channel], less)
    return clean


def clean_disks(noisy: Floats, cleaner: Cleaner) -> Floats:
    """(y, x, channel) the mean of both steps, in units of the noise, from a tile and its margin.

    Its first row and column are even ones of the image: those of squares of 2 × 2 pixels.
    """
    basis, margin = cleaner.coder.basis, edge_of(cleaner)
    edge = basis.diameter - 1
    around = margin - edge  # what the second step does not need
    height, width = (size - 2 * around for size in noisy.shape[:2])
    code = partial(_code, cleaner.coder)
    first = average_disks((noisy[edge:-edge, edge:-edge],), basis, code)
    coarse = average_disks((halve(noisy),), basis, code)
    spare = around - 2 * edge - LOST
    guide = correct(first, coarse)[spare : spare + height, spare : spare + width]
    inner = noisy[around:-around, around:-around]
    second = average_disks((inner, guide), basis, partial(_filter, cleaner))
    return np.asarray((guide[edge:-edge, edge:-edge] + second) / 2, np.float32)


def measure_removed(window: Window, maps: NDArray[Any], n_colors: int) -> NDArray[np.float64]:
    """(2 + 3 · color, y, x) what is removed of every pixel and its energy, over all colors.

    Then for each color whether a pixel is known, its value, and its energy.
    """
    removed = removed_of(window, maps, n_colors)
    colors = np.atleast_3d(window.inner())[:, :, : len(removed)].astype(np.float64)
    known = ~np.isnan(np.moveaxis(colors, 2, 0))
    values = np.where(known, np.moveaxis(colors, 2, 0), 0)
    return np.stack([removed.sum(0), (removed**2).sum(0), *known, *values, *values**2])


def _code(coder: Coder, noisy: Floats) -> tuple[Floats, Floats]:
    """The first step: disks coded until noise is left, weighted by the inverse of their noise."""
    codes = coder.encode(noisy, NOISE * coder.basis.n_pixels)
    return coder.decode(codes), inverse_variance(codes, coder.basis.n_channels)


def _filter(cleaner: Cleaner, noisy: Floats, guide: Floats) -> tuple[Floats, Floats]:
    """The second step: disks filtered in the span of the atoms that code the first estimate."""
    codes = cleaner.coder.encode(guide, GUIDE * cleaner.coder.basis.n_pixels)
    restored = np.empty_like(noisy)
    degrees = np.empty(len(noisy), np.float32)
    chosen = (codes.atom, codes.angle, cleaner.rotated)
    kernels.filter_patches(noisy, guide, *chosen, restored, degrees)
    n_channels = cleaner.coder.basis.n_channels
    return restored, np.asarray(1 / (n_channels + degrees), np.float32)


def estimate_noise(*parts: NDArray[Any]) -> float:
    """Standard deviation of white noise: the median of |Laplacian| / (6 · 0.6745).

    Examples
    --------
    >>> import numpy as np
    >>> noise = np.random.default_rng(0).normal(0, 25, (128, 128))
    >>> bool(abs(estimate_noise(noise) - 25) < 1)
    True
    """
    inner = [np.abs(convolve(p.astype(np.float64), LAPLACE)[1:-1, 1:-1]).ravel() for p in parts]
    every = np.concatenate(inner)
    every = every[~np.isnan(every)]
    if not every.size:
        raise DscError("sigma: no pixel is known with all that surround it: give sigma")
    found = float(np.median(every))
    if found == 0 and every.any():
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
