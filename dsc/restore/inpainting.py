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
from scipy.ndimage import binary_dilation

from dsc.dictionary import Dictionary, as_dictionary
from dsc.engine import Engine, open_engine
from dsc.errors import DscError
from dsc.images import Image
from dsc.pursuit import Coder
from dsc.restore.config import EACH, ENGINE, RestoreConfig
from dsc.restore.disks import average_disks, inverse_variance
from dsc.restore.filling import REACH
from dsc.restore.learning import coder_identity, coder_of, groups_of, learn_coder, pick_patches
from dsc.restore.pixels import (
    Floats,
    Group,
    Mask,
    Part,
    Scale,
    as_it_is,
    check_size,
    color_of,
    open_subject,
    scan,
)
from dsc.restore.result import Restored, keep
from dsc.show import Notice
from dsc.tiling import PICKED, Output, Pick, Tiled, TileJob, Window, map_tiles

# error per pixel at which coding stops, in units of the variance of the known pixels
LEVELS = tuple(float(level) for level in np.geomspace(0.3, 0.03, 12) ** 2)
LEARNING = 0.09**2  # the same while the dictionary is learned
NAME = "fill the missing pixels"
SPARSITY = 10  # atoms per disk at most
TILE = 512  # of a large image: all rounds of a tile need many pixels around it
NOTHING = "found no missing pixel: say which ones with a mask (--mask)"
PIXEL_BYTES = 150  # that a tile takes in a round


@dataclass(frozen=True, eq=False)
class Filler:
    """How colors that are coded together are filled."""

    group: Group  # whose units are the standard deviations of the known pixels
    varies: tuple[bool, ...]  # (channel,) whether known pixels differ; else holes are filled alike
    coder: Coder | None  # None if nothing varies


@dataclass(frozen=True, eq=False)
class InpaintStep:
    """What all tiles share."""

    fillers: tuple[Filler, ...]
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
            f"{'constant' if f.coder is None else coder_identity(f.coder)} {f.group} {f.varies}"
            for f in self.fillers
        )


@dataclass(frozen=True, eq=False)
class Round:
    """What all tiles of one round share."""

    coder: Coder
    tolerance: float  # error per pixel at which coding stops
    is_last: bool = False  # in which is seen what the codes leave of known pixels

    def code(self, coords: Floats) -> tuple[Floats, Floats]:
        """Disks coded to the tolerance, weighted by the inverse of their noise."""
        codes = self.coder.encode(coords, self.tolerance * self.coder.basis.n_pixels)
        return self.coder.decode(codes), inverse_variance(codes, self.coder.basis.n_channels)


