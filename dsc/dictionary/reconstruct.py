"""An image from its coded patches: overlapping disks averaged, tile by tile, without seams."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsc.dictionary import kernels
from dsc.engine import open_engine
from dsc.errors import DscError
from dsc.images import Image
from dsc.patches import cut_grid
from dsc.pursuit import Coder
from dsc.show import Notice
from dsc.store import Store
from dsc.tiling import VALUES, Output, TileJob, Window, as_image, check_size, map_tiles

ROWS = 16  # rows of patches coded at a time
MEASURES = ("error", "value", "energy")  # maps whose sums say how good it is

Floats = NDArray[np.float32]


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
    _place: Floats | Store = field(repr=False)

    @property
    def image(self) -> Floats:
        """(y, x) grey values, read from the store if they are in one."""
        if isinstance(self._place, Store):
            return np.asarray(self._place.read(VALUES)[0])
        return self._place

    def line(self) -> str:
        """How good it is, in one line."""
        return f"{100 * self.share:.3g} % of the energy left, PSNR {self.psnr:.2f} dB"


@dataclass(frozen=True, eq=False)
class RebuildStep:
    """What all tiles share: the coder, whether means are kept apart, pixels between patches."""

    coder: Coder
    center: bool
    stride: int
    tolerance: float  # residual energy at which the coding of a disk stops


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
    source = as_image(image)
    _check(source, diameter, step.stride)
    coder = step.coder
    job = TileJob(
        "rebuild the image",
        rebuild_tile,
        step,
        margin=diameter - 1,
        channels=("rebuilt",),
        pixel_bytes=48 + 16 * ROWS,
        measure=measure_tile,
        identity=f"{coder.sha256} {coder.pursuit} {coder.sparsity} {coder.code_angles} "
        f"{step.center} {step.stride}",
    )
    with open_engine(**engine_options) as engine:
        done = map_tiles(source, job, Output(out, overwrite, resume), scheduler=engine)
        place = done.store if done.values is None else done.values[0]
        assert place is not None
        n_pixels = math.prod(source.shape)
        error, value, energy = (float(v) for v in done.sums[1:])
        about_mean = max(0.0, energy - value**2 / n_pixels)
        low, high = float(done.low[2]), float(done.high[2])
        peak = 1.0 if low >= 0 and high <= 1 else high - low
        mse = error / n_pixels
        psnr = 10 * math.log10(peak**2 / mse) if mse and peak else math.inf
        share = error / about_mean if about_mean else 0.0
        rebuilt = Rebuilt(mse, share, psnr, None if out is None else str(out), place)
        engine.report(Notice(rebuilt.line()))
    return rebuilt


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
    """(1, y, x) the mean of all coded disks over each pixel of a tile.

    Every pixel adds up its disks row by row, whatever the tile.
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
    total, cover = np.zeros(pixels.shape), np.zeros(pixels.shape)
    dy, dx = np.nonzero(basis.mask)
    n_columns = (right - left) // stride + 1
    for first in range(0, bottom - top + 1, ROWS * stride):
        last = min(first + (ROWS - 1) * stride, bottom - top)
        disks = cut_grid(pixels[first : last + side], side, stride)
        means = disks.mean(axis=1, keepdims=True) if step.center else np.float32(0)
        codes = coder.encode(basis.project(disks - means), step.tolerance)
        coded = basis.reconstruct(coder.decode(codes)) + means
        for row, y in enumerate(range(first, last + 1, stride)):
            some = coded[row * n_columns : (row + 1) * n_columns]
            kernels.add_disks(some, y, stride, dy, dx, total, cover)
    inner = np.s_[
        window.y.start - top : window.y.stop - top, window.x.start - left : window.x.stop - left
    ]
    return np.asarray((total[inner] / cover[inner])[None])


def measure_tile(window: Window, maps: NDArray[np.floating]) -> NDArray[np.float64]:
    """(3, y, x) squared error, value and energy of every pixel."""
    grey = window.inner().astype(np.float64)
    return np.stack([(grey - maps[0]) ** 2, grey, grey**2])
