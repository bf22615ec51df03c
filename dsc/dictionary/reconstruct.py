"""An image from its coded patches: overlapping disks averaged, tile by tile, without seams."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import partial
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsc.dictionary import kernels
from dsc.engine import open_engine
from dsc.errors import DscError
from dsc.images import Image, Joined, path_of, to_dtype, to_grey
from dsc.patches import cut_grid
from dsc.pursuit import Coder
from dsc.show import Notice, percent
from dsc.store import Store
from dsc.tiling import (
    VALUES,
    Output,
    Pick,
    TileJob,
    Window,
    alpha_of,
    as_image,
    channel_names,
    check_size,
    has_alpha,
    image_for,
    map_tiles,
)

ROWS = 16  # rows of patches coded at a time
MEASURES = ("error", "value", "energy")  # maps whose sums say how good it is

AS_THEY_ARE = ((0.0, 1.0),)  # the ranges of values in units of the image

Floats = NDArray[np.float32]
Ranges = tuple[tuple[float, float], ...]  # of each channel, one for all, or none: by type


@dataclass(frozen=True, eq=False)
class Rebuilt:
    """An image rebuilt from its coded patches, and how much of it is there.

    Attributes
    ----------
    mse
        Mean squared error per pixel.
    share
        Share of the energy left: Σ (image − rebuilt)² / Σ (image − mean)²; 0 of nothing.
    psnr
        Peak signal-to-noise ratio in dB. The peak is 1 if the image is within [0, 1], else its
        largest less its least value.
    url
        Where it was written, as an OME-Zarr; None if it is in memory.
    """

    mse: float
    share: float
    psnr: float
    url: str | None
    _place: Floats | Store = field(repr=False)  # (channel, y, x)
    _ranges: Ranges = field(default=(), repr=False)  # what 0 and 1 are of values in memory

    @property
    def image(self) -> NDArray[Any]:
        """(y, x) or (y, x, channel).

        In memory float32: of an array in its units, of a file in [0, 1] for whole numbers; where
        the dictionary has ranges, in their units. With `out` what is written there: pixels of the
        type of the image.
        """
        if isinstance(self._place, Store):
            return self._assemble(self._place.read(VALUES))
        return self.pixels(np.dtype(np.float32))

    def pixels(self, dtype: np.dtype[Any]) -> NDArray[Any]:
        """The image as pixels of a type, in its units: whole numbers rounded and clipped."""
        if isinstance(self._place, Store):
            return to_dtype(self.image, dtype, AS_THEY_ARE)
        return to_dtype(self._assemble(self._place), dtype, self._ranges)

    def _assemble(self, maps: NDArray[Any]) -> NDArray[Any]:
        return np.ascontiguousarray(maps[0] if len(maps) == 1 else np.moveaxis(maps, 0, 2))

    def line(self) -> str:
        """How good it is, in one line."""
        return f"{percent(self.share)} of the energy left, PSNR {self.psnr:.2f} dB"


@dataclass(frozen=True, eq=False)
class RebuildStep:
    """What all tiles share."""

    coder: Coder
    center: bool  # whether the means of disks are kept apart; and their norms
    unit: bool
    stride: int  # pixels between patches
    tolerance: float  # residual energy at which the coding of a disk stops
    reading: dict[str, Any]  # of the dictionary
    dtype: str = "float32"  # of what is written to a store
    ranges: Ranges = ()
    n_colors: int = 1  # that are rebuilt; alpha stays


def rebuild(
    image: Any,
    step: RebuildStep,
    out: str | PathLike[str] | None = None,
    overwrite: bool = False,
    resume: bool = False,
    **engine_options: Any,
) -> Rebuilt:
    """Rebuild an image; see `Dictionary.rebuild`."""
    diameter = step.coder.basis.diameter
    coder, n_channels = step.coder, step.coder.basis.n_channels
    pick = Pick.take(engine_options)
    source = image_to_rebuild(image, step.reading, n_channels, pick)
    by_color = n_channels == 1 and not step.reading and source.n_colors > 0
    colors = channel_names(source) if by_color else ()
    n_colors = len(colors) - has_alpha(source) if by_color else n_channels
    _check(source, diameter, step.stride)
    names = channel_names(source) if n_channels > 1 else ("rebuilt",)
    dtype, ranges = _pixels_of(image, source)
    if (alpha := alpha_of(source)) is not None:
        names, ranges = (*names, "alpha"), (*ranges, *AS_THEY_ARE * (len(ranges) > 1))
    step = replace(step, dtype=dtype.name, ranges=ranges, n_colors=n_colors)
    job = TileJob(
        "rebuild the image",
        rebuild_colors if colors else rebuild_together,
        step,
        margin=diameter - 1,
        channels=colors or names,
        pixel_bytes=(56 + 16 * ROWS) * n_channels,
        measure=partial(measure_colors, n_colors=n_colors) if colors else measure_tile,
        n_measures=0 if out is None else len(MEASURES) * n_colors,
        finish=None if out is None else finish_tile,
        identity=f"{coder.sha256} {coder.pursuit} {coder.sparsity} {coder.code_angles} "
        f"{step.center} {step.unit} {step.stride} {step.tolerance} {dtype.name}",
        raw=bool(colors),
        missing=True,
        beside=alpha,
        dtype="float32" if out is None else dtype.name,
    )
    with open_engine(**engine_options) as engine:
        done = map_tiles(source, job, Output(out, overwrite, resume), scheduler=engine)
        place = done.store if done.values is None else done.values
        assert place is not None
        n_pixels = math.prod(source.shape) - done.n_missing
        measures = slice(len(job.channels), None)
        error, value, energy = done.sums[measures].reshape(-1, len(MEASURES)).T  # (color,)
        about_mean = max(0.0, float(np.sum(energy - value**2 / n_pixels)))
        low, high = float(done.low[measures][1::3].min()), float(done.high[measures][1::3].max())
        peak = 1.0 if low >= 0 and high <= 1 else high - low
        mse = float(error.mean()) / n_pixels
        psnr = 10 * math.log10(peak**2 / mse) if mse and peak else math.inf
        share = float(error.sum()) / about_mean if about_mean else 0.0
        rebuilt = Rebuilt(mse, share, psnr, None if out is None else str(out), place, ranges)
        engine.report(Notice(rebuilt.line()))
    return rebuilt


def image_to_rebuild(image: Any, reading: dict[str, Any], n_channels: int, pick: Pick) -> Image:
    """An image as a dictionary takes it; by one of one channel each color by itself."""
    image = path_of(image) or image
    if n_channels > 1 or reading:
        return image_for(image, reading, n_channels, pick)
    if not isinstance(image, Image | str | PathLike):
        with np.errstate(over="ignore"):
            image = np.asarray(image).astype(np.float32)  # as it is
    return as_image(image, True, pick)


def _pixels_of(image: Any, source: Image) -> tuple[np.dtype[Any], Ranges]:
    """The type of the pixels that are written, and how values become them."""
    is_array = not isinstance(image, Image | str | PathLike)
    found = np.asarray(image).dtype if is_array else source.dtype
    planes = source.source.parts if isinstance(source.source, Joined) else (source,)
    ranges = tuple(one.reading.range for one in planes if one.reading.range is not None)
    if is_array and not ranges:
        ranges = AS_THEY_ARE
    return np.dtype(np.float32) if found.kind == "f" else found, ranges


def finish_tile(maps: Floats, step: RebuildStep) -> NDArray[Any]:
    """(channel, y, x) a rebuilt tile as pixels of the image."""
    pixels = to_dtype(np.moveaxis(maps, 0, 2), np.dtype(step.dtype), step.ranges)
    return np.moveaxis(pixels, 2, 0)


def _check(image: Image, diameter: int, stride: int) -> None:
    """Refuse what cannot be covered by patches."""
    check_size(image, diameter)
    if not 1 <= stride <= diameter // 2:
        raise DscError(f"stride: found {stride}, need 1 to {diameter // 2}: no pixel left out")


def grid_span(tile: slice, size: int, diameter: int, stride: int) -> tuple[int, int]:
    """First and last top of the patches that share a pixel with a tile, along one axis.

    Tops are k · stride − edge with edge = ⌊diameter / 2⌋ + stride, within the image with `edge`
    mirrored pixels on both sides.

    Examples
    --------
    >>> grid_span(slice(0, 64), 200, diameter=11, stride=1), grid_span(slice(64, 128), 200, 11, 2)
    ((-6, 63), (55, 127))
    """
    edge = diameter // 2 + stride
    first = -((edge + tile.start - diameter + 1) // -stride)  # the least k, rounded up
    last = min(tile.stop - 1 + edge, size + 2 * edge - diameter) // stride
    return max(0, first) * stride - edge, last * stride - edge


def rebuild_tile(window: Window, step: RebuildStep) -> NDArray[np.float64]:
    """(channel, y, x) the mean of all coded disks over each pixel of a tile.

    Every pixel adds up its disks row by row, whatever the tile. A disk with a missing pixel (NaN)
    is left out; a pixel without disks is NaN.
    """
    coder, stride = step.coder, step.stride
    basis = coder.basis
    side = basis.diameter
    (top, bottom), (left, right) = (
        grid_span(part, size, side, stride)
        for part, size in zip((window.y, window.x), window.shape, strict=True)
    )
    # from coordinates of the image to those of the window
    y0, x0 = window.y.start - window.margin, window.x.start - window.margin
    pixels = window.mirrored()[top - y0 : bottom - y0 + side, left - x0 : right - x0 + side]
    shape = (basis.n_channels, *pixels.shape[:2])
    total, cover = np.zeros(shape), np.zeros(shape)
    dy, dx = np.nonzero(basis.mask)
    n_columns = (right - left) // stride + 1
    for first in range(0, bottom - top + 1, ROWS * stride):
        last = min(first + (ROWS - 1) * stride, bottom - top)
        disks = cut_grid(pixels[first : last + side], side, stride)
        known = np.asarray(np.isfinite(disks).all(axis=1))
        disks[~known] = 0
        each = disks.reshape(len(disks), basis.n_channels, -1)
        means = each.mean(axis=2, keepdims=True) if step.center else np.float32(0)
        each -= means
        norms = _norms(disks) if step.unit else np.float32(1)
        codes = coder.encode(basis.project(disks / norms), step.tolerance)
        coded = (basis.reconstruct(coder.decode(codes)) * norms).reshape(each.shape) + means
        for channel in range(basis.n_channels):
            own = np.ascontiguousarray(coded[:, channel])
            for row, y in enumerate(range(first, last + 1, stride)):
                some = slice(row * n_columns, (row + 1) * n_columns)
                here = (total[channel], cover[channel])
                kernels.add_disks(own[some], known[some], y, stride, dy, dx, *here)
    inner = np.s_[
        :, window.y.start - top : window.y.stop - top, window.x.start - left : window.x.stop - left
    ]
    with np.errstate(invalid="ignore"):  # NaN where no known disk is
        return np.asarray(total[inner] / cover[inner])


def _norms(disks: Floats) -> Floats:
    """(disk, 1) norms; one where there is nothing."""
    norms = np.sqrt((disks.astype(np.float64) ** 2).sum(axis=1, keepdims=True))
    return np.where(norms > 0, norms, 1).astype(np.float32)


def rebuild_together(window: Window, step: RebuildStep) -> NDArray[np.float64]:
    """(channel, y, x) a rebuilt tile, with the alpha that is beside it."""
    maps = rebuild_tile(window, step)
    if window.beside is None:
        return maps
    alpha = window.beside[window.place]
    values = alpha if step.ranges else to_grey(alpha)
    return np.concatenate([maps, values[None]])


def rebuild_colors(window: Window, step: RebuildStep) -> NDArray[np.float64]:
    """(channel, y, x) the same of each color; alpha stays."""
    missing = np.isnan(window.pixels).any(2)  # in one color: all are
    channels = [
        np.where(missing, np.float32(np.nan), to_grey(window.pixels[:, :, c]))
        for c in range(window.pixels.shape[2])
    ]
    windows = [replace(window, pixels=pixels) for pixels in channels]
    colors = [rebuild_tile(one, step)[0] for one in windows[: step.n_colors]]
    return np.stack([*colors, *(one.inner() for one in windows[len(colors) :])])


def measure_colors(
    window: Window, maps: NDArray[np.floating], n_colors: int
) -> NDArray[np.float64]:
    """(3 · color, y, x) what `measure_tile` gives, of each color."""
    parts = []
    for color in range(n_colors):
        own = replace(window, pixels=to_grey(window.pixels[:, :, color]))
        parts.append(measure_tile(own, maps[color : color + 1]))
    return np.concatenate(parts)


def measure_tile(window: Window, maps: NDArray[np.floating]) -> NDArray[np.float64]:
    """(3 · channel, y, x) squared error, value and energy of every pixel, channel by channel."""
    values = window.inner().astype(np.float64)
    parts = []
    for number, rebuilt in enumerate(maps[: len(maps) - (window.beside is not None)]):
        own = values if values.ndim == 2 else values[:, :, number]
        own = np.where(np.isnan(rebuilt), np.nan, own)
        parts += [(own - rebuilt) ** 2, own, own**2]
    return np.stack(parts)
