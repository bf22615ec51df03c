"""`dsc.inpaint`: missing pixels filled by coding all overlapping disks, again and again.

Missing pixels start from a mean of the known ones nearby. Each round codes the disks of the filled
image and averages them, and what comes out at missing pixels is their next filling; known pixels
stay. The tolerance falls from round to round: first what is strong is continued into the holes,
then what is fine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsc.dictionary import Dictionary
from dsc.engine import Engine, open_engine
from dsc.errors import DscError
from dsc.images import Image
from dsc.pursuit import Coder
from dsc.restore.config import ENGINE, RestoreConfig
from dsc.restore.disks import average_disks, inverse_variance
from dsc.restore.filling import REACH, first_filling
from dsc.restore.learning import coder_identity, coder_of, learn_coder, pick_patches
from dsc.restore.pixels import (
    Floats,
    Mask,
    Part,
    Scale,
    alpha_of,
    check_size,
    color_of,
    open_subject,
    scan,
)
from dsc.restore.result import Restored, keep
from dsc.tiling import Output, TileJob, Window, map_tiles

# error per pixel at which coding stops, in units of the variance of the known pixels
LEVELS = tuple(float(level) for level in np.geomspace(0.3, 0.03, 12) ** 2)
LEARNING = 0.09**2  # the same while the dictionary is learned
SPARSITY = 10  # atoms per disk at most
TILE = 512  # of a large image: all rounds of a tile need many pixels around it
NOTHING = "found no missing pixel: say which ones with a mask (--mask)"
PIXEL_BYTES = 150  # that a tile takes in a round


@dataclass(frozen=True, eq=False)
class Filler:
    """How one color is filled."""

    scale: Scale  # whose unit is the standard deviation of the known pixels
    coder: Coder | None  # None if all known pixels are the same


@dataclass(frozen=True, eq=False)
class InpaintStep:
    """What all tiles share."""

    fillers: tuple[Filler, ...]  # (color,)
    dtype: np.dtype[Any]

    @property
    def margin(self) -> int:
        """Pixels around a tile that its result depends on, through all rounds."""
        sides = [f.coder.basis.diameter for f in self.fillers if f.coder is not None]
        return REACH + len(LEVELS) * max((side - 1 for side in sides), default=0)

    @property
    def identity(self) -> str:
        """What decides the values, as text."""
        return "; ".join(
            f"{'constant' if f.coder is None else coder_identity(f.coder)} {f.scale}"
            for f in self.fillers
        )


@dataclass(frozen=True, eq=False)
class Round:
    """What all tiles of one round share."""

    coder: Coder
    tolerance: float  # error per pixel at which coding stops

    def code(self, coords: Floats) -> tuple[Floats, Floats]:
        """Disks coded to the tolerance, weighted by the inverse of their noise."""
        codes = self.coder.encode(coords, self.tolerance * self.coder.basis.n_pixels)
        return self.coder.decode(codes), inverse_variance(codes)


def inpaint(
    image: Any,
    mask: Any = None,
    model: Dictionary | None = None,
    out: str | PathLike[str] | None = None,
    **options: Any,
) -> Any:
    """Fill the missing pixels of an image.

    Parameters
    ----------
    image
        (y, x) whole numbers or floats, or the path of an image, as in `denoise`; NaN is a missing
        pixel. Of (y, x, color) each color is taken by itself; alpha stays.
    mask
        (y, x) True, or not zero, where a pixel is missing; or the path of such an image.
    model
        A dictionary to use; by default one is learned from the image itself, once it is roughly
        filled.
    out
        Path or URL of a new OME-Zarr, as in `denoise`.
    **options
        As in `denoise`.

    Returns
    -------
    As in `denoise`. Known pixels keep their values.

    Examples
    --------
    >>> import numpy as np
    >>> stripes = np.tile([0, 0, 0, 200, 200, 200], (40, 7)).astype(np.uint8)
    >>> missing = np.random.default_rng(0).random(stripes.shape) < 0.2
    >>> filled = inpaint(np.where(missing, 0, stripes), missing, n_atoms=4, n_iterations=3)
    >>> bool((filled == stripes)[~missing].all())
    True
    """
    return inpaint_image(image, mask, model, Output.take(out, options), options).array


def inpaint_image(
    image: Any, mask: Any, model: Dictionary | None, out: Output, options: dict[str, Any]
) -> Restored:
    """The same, with the number of pixels that were missing."""
    how = {name: options.pop(name) for name in ENGINE if name in options}
    config = RestoreConfig.from_options(options, ENGINE)
    subject = open_subject(image, mask)
    check_size(subject.image, model.basis.diameter if model else config.diameter)
    out.check(subject.image)
    with open_engine(**how) as engine:
        found = scan(subject, engine)
        facts = {"n_missing": found.n_missing}
        if out.url is not None and not found.n_missing:
            raise DscError(f"{subject.image.name}: {NOTHING}")
        varies = (found.low < found.high) & bool(found.n_missing)
        places = subject.sample(config.seed, config.diameter)
        fillers = []
        for color in range(subject.n_colors):
            scale = _scale_of([known_of(subject.window(place), color) for place in places])
            coder = None if model is None or not varies[color] else coder_of(model, SPARSITY)
            if model is None and varies[color]:
                filled = subject.map_windows(fill_part, places, (color, scale), REACH, engine)
                squares = pick_patches(filled, config)
                coder = learn_coder(squares, config, SPARSITY, LEARNING, engine)
            fillers.append(Filler(scale, coder))
        step = InpaintStep(tuple(fillers), subject.dtype)
        if subject.is_small:
            whole = _fill_whole(subject.window(places[0]), step, engine)
            return keep(subject, whole, facts, out, engine)
        job = TileJob(
            "fill the missing pixels",
            inpaint_tile,
            step,
            margin=step.margin,
            channels=subject.channels,
            pixel_bytes=PIXEL_BYTES,
            identity=step.identity,
            tile=TILE,
            raw=True,
            checked=False,
            beside=subject.mask,
            dtype=subject.dtype.name,
        )
        return Restored.of(subject, map_tiles(subject.image, job, out, scheduler=engine), facts)


def known_of(window: Window, color: int) -> NDArray[Any]:
    """The known values of one color of a window."""
    pixels, missing = color_of(window, color)
    return pixels[~missing]


def fill_part(part: Part, step: tuple[int, Scale]) -> Floats:
    """(y, x) one color of a part, roughly filled, in units of a scale."""
    (color, scale), window = step, part.read()
    pixels, missing = color_of(window, color)
    return first_filling(scale.apply(pixels), missing)[window.place]


def _scale_of(parts: Sequence[NDArray[Any]]) -> Scale:
    """Zero at the mean of the known pixels, in units of their standard deviation."""
    known = np.concatenate(parts).astype(np.float64)
    if not known.size:  # nowhere in the windows of a large image
        return Scale(0.0, 1.0)
    return Scale(float(known.mean()), float(known.std()) or 1.0)


def _fill_whole(window: Window, step: InpaintStep, engine: Engine) -> NDArray[Any]:
    """(channel, y, x) a small image, round by round."""
    result = []
    for color, filler in enumerate(step.fillers):
        pixels, missing = color_of(window, color)
        filled = first_filling(filler.scale.apply(pixels), missing)
        if filler.coder is not None:
            holes = Image("mask", None, window.shape, missing)
            for number, level in enumerate(LEVELS, 1):
                job = TileJob(
                    f"round {number} of {len(LEVELS)}",
                    round_tile,
                    Round(filler.coder, level),
                    margin=filler.coder.basis.diameter - 1,
                    channels=("filled",),
                    pixel_bytes=PIXEL_BYTES,
                    raw=True,
                    checked=False,
                    beside=holes,
                )
                source = Image("image", None, window.shape, filled)
                values = map_tiles(source, job, scheduler=engine).values
                assert values is not None
                filled = values[0]
        result.append(_put(pixels, missing, filled, filler.scale, step.dtype))
    return np.stack([*result, *alpha_of(window, len(step.fillers))])


def round_tile(window: Window, step: Round) -> Floats:
    """(1, y, x) a tile with its missing pixels filled anew, known ones as they are."""
    assert window.beside is not None
    own, missing = window.inner(), window.beside[window.place]
    if not missing.any():
        return own[None]
    new = average_disks((window.mirrored(),), step.coder.basis, step.code)
    return np.where(missing, new, own)[None]


def inpaint_tile(window: Window, step: InpaintStep) -> NDArray[Any]:
    """(channel, y, x) a tile of a large image after all rounds."""
    result = []
    for color, filler in enumerate(step.fillers):
        pixels, missing = color_of(window, color)
        own, place = pixels[window.place], window.place
        if missing[place].any():
            filled = first_filling(filler.scale.apply(pixels), missing)
            if filler.coder is not None:
                fill_window(filled, missing, window, filler.coder)
            own = _put(own, missing[place], filled[place], filler.scale, step.dtype)
        result.append(own.astype(step.dtype))
    return np.stack([*result, *alpha_of(window, len(step.fillers))])


def fill_window(filled: Floats, missing: Mask, window: Window, coder: Coder) -> None:
    """All rounds, each where those after it need it for the tile; `filled` is changed.

    Every round is that of the whole image: it sees the image as the round before left it, mirrored
    where it ends.
    """
    edge = coder.basis.diameter - 1
    for number, level in enumerate(LEVELS, 1):
        beyond = (len(LEVELS) - number) * edge
        around = tuple(
            slice(max(0, part.start - beyond), part.stop + beyond) for part in window.place
        )
        rows, columns = (np.flatnonzero(missing[around].any(axis)) for axis in (1, 0))
        if not rows.size:
            continue
        box = tuple(
            slice(part.start + int(found[0]), part.start + int(found[-1]) + 1)
            for part, found in zip(around, (rows, columns), strict=True)
        )
        outer = [(part.start - edge, part.stop + edge) for part in box]
        cut = tuple(slice(max(0, a), b) for a, b in outer)
        ends = [(max(0, -a), max(0, b - n)) for (a, b), n in zip(outer, filled.shape, strict=True)]
        seen = np.pad(filled[cut], ends, mode="symmetric")
        step = Round(coder, level)
        new = average_disks((seen,), coder.basis, step.code)
        filled[box] = np.where(missing[box], new, filled[box])


def _put(
    pixels: NDArray[Any], missing: Mask, filled: Floats, scale: Scale, dtype: np.dtype[Any]
) -> NDArray[Any]:
    """The image with its missing pixels filled."""
    return np.where(missing, scale.undo(filled, dtype), pixels.astype(dtype))
