"""Feature maps: which atoms are at work around each pixel, whichever way they are rotated."""

from __future__ import annotations

import math
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dsc.dictionary import Dictionary, as_dictionary
from dsc.errors import unknown_choice
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
from dsc.maps.orientation import code_directions, double_angles
from dsc.maps.pooling import Pool, check_sigma
from dsc.tiling import Output, Pick, TileJob, Window, check_size, image_for, map_tiles

if TYPE_CHECKING:
    import xarray

KINDS = ("invariant", "covariant")
ANGLES = 4  # relative to the local orientation, over 180 degrees

Doubles = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class FeatureStep:
    """What all tiles share."""

    how: HowToCode
    pool: Pool
    directions: Directions | None  # None for invariant features

    @property
    def around(self) -> Pool:
        """The same weights over disks, for the orientation at each of them."""
        return Pool(1, self.pool.sigma)

    @property
    def margin(self) -> int:
        """Pixels around a tile that its values depend on."""
        beyond = 0 if self.directions is None else math.ceil(self.around.reach)
        return self.pool.margin + beyond


def feature_tile(window: Window, step: FeatureStep) -> tuple[NDArray[np.float32], Doubles]:
    """(channel, y, x) the features of a tile, atom by atom, and (2, y, x) energies of its disks."""
    pool, tile = step.pool, (window.y, window.x)
    tops = (pool.tops(window.y, window.shape[0]), pool.tops(window.x, window.shape[1]))
    if step.directions is None:
        found = code_disks(window, tops, step.how)
        shares = np.ones((*found.atom.shape, 1))
    else:
        found, shares = relative_codes(window, tops, step)
    known = pool.known(found, window)[..., None]
    maps = []
    for atom in range(len(step.how.coder.atoms)):
        values = atom_values(found, atom, shares, with_use=step.directions is None)
        means = pool.mean(values, tops, tile) / known
        maps.append(np.moveaxis(means, 2, 0).astype(np.float32))
    return np.concatenate(maps), energy_left(found, window, pool.diameter)


def atom_values(found: Around, atom: int, shares: Doubles, with_use: bool) -> Doubles:
    """(y, x, value) energy of an atom by share, Σ_k share_k a_k², and the number of its uses."""
    used = found.atom == atom
    energy = np.where(used, found.coef**2, 0)
    values = [(energy * shares[..., number]).sum(2) for number in range(shares.shape[3])]
    values += [used.sum(2).astype(np.float64)] * with_use
    return np.stack(values, 2)


def relative_codes(
    window: Window, tops: tuple[range, range], step: FeatureStep
) -> tuple[Around, Doubles]:
    """Codes of disks, and the shares (y, x, slot, bin) of their angles to the local orientation.

    The local orientation of a disk is ½ arg Σ w e^{2jφ} over the codes around it. Bin b is at
    180° b / ANGLES; an angle between two bins is shared by them, linearly.
    """
    assert step.directions is not None
    side, coder = step.how.coder.basis.diameter, step.how.coder
    y, x = (slice(one.start, one.stop) for one in tops)
    wide = tuple(
        step.around.tops(one, size - side + 1)
        for one, size in zip((y, x), window.shape, strict=True)
    )
    found = code_disks(window, (wide[0], wide[1]), step.how)
    weight, angle = code_directions(found, step.directions, coder.code_angles)
    mean = step.around.mean(double_angles(weight, angle), (wide[0], wide[1]), (y, x))
    local = np.arctan2(mean[..., 1], mean[..., 0]) / 2
    rows, columns = (
        slice(one.start - out.start, one.stop - out.start)
        for one, out in zip(tops, wide, strict=True)
    )
    own = found.within(rows, columns, tops)
    place = np.mod((angle[rows, columns] - local[..., None]) * (ANGLES / np.pi), ANGLES)
    bins = np.arange(ANGLES)
    away = np.abs(np.mod(place[..., None] - bins + ANGLES / 2, ANGLES) - ANGLES / 2)
    return own, np.maximum(0, 1 - away)


def features(
    image: Any,
    model: Dictionary | str | PathLike[str],
    kind: str = "invariant",
    out: str | PathLike[str] | None = None,
    sigma: float | None = None,
    **options: Any,
) -> xarray.DataArray:
    """Which atoms are at work around each pixel of an image, whichever way it is rotated.

    The image is coded around every pixel, and the codes of the disks around a pixel are pooled.
    The features of a rotated image are the rotated features: exactly, but for rounding, by quarter
    rotations; by other angles as well as the pixels of the rotated image are known.

    Parameters
    ----------
    image
        (y, x) grey values, or (y, x, channel) for a dictionary of several channels, taken as they
        are; color becomes grey for a dictionary of one. Or the path of an image, which is read as
        those were that the dictionary comes from.
    model
        A dictionary, or the path of a run or a model.
    kind
        "invariant": of each atom the energy (mean of coefficient²; of a dictionary learned with
        `unit`, its share of the energy of a disk) and the use (uses per disk), pooled over all
        angles. "covariant": of each atom the energy by its direction relative to
        the local orientation: along it (0°), across it (90°), and between (45°, 135°).
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
    (channel, y, x), channels named such as "atom 0 energy", with the mean over the whole image as
    the coordinate `image_mean` (channel), which the OME-Zarr has as an array, too. NaN in the image
    is a missing pixel: disks with one do not count, and the maps are NaN there, and where no other
    disk is near. The attribute `share` is the share of the energy of all disks that their codes
    leave.
    """
    if kind not in KINDS:
        raise unknown_choice("kind", kind, KINDS)
    model = as_dictionary(model)
    source = image_for(image, model.reading, model.n_channels, Pick.take(options))
    check_size(source, model.basis.diameter)
    check_rotates(model)
    how = how_to_code(model, model.coder)
    pool = Pool(model.basis.diameter, check_sigma(sigma, model.basis.diameter))
    directions = atom_directions(model.atoms, model.basis) if kind == "covariant" else None
    step = FeatureStep(how, pool, directions)
    channels = feature_names(len(model.atoms), kind)
    job = TileJob(
        f"map the {kind} features",
        feature_tile,
        step,
        margin=step.margin,
        channels=channels,
        missing=True,
        means=True,
        n_measures=2,
        pixel_bytes=4 * len(channels) + 8 * 16 * model.config.sparsity + 200,
        identity=f"{code_identity(how)} {kind} {sigma}",
    )
    done = map_tiles(source, job, Output.take(out, options), **options)
    maps = maps_array(done, channels)
    means = done.means[: len(channels)]
    return maps.assign_coords(image_mean=("channel", means)).assign_attrs(share=share_of(done))


def feature_names(n_atoms: int, kind: str) -> tuple[str, ...]:
    """Names of the channels.

    Examples
    --------
    >>> feature_names(2, "invariant")
    ('atom 0 energy', 'atom 0 use', 'atom 1 energy', 'atom 1 use')
    >>> feature_names(1, "covariant")[:2]
    ('atom 0 energy at 0°', 'atom 0 energy at 45°')
    """
    if kind == "invariant":
        each = ["energy", "use"]
    else:
        each = [f"energy at {180 * number // ANGLES}°" for number in range(ANGLES)]
    return tuple(f"atom {atom} {one}" for atom in range(n_atoms) for one in each)
