"""Orientation maps: which way structures run at each pixel, and where two of them cross."""

from __future__ import annotations

from dataclasses import dataclass, replace
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dsc.dictionary import Dictionary, as_dictionary
from dsc.maps.arrays import maps_array
from dsc.maps.coding import (
    Around,
    HowToCode,
    check_rotates,
    code_disks,
    code_identity,
    energy_left,
    how_to_code,
    share_of,
)
from dsc.maps.directions import Directions, atom_directions
from dsc.maps.pooling import Pool, check_sigma
from dsc.tiling import Output, Pick, TileJob, Window, check_size, image_for, map_tiles

if TYPE_CHECKING:
    import xarray

BINS = 60  # of the orientations of a neighbourhood, over 180 degrees
ROUNDS = 4  # in which the atoms of a disk settle
NEAR = 3  # bins on each side of a peak that belong to it
WIDE = 10  # of a peak that is alone
CROSSING = 0.3  # of the energy: what a second orientation has where two structures cross
LEAST = 0.15  # of the energy of the first orientation: what a second one has at least

Doubles = NDArray[np.float64]
Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class OrientationStep:
    """What all tiles share."""

    how: HowToCode
    directions: Directions
    pool: Pool
    crossing: bool  # whether a second orientation is looked for


def orientation_step(model: Dictionary, sigma: float | None) -> OrientationStep:
    """How the orientations of an image are found with a dictionary."""
    basis = model.basis
    check_rotates(model)
    coder = replace(model.coder, refine=True)
    return OrientationStep(
        how_to_code(model, coder, ROUNDS),
        atom_directions(coder.atoms, basis),
        Pool(basis.diameter, check_sigma(sigma, basis.diameter)),
        coder.sparsity > 1,
    )


def orientation_tile(window: Window, step: OrientationStep) -> tuple[Doubles, Doubles]:
    """(map, y, x) the maps of a tile (see `orientation`), and (2, y, x) energies of its disks."""
    pool, tile = step.pool, (window.y, window.x)
    tops = (pool.tops(window.y, window.shape[0]), pool.tops(window.x, window.shape[1]))
    around = code_disks(window, tops, step.how)
    weight, angle = code_directions(around, step.directions, step.how.coder.code_angles)
    known = pool.known(around, window)
    seen = energy_left(around, window, pool.diameter)
    energy = pool.mean(code_energy(around, step.directions).sum(2), tops, tile)
    mean = pool.mean(double_angles(weight, angle), tops, tile)
    coherence = _divide(np.hypot(mean[..., 0], mean[..., 1]), energy)
    if not step.crossing:
        angle_of_all = np.degrees(np.arctan2(mean[..., 1], mean[..., 0])) / 2
        return _where_known([angle_of_all, coherence, energy / known], known), seen
    first, second, energy2 = two_peaks(pool.mean(histogram(weight, angle), tops, tile))
    second[energy2 == 0] = np.nan
    return _where_known([first, coherence, energy / known, second, energy2 / known], known), seen


def _where_known(maps: list[Doubles], known: Doubles) -> Doubles:
    """(map, y, x) NaN where nothing is known."""
    return np.where(np.isnan(known), np.nan, np.stack(maps))


def code_energy(around: Around, directions: Directions) -> Doubles:
    """(y, x, slot) energy of the codes without the means of their atoms."""
    return np.where(around.atom >= 0, around.coef**2 * directions.energy[around.atom], 0)


def code_directions(
    around: Around, directions: Directions, n_angles: int
) -> tuple[Doubles, Doubles]:
    """(y, x, slot) weight and orientation (radians) of every code.

    The weight is coefficient² times the atom's coherence, the orientation that of the atom plus
    the angle by which it is rotated.
    """
    theta = 2 * np.pi / n_angles * around.angle
    weight = code_energy(around, directions) * directions.coherence[around.atom]
    return weight, directions.angle[around.atom] + theta


def double_angles(weight: Doubles, angle: Doubles) -> Doubles:
    """(y, x, 2) Σ w cos 2φ and Σ w sin 2φ over slots, in which φ and φ + 180° are the same."""
    return np.stack([(weight * f(2 * angle)).sum(2) for f in (np.cos, np.sin)], 2)


def histogram(weight: Doubles, angle: Doubles) -> Floats:
    """(y, x, bin) weights by orientation, each shared by the two nearest bins.

    Bin b is at 180° b / BINS. Shares fall linearly, so that a mean over bins is the mean angle.
    """
    place = np.mod(angle * (BINS / np.pi), BINS)
    low = np.floor(place)
    share = place - low
    height, width = weight.shape[:2]
    bins = np.zeros((height, width, BINS), np.float32)
    y, x = np.ogrid[:height, :width]
    for slot in range(weight.shape[2]):
        first = low[..., slot].astype(np.intp) % BINS
        bins[y, x, first] += weight[..., slot] * (1 - share[..., slot])
        bins[y, x, (first + 1) % BINS] += weight[..., slot] * share[..., slot]
    return bins


