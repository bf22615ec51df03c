"""The disk basis at every diameter from 3 to 64, and its construction."""

import dataclasses
import os
import subprocess
import sys

import numpy as np
import pytest

import dsc


def every(diameters, some):
    """All diameters, those that take long in the full run only."""
    return [n if n in some else pytest.param(n, marks=pytest.mark.full) for n in diameters]


@pytest.fixture(scope="module", params=every(range(3, 65), [*range(3, 33), 37, 42, 51]))
def basis(request):
    return dsc.disk_basis(request.param)


def unit_coords(basis, n_rows=3):
    return dsc.random_atoms(basis, n_rows, seed=basis.diameter)


def test_disk_basis__is_orthonormal(basis):
    assert np.abs(basis.matrix.T @ basis.matrix - np.eye(basis.n_coords)).max() < 1e-12
    assert basis.is_orthonormal
    assert basis.dual is basis.matrix


def test_disk_basis__first_coordinate_is_the_exact_constant(basis):
    assert basis.frequency[0] == 0
    np.testing.assert_array_equal(basis.matrix[:, 0], basis.n_pixels**-0.5)


def test_disk_basis__orders_coordinates_by_frequency_in_whole_pairs(basis):
    assert (np.diff(basis.frequency) >= 0).all()
    counts = np.bincount(basis.frequency)
    assert (counts[1:] % 2 == 0).all()
    assert (
        basis.matrix.shape == (basis.n_pixels, basis.n_coords) == (basis.mask.sum(), counts.sum())
    )


def test_disk_basis__steering_is_a_group_action_that_keeps_norms(basis):
    coords = unit_coords(basis)
    a, b = 0.7, np.array([1.9, -2.3, 100.0])
    twice = basis.steer(basis.steer(coords, a), b)
    np.testing.assert_allclose(
        np.linalg.norm(twice - basis.steer(coords, a + b), axis=1), 0, atol=2e-6
    )
    np.testing.assert_allclose(np.linalg.norm(twice, axis=1), 1, atol=1e-6)
    np.testing.assert_array_equal(basis.steer(coords, 0.0), coords)


def test_disk_basis__a_constant_patch_stays_put(basis):
    coords = basis.project(np.full((4, basis.diameter, basis.diameter), 0.8))
    turned = basis.steer(coords, [0.1, 1.0, 2.0, -3.0])
    moved = np.linalg.norm(turned - coords, axis=1) / np.linalg.norm(coords, axis=1)
    np.testing.assert_allclose(moved, 0, atol=1e-6)
    np.testing.assert_allclose(basis.reconstruct(turned), 0.8, rtol=1e-4)


def test_disk_basis__a_quarter_turn_is_rot90(basis):
    coords = unit_coords(basis)
    patches = basis.to_image(coords, fill=0)
    turned = np.rot90(patches, axes=(1, 2))
    np.testing.assert_allclose(basis.to_image(basis.steer(coords, np.pi / 2), 0), turned, atol=2e-6)
    patches[:, basis.mask] += np.random.default_rng(0).standard_normal((3, basis.n_pixels))
    quarter = basis.steer(basis.project(patches), np.pi / 2)
    np.testing.assert_allclose(
        basis.project(np.rot90(patches, axes=(1, 2))), quarter, atol=3e-6 * np.abs(quarter).max()
    )


@pytest.mark.parametrize(("diameter", "n_coords"), [(3, 8), (4, 10), (11, 95), (15, 173)])
def test_disk_basis__has_the_size_of_the_design(diameter, n_coords):
    assert dsc.disk_basis(diameter).n_coords == n_coords


def test_disk_basis__is_nearly_complete_but_never_complete(basis):
    """With as many coordinates as pixels, `to_image` could not tell them apart."""
    assert basis.n_coords <= 0.98 * basis.n_pixels
    fewest = 0.97 if basis.diameter % 2 or basis.diameter > 24 else 0.9  # pairs fit less well
    assert basis.n_coords >= min(fewest * basis.n_pixels, basis.n_pixels - 2)


