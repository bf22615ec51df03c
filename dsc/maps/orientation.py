"""Orientation maps: which way structures run at each pixel, and where two of them cross."""

from __future__ import annotations

from dataclasses import dataclass, replace
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dsc.dictionary import Dictionary
from dsc.errors import DscError
from dsc.maps.arrays import maps_array
from dsc.maps.coding import Around, code_disks
from dsc.maps.directions import Directions, atom_directions
from dsc.maps.pooling import Pool
from dsc.pursuit import Coder
from dsc.tiling import Output, TileJob, Window, as_image, check_size, map_tiles

if TYPE_CHECKING:
    import xarray

BINS = 36  # of the orientations of a neighbourhood, over 180 degrees
NEAR = 3  # bins on each side of a peak that belong to it
LEAST = 0.15  # of the energy of the first orientation: what a second one has at least

Doubles = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class OrientationStep:
    """What all tiles share."""

    coder: Coder
    center: bool
    directions: Directions
    pool: Pool
    crossing: bool  # whether a second orientation is looked for


def orientation_step(model: Dictionary, sigma: float | None) -> OrientationStep:
    """How the orientations of an image are found with a dictionary."""
    basis = model.basis
    if not basis.max_frequency:
        raise DscError(
            f"model: found one of the {basis.name} basis, need atoms that rotate: learn it with "
            "another basis"
        )
    width = basis.diameter / 4 if sigma is None else sigma
    if not (np.isfinite(width) and width > 0):
        raise DscError(f"sigma: found {sigma}, need pixels > 0")
    coder = replace(model.coder, refine=True)
    return OrientationStep(
        coder,
        bool(model.patches.get("center")),
        atom_directions(coder.atoms, basis),
        Pool(basis.diameter, float(width)),
        coder.sparsity > 1,
    )


def orientation_tile(window: Window, step: OrientationStep) -> Doubles:
    """(map, y, x) the maps of a tile; see `orientation`."""
    pool, tile = step.pool, (window.y, window.x)
    tops = (pool.tops(window.y, window.shape[0]), pool.tops(window.x, window.shape[1]))
    around = code_disks(window, tops, step.coder, step.center)
    weight, angle = code_directions(around, step)
    energy = pool.mean(code_energy(around, step.directions).sum(2), tops, tile)
    moment = np.stack([(weight * f(2 * angle)).sum(2) for f in (np.cos, np.sin)], 2)
    mean = pool.mean(moment, tops, tile)
    coherence = _divide(np.hypot(mean[..., 0], mean[..., 1]), energy)
    if not step.crossing:
        first = np.degrees(np.arctan2(mean[..., 1], mean[..., 0])) / 2
        return np.stack([first, coherence, energy])
    spread = pool.mean(histogram(weight, angle), tops, tile)
    first, amount, rest = take_peak(spread)
    second, amount2, _ = take_peak(rest)
    real = amount2 > LEAST * amount
    return np.stack(
        [first, coherence, energy, np.where(real, second, np.nan), np.where(real, amount2, 0)]
    )


def code_energy(around: Around, directions: Directions) -> Doubles:
    """(y, x, slot) energy of the codes without the means of their atoms."""
    return np.where(around.atom >= 0, around.coef**2 * directions.energy[around.atom], 0)


def code_directions(around: Around, step: OrientationStep) -> tuple[Doubles, Doubles]:
    """(y, x, slot) weight and orientation (radians) of every code.

    The weight is coefficient² times the atom's coherence, the orientation that of the atom plus
    the angle by which it is rotated.
    """
    coherence, own = step.directions.coherence, step.directions.angle
    theta = 2 * np.pi / step.coder.code_angles * around.angle
    weight = code_energy(around, step.directions) * coherence[around.atom]
    return weight, own[around.atom] + theta


def histogram(weight: Doubles, angle: Doubles) -> Doubles:
    """(y, x, bin) weights by orientation, each shared by the two nearest bins.

    Bin b is at 180° b / BINS. Shares fall linearly, so that a mean over bins is the mean angle.
    """
    place = np.mod(angle * (BINS / np.pi), BINS)
    low = np.floor(place)
    share = place - low
    bins = np.zeros((*weight.shape[:2], BINS))
    y, x = np.indices(weight.shape[:2], sparse=True)
    for slot in range(weight.shape[2]):
        first = low[..., slot].astype(np.intp) % BINS
        bins[y, x, first] += weight[..., slot] * (1 - share[..., slot])
        bins[y, x, (first + 1) % BINS] += weight[..., slot] * share[..., slot]
    return bins