def two_peaks(bins: Floats) -> tuple[Doubles, Doubles, Doubles]:
    """Angles (degrees) of the two highest peaks of (y, x, bin), and the weight of the second.

    Peaks are those of the bins smoothed over their neighbours, more than `NEAR` bins apart; the
    angle of one is the mean over the bins near it, or over a wider part if it is alone (curved
    structures). The second weighs 0 where there is none, or one of less than `LEAST` of the first.
    """
    smooth = np.zeros_like(bins)
    for o in range(-NEAR, NEAR + 1):
        smooth += (NEAR + 1 - abs(o)) * np.roll(bins, -o, -1)
    first = np.argmax(smooth, -1)[..., None]
    distance = np.abs(np.mod(np.arange(BINS) - first + BINS // 2, BINS) - BINS // 2)
    top = (smooth > np.roll(smooth, 1, -1)) & (smooth >= np.roll(smooth, -1, -1))
    smooth[~top | (distance <= NEAR)] = 0
    second = np.argmax(smooth, -1)[..., None]
    is_peak = np.take_along_axis(smooth, second, -1)[..., 0] > 0
    angle, weight = _around(bins, first, NEAR)
    angle2, weight2 = _around(bins, second, NEAR)
    crossing = is_peak & (weight2 > LEAST * weight)
    alone, _ = _around(bins, first, WIDE)
    return np.where(crossing, angle, alone), angle2, np.where(crossing, weight2, 0)


def _around(bins: Floats, top: NDArray[np.intp], near: int) -> tuple[Doubles, Doubles]:
    """Mean angle (degrees) and weight of the bins up to `near` from one."""
    weight, moment = np.zeros(top.shape[:-1]), np.zeros(top.shape[:-1])
    for o in range(-near, near + 1):
        value = np.take_along_axis(bins, (top + o) % BINS, -1)[..., 0]
        weight += value
        moment += o * value
    return fold((top[..., 0] + _divide(moment, weight)) * (180 / BINS)), weight


def fold(degrees: Doubles) -> Doubles:
    """The same orientation in [−90, 90)."""
    return np.asarray(np.mod(degrees + 90, 180) - 90)


def _divide(a: Doubles, b: Doubles) -> Doubles:
    return np.divide(a, b, out=np.zeros(a.shape), where=b > 0)


def orientation(
    image: Any,
    model: Dictionary | str | PathLike[str],
    out: str | PathLike[str] | None = None,
    sigma: float | None = None,
    **options: Any,
) -> xarray.Dataset:
    """Which way structures run at each pixel of an image.

    The image is coded around every pixel, with refined angles. An atom's own direction comes from
    its gradients; a code says the atom's direction plus its angle, with the weight of its energy
    times the atom's coherence. A pixel pools the codes of the disks around it.

    Parameters
    ----------
    image
        (y, x) grey values, or (y, x, channel) for a dictionary of several channels, taken as they
        are; color becomes grey for a dictionary of one. Or the path of an image, which is read as
        those were that the dictionary comes from.
    model
        A dictionary of structures like those in the image, or the path of a run or a model. With
        more than one atom per patch, a second orientation is found where structures cross.
    out
        Path or URL of a new OME-Zarr, written tile by tile; None keeps the maps in memory.
    sigma
        Width of the pool in pixels, the standard deviation of its Gaussian; by default a quarter
        of the diameter.
    **options
        overwrite: whether finished maps that are at `out` are replaced; resume: whether the tiles
        of unfinished ones are kept. scheduler, n_workers, memory_limit, patience, tls and progress,
        as in `dsc.learn_many`. Of an image that has a path, what to read, if not as the dictionary
        was learned: channel, level, page (which image of a stack) and missing_as_fill.

    Returns
    -------
    Dataset with dims (y, x): `angle`, degrees in [−90, 90], counter-clockwise, 0 being along x;
    `coherence` from 0 (none, or all directions) to 1; `energy` of the codes (of a dictionary
    learned with `unit`, its share of the energy of a disk); with more than one atom per patch
    `angle2`, NaN where there is no second one, and `energy2`. On photographs a weak second one is
    found at many pixels; where two structures cross, `energy2 > 0.3 * energy`. NaN in the image is
    a missing pixel: disks with one do not count, and all maps are NaN there, and where no other
    disk is near. Its attribute `share` is the share of the energy of all disks that their codes
    leave.
    """
    model = as_dictionary(model)
    source = image_for(image, model.reading, model.n_channels, Pick.take(options))
    check_size(source, model.basis.diameter)
    step = orientation_step(model, sigma)
    names = ("angle", "coherence", "energy", "angle2", "energy2")
    channels = names if step.crossing else names[:3]
    coder = step.how.coder
    job = TileJob(
        "map the orientation",
        orientation_tile,
        step,
        margin=step.pool.margin,
        channels=channels,
        missing=True,
        n_measures=2,
        pixel_bytes=20 * BINS * step.crossing + 80 * coder.sparsity + 100,
        identity=f"{code_identity(step.how)} {sigma}",
    )
    done = map_tiles(source, job, Output.take(out, options), **options)
    maps = maps_array(done, channels)
    units = {"angle": "degrees", "angle2": "degrees"}
    return _dataset(
        {
            name: maps[number].assign_attrs(units=units.get(name, ""))
            for number, name in enumerate(channels)
        }
    ).assign_attrs(share=share_of(done))


def _dataset(maps: dict[str, Any]) -> xarray.Dataset:
    import xarray

    return xarray.Dataset({name: one.drop_vars("channel") for name, one in maps.items()})