def test_disk_basis__a_quarter_rotation_and_a_mirror_are_exact_to_the_bit(basis):
    number = np.full(basis.mask.shape, -1)
    number[basis.mask] = np.arange(basis.n_pixels)
    t = basis.frequency
    middle = (basis.start[t] + basis.start[t + 1]) // 2
    sine = (np.arange(t.size) >= middle) & (t > 0)
    columns = basis.matrix
    mirrored = columns[number[::-1][basis.mask]]
    np.testing.assert_array_equal(mirrored, np.where(sine, -columns, columns))
    half = columns[np.rot90(number, 2)[basis.mask]]
    np.testing.assert_array_equal(half, np.where(t % 2, -columns, columns))


def test_disk_basis__levels_rise_to_one_and_are_shared_by_pairs(basis):
    assert basis.level[0] == 0
    assert basis.level[1:].min() > 0
    assert basis.level.max() == 1
    for t in range(1, basis.max_frequency + 1):
        cosines, sines = np.split(basis.level[basis.frequency == t], 2)
        np.testing.assert_array_equal(cosines, sines)
        assert (np.diff(cosines) > 0).all()


@pytest.mark.parametrize("diameter", [11, 12, 14, 31])
@pytest.mark.parametrize("fraction", [0.3, 0.5, 0.8])
def test_lowpass__keeps_the_square_of_the_fraction(diameter, fraction):
    basis = dsc.disk_basis(diameter)
    low = basis.lowpass(fraction)
    share = fraction**2 * basis.n_coords
    assert share - 2 <= low.n_coords <= share
    assert low.max_frequency < basis.max_frequency
    np.testing.assert_allclose(low.matrix.T @ low.matrix, np.eye(low.n_coords), atol=1e-9)
    np.testing.assert_array_equal(low.matrix[:, 0], basis.matrix[:, 0])


@pytest.mark.parametrize("fraction", [0.3, 0.5])
def test_lowpass__keeps_the_part_of_images_that_matters_most(fraction, natural_patches):
    """More of it than as many coordinates of the Bessel basis do."""
    patches = natural_patches(15, 1000)
    patches = patches - patches.mean((1, 2), keepdims=True)
    disk, bessel = dsc.disk_basis(15), dsc.bessel_basis(15).lowpass(fraction)
    disk = disk.lowpass((bessel.n_coords / disk.n_coords) ** 0.5)
    assert disk.n_coords <= bessel.n_coords
    rests = [basis.project_with_rest(patches)[1].sum() for basis in (disk, bessel)]
    assert rests[0] < 0.95 * rests[1]


def test_lowpass__whole_fraction_is_the_same_basis():
    basis = dsc.disk_basis(11)
    np.testing.assert_array_equal(basis.lowpass(1.0).matrix, basis.matrix)


def test_lowpass__still_turns():
    low = dsc.disk_basis(12).lowpass(0.5)
    coords = dsc.random_atoms(low, 2, seed=0)
    turned = low.to_image(low.steer(coords, np.pi / 2), fill=0)
    np.testing.assert_allclose(turned, np.rot90(low.to_image(coords, 0), axes=(1, 2)), atol=2e-6)


@pytest.mark.parametrize(
    "make", [dsc.disk_basis, dsc.bessel_basis, dsc.annular_basis, dsc.pixel_basis]
)
def test_basis__is_frozen(make):
    basis = make(9)
    with pytest.raises(dataclasses.FrozenInstanceError):
        basis.diameter = 10
    for array in (basis.mask, basis.frequency, basis.matrix, basis.dual):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


@pytest.mark.parametrize("make", ["disk_basis", "bessel_basis"])
def test_basis__has_the_same_bits_for_any_number_of_blas_threads(make, tmp_path):
    program = (
        f"import hashlib, dsc\nprint(hashlib.sha256(dsc.{make}(31).matrix.tobytes()).hexdigest())"
    )
    hashes = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={
                **os.environ,
                "OPENBLAS_NUM_THREADS": threads,
                "DSC_CACHE_DIR": str(tmp_path / threads),  # computed anew
            },
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for threads in ("1", "2")
    }
    assert len(hashes) == 1
