"""Rotation by interpolation, which steering is compared with."""

import numpy as np
import pytest
from scipy import sparse
from skimage.transform import rotate

import dsc

METHODS = ("nearest", "bicubic")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("diameter", [3, 4, 11, 12, 21])
def test_rotation_matrix__quarter_turns_are_rot90(method, diameter):
    mask = dsc.pixel_basis(diameter).mask
    patch = np.random.default_rng(0).standard_normal((diameter, diameter))
    for quarters in range(4):
        matrix = dsc.rotation_matrix(diameter, quarters * np.pi / 2, method)
        assert sparse.issparse(matrix)
        np.testing.assert_allclose(matrix @ patch[mask], np.rot90(patch, quarters)[mask], atol=1e-9)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("theta", [0.3, 0.7, -1.2])
@pytest.mark.parametrize("diameter", [11, 12])
def test_rotation_matrix__a_constant_patch_stays_put(method, theta, diameter):
    matrix = dsc.rotation_matrix(diameter, theta, method)
    np.testing.assert_allclose(matrix @ np.ones(matrix.shape[1]), 1, rtol=1e-9)


@pytest.mark.parametrize("theta", [0.1, 0.7, 2.0])
def test_rotation_matrix__nearest_copies_single_pixels(theta):
    matrix = dsc.rotation_matrix(11, theta, "nearest")
    assert set(np.unique(matrix.data)) == {1.0}
    assert np.diff(matrix.indptr).max() == 1


@pytest.mark.parametrize("degrees", [20, 45, -70, 130])
def test_rotation_matrix__turns_as_skimage_rotate(degrees):
    diameter = 21
    mask = dsc.pixel_basis(diameter).mask
    axis = np.linspace(-1, 1, diameter)
    x, y = np.meshgrid(axis, axis)
    image = np.exp(-((x - 0.3) ** 2 + (y + 0.2) ** 2) / 0.05) - np.exp(
        -(x**2 + (y - 0.4) ** 2) / 0.05
    )
    expected = rotate(image, degrees, order=5)[mask]

    def error(method):
        turned = dsc.rotation_matrix(diameter, np.radians(degrees), method) @ image[mask]
        return np.linalg.norm(turned - expected) / np.linalg.norm(expected)

    assert error("bicubic") < 0.03
    assert error("bicubic") < error("nearest") < 0.25


def test_rotation_matrix__bicubic_reproduces_quadratics_away_from_the_rim():
    diameter, theta = 15, 0.6
    mask = dsc.pixel_basis(diameter).mask
    axis = np.arange(diameter) - 7.0
    x, y = (grid[mask] for grid in np.meshgrid(axis, axis))

    def surface(x, y):
        return 1 + 0.5 * x - y + 0.2 * x**2 - 0.3 * x * y + 0.1 * y**2

    turned = dsc.rotation_matrix(diameter, theta, "bicubic") @ surface(x, y)
    source = (x + 1j * -y) * np.exp(-1j * theta)  # counter-clockwise as seen, y points down
    inner = np.hypot(x, y) < 4
    np.testing.assert_allclose(turned[inner], surface(source.real, -source.imag)[inner], atol=1e-9)