def take_peak(bins: Doubles) -> tuple[Doubles, Doubles, Doubles]:
    """Angle (degrees) and weight of the highest peak of (…, bin), and what is left without it.

    The highest is that of the bins smoothed over their neighbours; its angle is the mean over the
    bins near it.
    """
    near = [(o, np.roll(bins, -o, -1)) for o in range(-NEAR, NEAR + 1)]
    smooth = sum((NEAR + 1 - abs(o)) * moved for o, moved in near)
    top = np.argmax(smooth, -1)[..., None]
    around = [(o, np.take_along_axis(moved, top, -1)[..., 0]) for o, moved in near]
    amount = sum(value for _, value in around)
    shift = _divide(sum(o * value for o, value in around), amount)
    angle = fold((top[..., 0] + shift) * (180 / BINS))
    distance = np.abs(np.mod(np.arange(BINS) - top + BINS / 2, BINS) - BINS / 2)
    return angle, amount, np.where(distance <= NEAR, 0, bins)


def fold(degrees: Doubles) -> Doubles:
    """The same orientation in [−90, 90)."""
    return np.mod(degrees + 90, 180) - 90


def _divide(a: Any, b: Any) -> Doubles:
    return np.divide(a, b, out=np.zeros(np.shape(a)), where=b > 0)


def orientation(
    image: Any,
    model: Dictionary,
    out: str | PathLike[str] | None = None,
    *,
    sigma: float | None = None,
    overwrite: bool = False,
    resume: bool = False,
    **engine_options: Any,
) -> xarray.Dataset:
    """Which way structures run at each pixel of an image.

    The image is coded around every pixel, with refined angles. An atom's own direction comes from
    its gradients; a code says the atom's direction plus its angle, with the weight of its energy
    times the atom's coherence. A pixel pools the codes of the disks around it.

    Parameters
    ----------
    image
        (y, x) grey values, taken as they are, or the path of an image.
    model
        A dictionary of structures like those in the image. With more than one atom per patch, a
        second orientation is found where structures cross.
    out
        Path or URL of a new OME-Zarr, written tile by tile; None keeps the maps in memory.
    sigma
        Width of the pool in pixels, the standard deviation of its Gaussian; by default a quarter
        of the diameter.
    overwrite, resume
        Whether finished maps that are at `out` are replaced; whether the tiles of unfinished ones
        are kept.
    **engine_options
        scheduler, n_workers, memory_limit, patience, tls and progress, as in `dsc.learn_many`.

    Returns
    -------
    Dataset with dims (y, x): `angle`, degrees in [−90, 90], counter-clockwise, 0 being along x;
    `coherence` from 0 (none, or all directions) to 1; `energy` of the codes; with more than one
    atom per patch `angle2`, NaN where there is no second one, and `energy2`.
    """
    source = as_image(image)
    check_size(source, model.basis.diameter)
    step = orientation_step(model, sigma)
    names = ("angle", "coherence", "energy", "angle2", "energy2")
    channels = names if step.crossing else names[:3]
    job = TileJob(
        "map the orientation",
        orientation_tile,
        step,
        margin=step.pool.margin,
        channels=channels,
        pixel_bytes=8 * (4 * BINS * step.crossing + 10 * step.coder.sparsity + 10),
        identity=f"{model.sha256} {step.coder.pursuit} {step.coder.sparsity} {step.center} {sigma}",
    )
    done = map_tiles(source, job, Output(out, overwrite, resume), **engine_options)
    maps = maps_array(done, channels)
    units = {"angle": "degrees", "angle2": "degrees"}
    return _dataset(
        {
            name: maps[number].assign_attrs(units=units.get(name, ""))
            for number, name in enumerate(channels)
        }
    )


def _dataset(maps: dict[str, Any]) -> xarray.Dataset:
    import xarray

    return xarray.Dataset({name: one.drop_vars("channel") for name, one in maps.items()})
