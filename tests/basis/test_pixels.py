"""The pixel basis: nothing turns."""

import numpy as np
import pytest

import dsc


@pytest.mark.parametrize("diameter", [*range(3, 25), 41, 64])
def test_pixel_basis__is_the_pixels_of_the_disk(diameter):
    basis = dsc.pixel_basis(diameter)
    axis = np.arange(diameter) - (diameter - 1) / 2
    np.testing.assert_array_equal(basis.mask, np.hypot(axis[:, None], axis) <= diameter / 2)
    assert basis.n_pixels == basis.n_coords == basis.mask.sum()
    assert not basis.frequency.any()
    patches = np.random.default_rng(0).standard_normal((3, diameter, diameter)).astype(np.float32)
    np.testing.assert_array_equal(basis.project(patches), patches[:, basis.mask])


def test_pixel_basis__nothing_turns():
    basis = dsc.pixel_basis(7)
    coords = dsc.random_atoms(basis, 3, seed=0)
    np.testing.assert_array_equal(basis.steer(coords, 1.0), coords)


def test_pixel_basis__has_no_rest_and_perfect_bounds():
    basis = dsc.pixel_basis(8)
    patches = np.random.default_rng(0).standard_normal((3, 8, 8))
    _, rest = basis.project_with_rest(patches)
    np.testing.assert_array_equal(rest, 0)
    assert basis.frame_bounds == (1.0, 1.0)


def test_lowpass__keeps_all_pixels():
    basis = dsc.pixel_basis(7)
    assert basis.lowpass(0.1).n_coords == basis.n_coords
