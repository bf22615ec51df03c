"""`SteerableBasis`: the coordinates in which a rotation is a product of 2 × 2 rotations."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dsc.basis import kernels
from dsc.basis.blocks import block_svd
from dsc.basis.rows import as_real, as_rows, check_values, row_chunks
from dsc.blas import one_blas_thread
from dsc.errors import DscError

RCOND = 1e-6  # singular values below this fraction of the largest count as zero

Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class SteerableBasis:
    """A basis Φ of functions on the disk whose coordinates rotate pair by pair.

    Coordinates are ordered by angular frequency, [t=0 | t=1 cos | t=1 sin | t=2 cos | …]: those
    of frequency 0 stay under a rotation by θ, a (cos, sin) pair of frequency t rotates by tθ.

    Attributes
    ----------
    name
        "disk", "bessel", "annular" or "pixels"; "low" is added to what `lowpass` returns.
    diameter
        Pixels across the disk.
    mask
        (y, x) True inside the disk.
    frequency
        (coord,) the angular frequency of each coordinate.
    matrix
        (pixel, coord) the sampled basis functions of one channel, float64.
    level
        (coord,) the fraction of the basis's cut-off at which each coordinate comes in. In the disk
        basis it is √(the share of coordinates up to it and its partner, in the order of what they
        explain of a random field with the spectrum of images), 0 for the constant.
    n_channels
        Channels of a patch, which rotate together. Patches have the pixels of one channel after
        those of the other; coordinates are in the order of frequencies, and among those of one
        kind (cosines, or sines, of a frequency) in that of the channels.
    """

    name: str
    diameter: int
    mask: NDArray[np.bool_] = field(repr=False)
    frequency: NDArray[np.int64] = field(repr=False)
    matrix: NDArray[np.float64] = field(repr=False)
    level: NDArray[np.float64] = field(repr=False)
    n_channels: int = 1

    def __getstate__(self) -> dict[str, Any]:
        """What travels to another process: the dual too, since its SVD's bits may differ there."""
        names = ("name", "diameter", "mask", "frequency", "matrix", "level", "n_channels", "dual")
        return {name: getattr(self, name) for name in names}

    def __post_init__(self) -> None:
        for array in (self.mask, self.frequency, self.matrix, self.level):
            array.setflags(write=False)

    def array(self, name: str) -> NDArray[Any]:
        """An array as it is stored: of all channels, those of `matrix` and `dual` side by side."""
        found: NDArray[Any] = getattr(self, name)
        if self.n_channels == 1 or name not in ("matrix", "dual"):
            return found
        return np.kron(np.eye(self.n_channels), found)[:, self._order]

    @staticmethod
    def restore(dual: NDArray[np.float64], **fields: Any) -> SteerableBasis:
        """A basis from its stored arrays, with the dual that was computed when it was built.

        Refuses arrays that no basis has: what uses one trusts it.
        """
        basis = SteerableBasis(**fields)
        n_pixels, n_rows = int(basis.mask.sum()), len(basis.matrix)
        if n_rows > n_pixels and n_rows % n_pixels == 0:
            return _restore_channels(basis, dual, n_rows // n_pixels)
        wanted = (n_pixels, len(basis.frequency))
        shapes = {"matrix": basis.matrix.shape, "dual": dual.shape}
        problems = [
            f"basis_{name}: found shape {shape}, need {wanted}"
            for name, shape in shapes.items()
            if shape != wanted
        ]
        values = {"matrix": basis.matrix, "dual": dual, "level": basis.level}
        problems += [
            f"basis_{name}: found values that are not finite, need finite ones"
            for name, array in values.items()
            if not np.isfinite(array).all()
        ]
        frequency, counts = np.unique(basis.frequency, return_counts=True)
        paired = (counts[frequency > 0] % 2 == 0).all()  # a cosine and a sine
        rising = (np.diff(basis.frequency) >= 0).all() and len(frequency)
        if not (rising and paired and frequency[0] >= 0 and frequency[-1] <= basis.mask.size):
            problems.append("basis_frequency: found other frequencies than a basis has")
        if problems:
            raise DscError("; ".join(problems))
        basis.__dict__["dual"] = dual
        return basis

    @property
    def n_pixels(self) -> int:
        """Pixels in the disk, of all channels."""
        return int(self.matrix.shape[0]) * self.n_channels

    @property
    def n_coords(self) -> int:
        """Coordinates of a patch."""
        return int(self.matrix.shape[1]) * self.n_channels

    @property
    def max_frequency(self) -> int:
        """The largest angular frequency T."""
        return int(self.frequency.max())

    def for_channels(self, n_channels: int) -> SteerableBasis:
        """The same basis for patches of several channels, which rotate together.

        Examples
        --------
        >>> from dsc import disk_basis
        >>> disk_basis(11).for_channels(3).n_coords
        285
        """
        if n_channels == self.n_channels:
            return self
        one = self._one_channel()
        order = _channel_order(one.frequency, n_channels)
        many = replace(
            one,
            frequency=np.tile(one.frequency, n_channels)[order],
            level=np.tile(one.level, n_channels)[order],
            n_channels=n_channels,
        )
        many.__dict__["dual"] = self.dual
        return many

    def _one_channel(self) -> SteerableBasis:
        """That of a single channel."""
        n_coords = self.matrix.shape[1]
        first = np.flatnonzero(self._order < n_coords)  # the coordinates of the first channel
        return replace(self, frequency=self.frequency[first], level=self.level[first], n_channels=1)

    @cached_property
    def _order(self) -> NDArray[np.int64]:
        """(coord,) the place of each coordinate if channels came one after the other."""
        n_values = np.bincount(self.frequency) // self.n_channels
        return _channel_order(np.repeat(np.arange(len(n_values)), n_values), self.n_channels)

    @property
    def channel(self) -> NDArray[np.int64]:
        """(coord,) the channel of each coordinate."""
        return self._order // (self.n_coords // self.n_channels)

    @cached_property
    def start(self) -> NDArray[np.int64]:
        """(T + 2,) where the coordinates of each frequency begin, and where the last ones end."""
        return np.searchsorted(self.frequency, np.arange(self.max_frequency + 2))

    @cached_property
    def dual(self) -> NDArray[np.float64]:
        """(pixel, coord) the dual functions of one channel: coordinates are products with these."""
        return self.matrix if self.is_orthonormal else self._decomposition[1]

    @cached_property
    @one_blas_thread()
    def gram(self) -> NDArray[np.float64]:
        """(coord, coord) ΦᵀΦ of all channels: turns coordinate residuals into pixel energies."""
        one = self.matrix.T @ self.matrix
        many = np.kron(np.eye(self.n_channels), one)
        return np.asarray(many[np.ix_(self._order, self._order)], np.float64)

    @cached_property
    def sums(self) -> NDArray[np.float64]:
        """(channel, coord) the sums of the functions over the pixels of each channel."""
        return np.kron(np.eye(self.n_channels), self.matrix.sum(axis=0))[:, self._order]

    @cached_property
    def is_orthonormal(self) -> bool:
        """Whether coordinate energy equals the energy of the pixels they describe."""
        return bool(np.abs(self.gram - np.eye(self.n_coords)).max() < 1e-9)

    @cached_property
    @one_blas_thread()
    def _decomposition(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Singular values, largest first, and the transposed pseudo-inverse."""
        blocks = block_svd(self.matrix)
        values = np.sort(np.concatenate([block.values for block in blocks]))[::-1]
        dual = np.zeros_like(self.matrix)
        for block in blocks:
            used = block.values > RCOND * values[0]
            dual[:, block.columns] = block.left[:, used] / block.values[used] @ block.right[used]
        dual.setflags(write=False)
        return values, dual

    @property
    def _singular_values(self) -> NDArray[np.float64]:
        return self._decomposition[0]

    @property
    def rank(self) -> int:
        """Dimension of the span; below `n_coords` the functions are dependent."""
        return self._rank * self.n_channels

    @property
    def _rank(self) -> int:
        """That of one channel."""
        return int((self._singular_values > RCOND * self._singular_values[0]).sum())

    @property
    def frame_bounds(self) -> tuple[float, float]:
        """(A, B): A‖x‖² ≤ ‖Φᵀx‖² ≤ B‖x‖² for every x in the span; (1, 1) if orthonormal."""
        return (
            float(self._singular_values[self._rank - 1] ** 2),
            float(self._singular_values[0] ** 2),
        )

    def project(self, patches: ArrayLike) -> Floats:
        """Coordinates of patches.

        Parameters
        ----------
        patches
            (patch, diameter, diameter), (patch, diameter, diameter, channel) or
            (patch, n_pixels), any real dtype.

        Returns
        -------
        (patch, n_coords). A row depends on its own patch alone, to the bit.
        """
        return self._project(patches, with_rest=False)[0]

    def project_with_rest(self, patches: ArrayLike) -> tuple[Floats, Floats]:
        """Coordinates, and the energy of each patch outside the span: (patch, coord), (patch,)."""
        return self._project(patches, with_rest=True)

    def _project(self, patches: ArrayLike, with_rest: bool) -> tuple[Floats, Floats]:
        pixels = self._pixel_rows(patches)
        coords = np.empty((len(pixels), self.n_coords), np.float32)
        rest = np.empty(len(pixels) if with_rest else 0, np.float32)
        dual, matrix = self._dual_padded, self._matrix_transposed
        n_pixels, n_coords = self.matrix.shape
        for rows, chunk in row_chunks(pixels, self._disk_pixels):
            check_values(chunk, "patches", rows.start)
            if self.n_channels == 1:
                kernels.linear_map(chunk, dual, coords[rows])
                if with_rest:
                    kernels.energy_outside(chunk, coords[rows], matrix, rest[rows])
                continue
            each = chunk.reshape(-1, n_pixels)  # a row for each channel
            projected = np.empty((len(each), n_coords), np.float32)
            kernels.linear_map(each, dual, projected)
            coords[rows] = projected.reshape(len(chunk), -1)[:, self._order]
            if with_rest:
                outside = np.empty(len(each), np.float32)
                kernels.energy_outside(each, projected, matrix, outside)
                rest[rows] = outside.reshape(len(chunk), -1).sum(1)
        return coords, rest

    def reconstruct(self, coords: ArrayLike) -> Floats:
        """Pixels of coordinates: (patch, coord) → (patch, n_pixels)."""
        rows = as_rows(coords, self.n_coords, "coords", "n_coords of this basis")
        pixels = np.empty((len(rows), self.n_pixels), np.float32)
        for part, chunk in row_chunks(rows):
            check_values(chunk, "coords", part.start)
            each = chunk
            if self.n_channels > 1:
                each = np.empty_like(chunk)
                each[:, self._order] = chunk
            each = each.reshape(-1, self.matrix.shape[1])
            kernels.linear_map(each, self._matrix_transposed, pixels[part].reshape(len(each), -1))
        return pixels

    def to_image(self, coords_or_pixels: ArrayLike, fill: float = np.nan) -> Floats:
        """Square images of coordinates or of disk pixels, `fill` outside the disk.

        Returns
        -------
        (patch, diameter, diameter), with several channels (patch, diameter, diameter, channel).
        Rows of `n_pixels` values are taken as pixels (so are those of the pixel basis, where the
        two are the same), rows of `n_coords` as coordinates.
        """
        values = as_real(coords_or_pixels, "coords_or_pixels")
        if values.ndim != 2 or values.shape[1] not in (self.n_pixels, self.n_coords):
            raise DscError(
                f"coords_or_pixels: found shape {values.shape}, need (patch, {self.n_coords}) "
                f"coordinates or (patch, {self.n_pixels}) pixels"
            )
        with np.errstate(over="ignore"):
            check_values(values.astype(np.float32), "coords_or_pixels")
        pixels = values if values.shape[1] == self.n_pixels else self.reconstruct(values)
        side, n_channels = self.diameter, self.n_channels
        image = np.full((len(pixels), side, side, n_channels), fill, np.float32)
        each = (len(pixels), n_channels, self.matrix.shape[0])
        image[:, self.mask] = pixels.reshape(each).swapaxes(1, 2)
        return image[..., 0] if n_channels == 1 else image

    def steer(self, coords: ArrayLike, theta: ArrayLike) -> Floats:
        """Rotate patches counter-clockwise, as `skimage.transform.rotate` does.

        Parameters
        ----------
        coords
            (patch, coord).
        theta
            Radians, one number or one per row.

        Returns
        -------
        (patch, coord).
        """
        rows = as_rows(coords, self.n_coords, "coords", "n_coords of this basis")
        angles = np.asarray(theta, np.float64)
        if angles.shape not in ((), (1,), (len(rows),)):
            raise DscError(
                f"theta: found shape {angles.shape}, need one angle or one per row ({len(rows)})"
            )
        if not np.isfinite(angles).all():
            raise DscError("theta: found NaN or infinite angles, need finite radians")
        angles = np.broadcast_to(angles, len(rows))
        rotated = np.empty((len(rows), self.n_coords), np.float32)
        for part, chunk in row_chunks(rows):
            check_values(chunk, "coords", part.start)
            kernels.steer_rows(chunk, np.ascontiguousarray(angles[part]), self.start, rotated[part])
        return rotated

    def lowpass(self, fraction: float) -> SteerableBasis:
        """The same basis with its cut-off frequencies reduced to `fraction` (the paper's Φ_low).

        The disk basis keeps the share fraction² of its coordinates that explains most, whole pairs
        and the constant; the Bessel one the zeros z ≤ fraction · πρ, the annular one
        t ≤ fraction · ⌊πs⌋ on ring s. Pixels have no cut-off and all stay.
        """
        if not 0 < fraction <= 1:
            raise DscError(f"fraction: found {fraction}, need a number in (0, 1]")
        one = self._one_channel()
        keep = one.level <= fraction
        low = SteerableBasis(
            name=f"{self.name} low {fraction:g}",
            diameter=self.diameter,
            mask=self.mask,
            frequency=one.frequency[keep],
            matrix=self.matrix[:, keep],
            level=one.level[keep],
        )
        return low.for_channels(self.n_channels)

    @cached_property
    def _dual_padded(self) -> Floats:
        return kernels.pad_columns(self.dual)

    @cached_property
    def _matrix_transposed(self) -> Floats:
        return kernels.pad_columns(self.matrix.T)

    def _pixel_rows(self, patches: ArrayLike) -> NDArray[np.generic]:
        array = as_real(patches, "patches")
        side, n_channels = self.diameter, self.n_channels
        square = (side, side) if n_channels == 1 else (side, side, n_channels)
        if array.ndim > 2 and array.shape[1:] != square:
            raise DscError(
                f"patches: found {' × '.join(map(str, array.shape[1:]))} pixels, need "
                f"{' × '.join(map(str, square))}: this basis has diameter {side}"
                + (f" and {n_channels} channels" if n_channels > 1 else "")
            )
        if array.ndim > 2:
            return array
        return as_rows(array, self.n_pixels, "patches", f"pixels of the disk of diameter {side}")

    def _disk_pixels(self, chunk: NDArray[np.generic]) -> NDArray[np.generic]:
        if chunk.ndim == 2:
            return chunk
        disks = chunk[:, self.mask]
        return disks if disks.ndim == 2 else disks.swapaxes(1, 2).reshape(len(chunk), -1)


def _restore_channels(
    stored: SteerableBasis, dual: NDArray[np.float64], n_channels: int
) -> SteerableBasis:
    """A basis of several channels from its stored arrays, which hold all of them."""
    n_pixels = int(stored.mask.sum())
    first = np.flatnonzero(stored.matrix[:n_pixels].any(0) | dual[:n_pixels].any(0))
    arrays = {name: getattr(stored, name)[first] for name in ("frequency", "level")}
    one = SteerableBasis.restore(
        dual[:n_pixels, first],
        name=stored.name,
        diameter=stored.diameter,
        mask=stored.mask,
        matrix=stored.matrix[:n_pixels, first],
        **arrays,
    )
    many = one.for_channels(n_channels)
    for name, found in (("matrix", stored.matrix), ("dual", dual), ("frequency", stored.frequency)):
        if not np.array_equal(many.array(name), found):
            raise DscError(f"basis_{name}: found channels that differ, need the same in each")
    return many


def _channel_order(frequency: NDArray[np.int64], n_channels: int) -> NDArray[np.int64]:
    """(coord,) the place of each coordinate of several channels, were they one after the other.

    Examples
    --------
    >>> _channel_order(np.array([0, 1, 1]), 2).tolist()  # constants, cosines, sines
    [0, 3, 1, 4, 2, 5]
    """
    kinds: list[NDArray[np.int64]] = []  # constants, cosines of 1, sines of 1, cosines of 2, …
    for t in np.unique(frequency):
        kinds += np.array_split(np.flatnonzero(frequency == t), 2 if t else 1)
    channels = range(n_channels)
    return np.concatenate([c * frequency.size + kind for kind in kinds for c in channels])