def inpaint(
    image: Any,
    mask: Any = None,
    model: Dictionary | str | PathLike[str] | None = None,
    out: str | PathLike[str] | None = None,
    **options: Any,
) -> Any:
    """Fill the missing pixels of an image.

    Parameters
    ----------
    image
        (y, x) whole numbers or floats, or the path of an image, as in `denoise`; NaN is a missing
        pixel. Of (y, x, color) each color is taken by itself; all together, each in units of
        what it varies by, with `colors="together"` or by a model of as many channels; alpha stays.
    mask
        (y, x) True, or not zero, where a pixel is missing; or the path of such an image.
    model
        A dictionary to use, as in `denoise`; by default one is learned from the image itself, once
        it is roughly filled.
    out
        Path or URL of a new OME-Zarr, as in `denoise`.
    **options
        As in `denoise`.

    Returns
    -------
    As in `denoise`. Known pixels keep their values. An image without a missing pixel is refused if
    there is no mask, or with `out`.

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
    image: Any,
    mask: Any,
    model: Dictionary | str | PathLike[str] | None,
    out: Output,
    options: dict[str, Any],
) -> Restored:
    """The same, with the number of pixels that were missing."""
    how = {name: options.pop(name) for name in ENGINE if name in options}
    model, pick = None if model is None else as_dictionary(model), Pick.take(options)
    config = RestoreConfig.from_options(options, (*ENGINE, *PICKED))
    subject = open_subject(image, mask, model, pick)
    check_size(subject.image, model.basis.diameter if model else config.diameter)
    out.check(subject.image)
    with open_engine(**how) as engine:
        found = scan(subject, engine)
        facts = {"n_missing": found.n_missing}
        if not found.n_missing and (mask is None or out.url is not None):
            raise DscError(f"{subject.image.name}: {NOTHING}")
        if not found.n_missing:
            engine.report(Notice(f"{subject.image.name}: {NOTHING}"))
        varies = (found.low < found.high) & bool(found.n_missing)
        places = subject.sample(config.seed, config.diameter)
        fillers = []
        for colors in groups_of(subject.image, subject.n_colors, model, config.colors or EACH):
            known = [[known_of(subject.window(place), c) for place in places] for c in colors]
            group = Group(colors, tuple(map(_scale_of, known)))
            differ = tuple(bool(varies[c]) for c in colors)
            coder = None
            if model is not None and any(differ):
                coder = coder_of(model, SPARSITY, [scale.unit for scale in group.scales])
            elif any(differ):
                filled = subject.map_windows(fill_part, places, group, REACH, engine)
                squares = pick_patches(filled, config)
                coder = learn_coder(squares, config, SPARSITY, LEARNING, engine)
            fillers.append(Filler(group, differ, coder))
        step = InpaintStep(tuple(fillers), subject.dtype)
        if subject.is_small:
            whole, share = _fill_whole(subject.window(places[0]), step, engine)
            return keep(subject, whole, {"share": share, **facts}, out, engine, NAME)
        job = TileJob(
            NAME,
            inpaint_tile,
            step,
            margin=step.margin,
            channels=subject.channels,
            pixel_bytes=PIXEL_BYTES * max(len(f.varies) for f in fillers),
            n_measures=0 if out.url is None else 2,
            identity=step.identity,
            tile=TILE,
            raw=True,
            checked=False,
            beside=subject.mask,
            dtype=subject.dtype.name,
        )
        done = map_tiles(subject.image, job, out, scheduler=engine)
        return Restored.of(subject, done, {"share": _share_of([done]), **facts})


def known_of(window: Window, color: int) -> NDArray[Any]:
    """The known values of one color of a window."""
    pixels, missing = color_of(window, color)
    return pixels[~missing]


def fill_part(part: Part, group: Group) -> Floats:
    """(y, x, channel) a part, roughly filled, in units of a group."""
    window = part.read()
    return group.fill(*group.pixels_of(window))[window.place]


def _scale_of(parts: Sequence[NDArray[Any]]) -> Scale:
    """Zero at the mean of the known pixels, in units of their standard deviation."""
    known = np.concatenate(parts).astype(np.float64)
    if not known.size:  # nowhere in the windows of a large image
        return Scale(0.0, 1.0)
    return Scale(float(known.mean()), float(known.std()) or 1.0)


def beside_holes(missing: Mask) -> Mask:
    """(y, x, channel) known pixels with a missing one among the eight around them."""
    return np.asarray(binary_dilation(missing, np.ones((3, 3, 1))) & ~missing)


def _share_of(parts: Sequence[Tiled]) -> float:
    """The share of the energy of known pixels beside holes that codes leave; 0 of nothing."""
    left, energy = np.sum([done.sums[-2:] for done in parts], axis=0).tolist() if parts else (0, 0)
    return left / energy if energy else 0.0


def _fill_whole(window: Window, step: InpaintStep, engine: Engine) -> tuple[NDArray[Any], float]:
    """(channel, y, x) a small image, round by round, and the share of energy left."""
    result = as_it_is(window, step.dtype)
    last = []
    for filler in step.fillers:
        pixels, missing = filler.group.pixels_of(window)
        filled = roughly = filler.group.fill(pixels, missing)
        if filler.coder is not None:
            holes = Image("mask", None, window.shape, missing)
            for number, level in enumerate(LEVELS, 1):
                job = TileJob(
                    f"round {number} of {len(LEVELS)}",
                    round_tile,
                    Round(filler.coder, level, number == len(LEVELS)),
                    margin=filler.coder.basis.diameter - 1,
                    channels=tuple(f"filled {color}" for color in filler.group.colors),
                    pixel_bytes=PIXEL_BYTES * len(filler.group.colors),
                    raw=True,
                    checked=False,
                    beside=holes,
                )
                source = Image("image", None, window.shape, filled)
                done = map_tiles(source, job, scheduler=engine)
                assert done.values is not None
                filled = np.moveaxis(done.values, 0, 2)
            last.append(done)
        _put(result, missing, np.where(filler.varies, filled, roughly), filler.group)
    return result, _share_of(last)


def round_tile(window: Window, step: Round) -> Floats | tuple[Floats, NDArray[np.float64]]:
    """(channel, y, x) a tile with its missing pixels filled anew, known ones as they are.

    In the last round with the energy left beside holes: see `energy_left`.
    """
    assert window.beside is not None
    own, missing = window.inner(), window.beside[window.place]
    near = beside_holes(window.beside)[window.place] & step.is_last
    filled, seen = own, np.zeros((2, *own.shape[:2]))
    if (missing | near).any():
        new = average_disks((window.mirrored(),), step.coder.basis, step.code)
        filled, seen = np.where(missing, new, own), energy_left(new, own, near)
    maps = np.moveaxis(filled, 2, 0)
    return (maps, seen) if step.is_last else maps


def energy_left(coded: Floats, known: Floats, near: Mask) -> NDArray[np.float64]:
    """(2, y, x) energy that the codes leave of known pixels beside holes, and what they have.

    Over all channels; zero is the mean of the known pixels.
    """
    parts = [np.where(near, one, 0).astype(np.float64) for one in (known - coded, known)]
    return np.stack([(one**2).sum(2) for one in parts])


def inpaint_tile(window: Window, step: InpaintStep) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """(channel, y, x) a tile of a large image after all rounds, and what is left beside holes."""
    result, place = as_it_is(window, step.dtype), window.place
    seen = np.zeros((2, *result.shape[1:]))
    for filler in step.fillers:
        pixels, missing = filler.group.pixels_of(window)
        near = beside_holes(missing)
        if (missing | near)[place].any():
            filled = roughly = filler.group.fill(pixels, missing)
            if filler.coder is not None:
                filled = roughly.copy()
                seen += fill_window(filled, missing, near, window, filler.coder)
            filled = np.where(filler.varies, filled, roughly)
            _put(result, missing[place], filled[place], filler.group)
    return result, seen


def fill_window(
    filled: Floats, missing: Mask, near: Mask, window: Window, coder: Coder
) -> NDArray[np.float64]:
    """All rounds, each where those after it need it for the tile; `filled` is changed.

    Every round is that of the whole image: it sees the image as the round before left it, mirrored
    where it ends. What is returned is that of `energy_left` after the last one, (2, y, x) of the
    tile.
    """
    edge = coder.basis.diameter - 1
    seen = np.zeros((2, *filled.shape[:2]))
    for number, level in enumerate(LEVELS, 1):
        step = Round(coder, level, number == len(LEVELS))
        beyond = (len(LEVELS) - number) * edge
        around = tuple(
            slice(max(0, part.start - beyond), part.stop + beyond) for part in window.place
        )
        wanted = missing | near if step.is_last else missing
        holes = np.asarray(wanted[around].any(axis=2))
        rows, columns = (np.flatnonzero(holes.any(axis)) for axis in (1, 0))
        if not rows.size:
            continue
        box = tuple(
            slice(part.start + int(found[0]), part.start + int(found[-1]) + 1)
            for part, found in zip(around, (rows, columns), strict=True)
        )
        outer = [(part.start - edge, part.stop + edge) for part in box]
        cut = tuple(slice(max(0, a), b) for a, b in outer)
        size = filled.shape[:2]
        ends = [(max(0, -a), max(0, b - n)) for (a, b), n in zip(outer, size, strict=True)]
        padded = np.pad(filled[cut], [*ends, (0, 0)], mode="symmetric")
        new = average_disks((padded,), coder.basis, step.code)
        if step.is_last:
            seen[:, *box] = energy_left(new, filled[box], near[box])
        filled[box] = np.where(missing[box], new, filled[box])
    return seen[:, *window.place]


def _put(result: NDArray[Any], missing: Mask, filled: Floats, group: Group) -> None:
    """Fill the missing pixels of an image (channel, y, x)."""
    values = group.undo(filled, result.dtype)
    for channel, color in enumerate(group.colors):
        holes = missing[..., channel]
        result[color][holes] = values[..., channel][holes]
