"""The bases: the optimal one (the default), disk harmonics, the paper's annular ones, plain pixels.

The optimal one comes from `dsc.basis.optimal`. The harmonic ones are assembled from *families*: all
radial functions of one angular frequency t. For t > 0 a radial function gives two columns,
f(r) cos tθ and f(r) sin tθ, which share **one** norm: dividing them apart would break steering, and
on the grid some sine columns are exactly zero.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.special import jn_zeros, jv

from dsc.basis import optimal
from dsc.basis.blocks import block_svd, orthogonal_blocks
from dsc.basis.cache import load, save
from dsc.basis.grid import check_diameter, disk_mask, polar_grid
from dsc.basis.steerable import SteerableBasis
from dsc.basis.wedge import wedge_of
from dsc.blas import one_blas_thread
from dsc.errors import unknown_choice

Matrix = NDArray[np.float64]

SMALLEST_SINGULAR_VALUE = 0.3  # below it, sampled disk harmonics count as dependent


def disk_basis(diameter: int) -> SteerableBasis:
    """The orthonormal steerable basis that rotates images best (the default basis).

    The constant, exactly, then pairs of functions that are computed: of all orthonormal ones,
    those that rotate a random field with the spectrum of images with the least error over all
    angles. It spans nearly all of the disk: it has at most 98 % of its pixels as coordinates.
    A quarter rotation is exact. Steering is an exact unitary group action, and coordinate error
    equals pixel error minus the part of the patch outside the span.

    It is computed once and kept in the user's cache folder, or in the one that the environment
    variable `DSC_CACHE_DIR` names.

    Examples
    --------
    >>> basis = disk_basis(11)
    >>> basis.n_pixels, basis.n_coords
    (97, 95)
    """
    return _disk_basis(check_diameter(diameter))


def optimal_basis(diameter: int, options: optimal.Options) -> SteerableBasis:
    """As `disk_basis`, with another spectrum or number of coordinates: for experiments."""
    part = optimal.wedge_basis(check_diameter(diameter), options)
    return _from_wedge(f"disk, n = {part.frequency.size}", diameter, part)


def bessel_basis(diameter: int) -> SteerableBasis:
    """Orthonormal disk harmonics, after the exact constant: what `disk_basis` is compared with.

    The constant, then J_t(z r / ρ) e^{jtθ} with ρ = diameter/2 + ½ and all zeros z of J_t up to
    the Nyquist frequency πρ, made orthonormal by the nearest orthonormal matrix.
    """
    return _bessel_basis(check_diameter(diameter))


def annular_basis(diameter: int) -> SteerableBasis:
    """The paper's circular harmonics on ⌊diameter/2⌋ rings, up to frequency ⌊πs⌋ on ring s.

    Taken literally these are more functions than the inner rings have pixels, so the matrix is
    rank-deficient (86 of 95 at diameter 11) and (Φ*Φ)⁻¹ does not exist. The pseudo-inverse takes
    its place; `rank` and `frame_bounds` report the deficiency.
    """
    return _annular_basis(check_diameter(diameter))


def pixel_basis(diameter: int) -> SteerableBasis:
    """The pixels themselves: nothing rotates, and rotational K-SVD becomes standard K-SVD."""
    return _pixel_basis(check_diameter(diameter))


BASES: dict[str, Callable[[int], SteerableBasis]] = {
    "disk": disk_basis,
    "bessel": bessel_basis,
    "annular": annular_basis,
    "pixels": pixel_basis,
}


def make_basis(name: str, diameter: int) -> SteerableBasis:
    """The basis of this name: "disk", "bessel", "annular" or "pixels"."""
    if name not in BASES:
        raise unknown_choice("basis", name, BASES)
    return BASES[name](diameter)


@lru_cache(maxsize=8)
def _disk_basis(diameter: int) -> SteerableBasis:
    key = {"diameter": diameter, "options": optimal.DEFAULT, "version": optimal.VERSION}
    arrays = load("disk", key)
    if arrays is None:
        arrays = optimal.wedge_basis(diameter)._asdict()
        save("disk", key, arrays)
    return _from_wedge("disk", diameter, optimal.WedgeBasis(**arrays))


def _from_wedge(name: str, diameter: int, part: optimal.WedgeBasis) -> SteerableBasis:
    """A basis from its values on the wedge."""
    return SteerableBasis(
        name=name,
        diameter=diameter,
        mask=disk_mask(diameter),
        frequency=part.frequency,
        matrix=wedge_of(diameter).spread(part.values, part.frequency),
        level=part.level,
    )


@lru_cache(maxsize=8)
@one_blas_thread()
def _bessel_basis(diameter: int) -> SteerableBasis:
    radius, angle = polar_grid(diameter)
    rho = diameter / 2 + 0.5
    limit = np.pi * rho  # Nyquist
    distinct, place = np.unique(radius.round(9), return_inverse=True)
    families = [
        (t, [(z / limit, jv(t, z * distinct / rho)[place]) for z in zeros[int(t == 0) :]])
        for t, zeros in enumerate(_bessel_zeros(limit))  # the constant stands for t = 0, k = 1
    ]
    matrix, frequency, pair, level = _columns(families, angle)
    constant = np.full((radius.size, 1), radius.size**-0.5)
    matrix = _one_norm_per_pair(matrix - constant @ (constant.T @ matrix), pair)
    keep = _independent(matrix, pair)
    return SteerableBasis(
        name="bessel",
        diameter=diameter,
        mask=disk_mask(diameter),
        frequency=np.concatenate([[0], frequency[keep]]),
        matrix=np.hstack([constant, _nearest_orthonormal(matrix[:, keep])]),
        level=np.concatenate([[0.0], level[keep]]),
    )


@lru_cache(maxsize=8)
@one_blas_thread()
def _annular_basis(diameter: int) -> SteerableBasis:
    radius, angle = polar_grid(diameter)
    n_rings = diameter // 2
    width = diameter / 2 / n_rings
    ring = np.maximum(np.ceil(radius / width - 1e-9), 1).astype(int)
    cutoff = [int(np.pi * s) for s in range(n_rings + 1)]
    at_center = radius < 1e-9  # only a constant can rotate about the centre pixel

    def radial(s: int, t: int) -> tuple[float, Matrix]:
        return t / cutoff[s], np.where((ring == s) & ~(at_center & (t > 0)), 1.0, 0.0)

    families = [
        (t, [radial(s, t) for s in range(1, n_rings + 1) if t <= cutoff[s]])
        for t in range(cutoff[-1] + 1)
    ]
    matrix, frequency, pair, level = _columns(families, angle)
    return SteerableBasis(
        name="annular",
        diameter=diameter,
        mask=disk_mask(diameter),
        frequency=frequency,
        matrix=_one_norm_per_pair(matrix, pair),
        level=level,
    )


@lru_cache(maxsize=8)
def _pixel_basis(diameter: int) -> SteerableBasis:
    mask = disk_mask(diameter)
    n_pixels = int(mask.sum())
    return SteerableBasis(
        name="pixels",
        diameter=diameter,
        mask=mask,
        frequency=np.zeros(n_pixels, dtype=np.int64),
        matrix=np.eye(n_pixels),
        level=np.zeros(n_pixels),
    )


def _bessel_zeros(limit: float) -> list[Matrix]:
    """For t = 0, 1, …, the positive zeros of J_t that are ≤ limit, while there are any."""
    zeros: list[Matrix] = []
    while (z := jn_zeros(len(zeros), int(limit / np.pi) + 1))[0] <= limit:
        zeros.append(z[z <= limit])
    return zeros


def _columns(
    families: list[tuple[int, list[tuple[float, Matrix]]]], angle: Matrix
) -> tuple[Matrix, NDArray[np.int64], NDArray[np.int64], Matrix]:
    """Sampled functions in the order [t=0 | t=1 cos | t=1 sin | …]: matrix, frequency, pair, level.

    A family is a frequency and its radial functions, each with the level at which it comes in.
    """
    columns: list[Matrix] = []
    frequency: list[int] = []
    pair: list[int] = []
    level: list[float] = []
    n_pairs = 0
    for t, radials in families:
        for wave in [np.ones_like(angle)] if t == 0 else [np.cos(t * angle), np.sin(t * angle)]:
            columns += [radial * wave for _, radial in radials]
            frequency += [t] * len(radials)
            pair += range(n_pairs, n_pairs + len(radials))
            level += [entry for entry, _ in radials]
        n_pairs += len(radials)
    matrix = np.stack(columns, axis=1) if columns else np.empty((angle.size, 0))
    return matrix, np.array(frequency, np.int64), np.array(pair, np.int64), np.array(level)


def _one_norm_per_pair(matrix: Matrix, pair: NDArray[np.int64]) -> Matrix:
    energy = np.bincount(pair, weights=(matrix**2).sum(0)) / np.bincount(pair)
    return matrix / np.sqrt(energy)[pair]


def _independent(matrix: Matrix, pair: NDArray[np.int64]) -> NDArray[np.int64]:
    """Columns left after dropping whole pairs until the smallest singular value is ≥ 0.3.

    The pair dropped is the one with the largest weight in the weakest singular vector.
    """
    gram = matrix.T @ matrix
    blocks = orthogonal_blocks(gram)
    weakest = [_weakest(gram, columns) for columns in blocks]
    while True:
        value, dropped = min((value, int(pair[column])) for value, column in weakest)
        if value >= SMALLEST_SINGULAR_VALUE**2:
            return np.sort(np.concatenate(blocks))
        for i, columns in enumerate(blocks):
            if dropped in pair[columns]:
                blocks[i] = columns[pair[columns] != dropped]
                weakest[i] = _weakest(gram, blocks[i])


def _weakest(gram: Matrix, columns: NDArray[np.int64]) -> tuple[float, int]:
    """The smallest eigenvalue of a block, and the column with most weight in its eigenvector."""
    if not columns.size:
        return np.inf, 0
    values, vectors = eigh(gram[np.ix_(columns, columns)], subset_by_index=[0, 0])
    return float(values[0]), int(columns[np.abs(vectors[:, 0]).argmax()])


def _nearest_orthonormal(matrix: Matrix) -> Matrix:
    """The polar factor U Vᵀ of the SVD (Löwdin's orthonormalisation)."""
    nearest = np.empty_like(matrix)
    for block in block_svd(matrix):
        nearest[:, block.columns] = block.left @ block.right
    return nearest
