"""The Bessel basis: disk harmonics made orthonormal."""

from functools import lru_cache

import numpy as np
import pytest
from scipy.special import jn_zeros, jv

import dsc


@pytest.fixture(scope="module", params=[3, 4, 5, 8, 11, 14, 21, 32, 42, 64])
def basis(request):
    return dsc.bessel_basis(request.param)


@lru_cache
def bessel_zeros(t):
    return jn_zeros(t, 40)


def zeros_up_to(limit):
    """For t = 0, 1, …, the zeros of J_t that are ≤ limit."""
    found = []
    while (zeros := bessel_zeros(len(found)))[0] <= limit:
        assert zeros[-1] > limit
        found.append(zeros[zeros <= limit])
    return found


def test_bessel_basis__is_orthonormal(basis):
    matrix = basis.matrix.astype(np.float32)
    np.testing.assert_allclose(matrix.T @ matrix, np.eye(basis.n_coords), atol=1e-5)


def test_bessel_basis__first_coordinate_is_the_exact_constant(basis):
    assert basis.frequency[0] == 0
    np.testing.assert_array_equal(basis.matrix[:, 0], basis.n_pixels**-0.5)


def test_bessel_basis__keeps_nearly_all_harmonics_below_nyquist(basis):
    rho = basis.diameter / 2 + 0.5
    sampled = sum((2 if t else 1) * len(z) for t, z in enumerate(zeros_up_to(np.pi * rho)))
    assert sampled - max(8, sampled // 50) <= basis.n_coords <= sampled


def test_bessel_basis__a_quarter_turn_is_rot90(basis):
    coords = dsc.random_atoms(basis, 3, seed=basis.diameter)
    patches = basis.to_image(coords, fill=0)
    turned = np.rot90(patches, axes=(1, 2))
    np.testing.assert_allclose(basis.to_image(basis.steer(coords, np.pi / 2), 0), turned, atol=2e-6)
    patches[:, basis.mask] += np.random.default_rng(0).standard_normal((3, basis.n_pixels))
    quarter = basis.steer(basis.project(patches), np.pi / 2)
    np.testing.assert_allclose(
        basis.project(np.rot90(patches, axes=(1, 2))), quarter, atol=3e-6 * np.abs(quarter).max()
    )


@pytest.mark.parametrize(("diameter", "n_coords"), [(11, 78), (15, 144)])
def test_bessel_basis__has_the_size_of_the_design(diameter, n_coords):
    assert dsc.bessel_basis(diameter).n_coords == n_coords


@pytest.mark.parametrize("diameter", [4, 7, 14, 21, 31, 41])
def test_bessel_basis__drops_dependent_harmonics(diameter):
    harmonics = sampled_harmonics(diameter)
    assert np.linalg.eigvalsh(harmonics.T @ harmonics)[0] < 0.3**2
    basis = dsc.bessel_basis(diameter)
    assert basis.n_coords - 1 < harmonics.shape[1]
    assert basis.rank == basis.n_coords
    np.testing.assert_allclose(basis.frame_bounds, 1, rtol=1e-9)


def sampled_harmonics(diameter):
    """Disk harmonics on the constant's complement, in the order of the coordinates."""
    axis = np.arange(diameter) - (diameter - 1) / 2
    x, y = np.meshgrid(axis, -axis)  # y up: angles grow counter-clockwise as seen
    inside = np.hypot(x, y) <= diameter / 2
    z = (x + 1j * y)[inside]
    rho = diameter / 2 + 0.5
    columns = []
    for t, zeros in enumerate(zeros_up_to(np.pi * rho)):
        radial = np.array([jv(t, zero * np.abs(z) / rho) for zero in zeros[int(t == 0) :]])
        pair = radial * np.exp(1j * t * np.angle(z))
        pair = pair - pair.mean(axis=1, keepdims=True)
        energy = (np.abs(pair) ** 2).sum(1) / (2 if t else 1)
        pair /= np.sqrt(energy)[:, None]
        columns += [pair.real] + ([pair.imag] if t else [])
    return np.concatenate(columns).T


@pytest.mark.parametrize("diameter", [11, 12, 15])
def test_bessel_basis__is_the_orthonormal_matrix_nearest_to_disk_harmonics(diameter):
    left, values, right = np.linalg.svd(sampled_harmonics(diameter), full_matrices=False)
    assert values[-1] >= 0.3  # nothing is dropped here
    np.testing.assert_allclose(dsc.bessel_basis(diameter).matrix[:, 1:], left @ right, atol=1e-8)


@pytest.mark.parametrize("diameter", [11, 12, 14])
@pytest.mark.parametrize("fraction", [0.3, 0.5, 0.8])
def test_bessel_basis__lowpass_keeps_what_lies_below_the_lower_cutoff(diameter, fraction):
    basis = dsc.bessel_basis(diameter)
    low = basis.lowpass(fraction)
    rho = diameter / 2 + 0.5
    zeros = zeros_up_to(fraction * np.pi * rho)
    assert low.max_frequency == len(zeros) - 1 < basis.max_frequency
    assert low.n_coords == sum((2 if t else 1) * len(z) for t, z in enumerate(zeros))
    np.testing.assert_allclose(low.matrix.T @ low.matrix, np.eye(low.n_coords), atol=1e-9)
    np.testing.assert_array_equal(low.matrix[:, 0], basis.matrix[:, 0])
    inside = basis.matrix.T @ low.matrix  # its functions are among those of the whole basis
    np.testing.assert_allclose(basis.matrix @ inside, low.matrix, atol=1e-9)
