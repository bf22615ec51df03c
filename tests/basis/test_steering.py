"""Which way steering turns, and by how much."""

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from skimage.transform import rotate

import dsc

ANGLES = st.floats(-20, 20)


def smooth_image(diameter):
    """Three blobs without any symmetry, well inside the disk."""
    axis = np.linspace(-1, 1, diameter)
    x, y = np.meshgrid(axis, axis)
    blobs = [(0.35, -0.2, 1.0), (-0.3, -0.35, -0.7), (0.05, 0.4, 0.5)]
    return sum(a * np.exp(-((x - u) ** 2 + (y - v) ** 2) / 0.04) for u, v, a in blobs)


@pytest.mark.parametrize("degrees", [10, 45, 90, 137, -30])
@pytest.mark.parametrize("make", [dsc.disk_basis, dsc.annular_basis])
@pytest.mark.parametrize("diameter", [20, 21])
def test_steer__turns_as_skimage_rotate(make, diameter, degrees):
    basis = make(diameter)
    image = smooth_image(diameter)
    expected = rotate(image, degrees, order=5)[basis.mask]
    turned = basis.reconstruct(basis.steer(basis.project(image[None]), np.radians(degrees)))[0]
    error = np.linalg.norm(turned - expected) / np.linalg.norm(expected)
    assert error < (0.04 if make is dsc.disk_basis else 0.4)  # the other way: 0.7 to 1.5


@pytest.mark.parametrize("make", [dsc.disk_basis, dsc.annular_basis, dsc.pixel_basis])
@given(theta=ANGLES, seed=st.integers(0, 99))
def test_steer__turns_each_pair_by_its_frequency(make, theta, seed):
    basis = make(11)
    coords = dsc.random_atoms(basis, 3, seed=seed)
    expected = oracles.turn(coords, basis.frequency, theta)
    np.testing.assert_allclose(basis.steer(coords, theta), expected, atol=1e-6)


@given(first=ANGLES, second=ANGLES)
def test_steer__angles_add(first, second):
    basis = dsc.disk_basis(11)
    coords = dsc.random_atoms(basis, 4, seed=0)
    twice = basis.steer(basis.steer(coords, first), second)
    np.testing.assert_allclose(twice, basis.steer(coords, first + second), atol=1e-6)


def test_steer__takes_one_angle_or_one_per_row():
    basis = dsc.disk_basis(11)
    coords = dsc.random_atoms(basis, 4, seed=0)
    theta = np.array([0.0, 1.0, -2.0, 7.0])
    rows = [basis.steer(coords[i : i + 1], theta[i])[0] for i in range(4)]
    np.testing.assert_array_equal(basis.steer(coords, theta), rows)
    np.testing.assert_array_equal(basis.steer(coords, 1.0)[1], rows[1])


def test_steer__rows_do_not_depend_on_each_other_to_the_bit():
    basis = dsc.disk_basis(5)
    coords = np.random.default_rng(0).standard_normal((9000, basis.n_coords)).astype(np.float32)
    theta = np.linspace(0, 50, 9000)
    turned = basis.steer(coords, theta)
    for part in (slice(0, 1), slice(17, 40), slice(4090, 4100), slice(8999, 9000)):
        np.testing.assert_array_equal(basis.steer(coords[part], theta[part]), turned[part])


@pytest.mark.parametrize("dtype", [">f4", "f8", "i4", "f2"])
def test_steer__takes_any_real_dtype_and_layout(dtype):
    basis = dsc.disk_basis(7)
    coords = np.random.default_rng(0).integers(-9, 9, (6, basis.n_coords))
    expected = basis.steer(coords.astype(np.float32), 0.4)
    np.testing.assert_array_equal(basis.steer(coords.astype(dtype), 0.4), expected)
    np.testing.assert_array_equal(
        basis.steer(np.asfortranarray(coords, dtype)[::2], 0.4), expected[::2]
    )
