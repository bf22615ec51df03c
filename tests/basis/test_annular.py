"""The paper's annular basis, rank-deficient as it is."""

import numpy as np
import pytest

import dsc


def test_annular_basis__has_the_papers_pixels_and_elements():
    basis = dsc.annular_basis(11)
    assert (basis.n_pixels, basis.n_coords, basis.rank) == (97, 95, 86)
    assert basis.rank == np.linalg.matrix_rank(basis.matrix, rtol=1e-6)


@pytest.mark.parametrize("diameter", [*range(3, 33), 48, 63, 64])
def test_annular_basis__has_all_harmonics_of_every_ring(diameter):
    basis = dsc.annular_basis(diameter)
    cutoff = [int(np.pi * s) for s in range(1, diameter // 2 + 1)]
    assert basis.n_coords == sum(2 * t + 1 for t in cutoff)
    counts = np.bincount(basis.frequency)
    assert counts[0] == len(cutoff)
    for t in range(1, max(cutoff) + 1):
        assert counts[t] == 2 * sum(c >= t for c in cutoff)
    assert (np.diff(basis.frequency) >= 0).all()


@pytest.mark.parametrize("diameter", [3, 4, 11, 12, 24])
def test_annular_basis__rings_share_no_pixels_and_miss_none(diameter):
    basis = dsc.annular_basis(diameter)
    constants = basis.matrix[:, basis.frequency == 0] != 0
    np.testing.assert_array_equal(constants.sum(1), 1)
    axis = np.arange(diameter) - (diameter - 1) / 2
    radius = np.hypot(axis[:, None], axis)[basis.mask]
    mean_radius = (constants * radius[:, None]).sum(0) / constants.sum(0)
    assert (np.diff(mean_radius) > 0).all()


@pytest.mark.parametrize("diameter", [3, 4, 7, 11, 12, 16])
def test_annular_basis__dual_is_the_pseudo_inverse(diameter):
    basis = dsc.annular_basis(diameter)
    expected = np.linalg.pinv(basis.matrix, rcond=1e-6).T
    np.testing.assert_allclose(basis.dual, expected, atol=1e-8 * np.abs(expected).max())


@pytest.mark.parametrize("diameter", [4, 11, 16])
def test_annular_basis__reports_its_frame_bounds(diameter):
    basis = dsc.annular_basis(diameter)
    values = np.linalg.svd(basis.matrix, compute_uv=False)
    values = values[values > 1e-6 * values[0]]
    assert len(values) == basis.rank < basis.n_coords
    np.testing.assert_allclose(basis.frame_bounds, (values[-1] ** 2, values[0] ** 2), rtol=1e-8)


def test_annular_basis__projecting_twice_changes_nothing(natural_patches):
    basis = dsc.annular_basis(11)
    coords = basis.project(natural_patches(11, 50))
    np.testing.assert_allclose(basis.project(basis.reconstruct(coords)), coords, atol=1e-4)


@pytest.mark.parametrize("diameter", [3, 4, 5, 8, 11, 15, 16, 24])
def test_annular_basis__a_quarter_turn_is_rot90(diameter):
    basis = dsc.annular_basis(diameter)
    coords = dsc.random_atoms(basis, 3, seed=0)
    turned = basis.to_image(basis.reconstruct(basis.steer(coords, np.pi / 2)), fill=0)
    image = basis.to_image(basis.reconstruct(coords), fill=0)
    np.testing.assert_allclose(turned, np.rot90(image, axes=(1, 2)), atol=3e-6)
    patches = np.random.default_rng(0).standard_normal((3, diameter, diameter))
    quarter = basis.steer(basis.project(patches), np.pi / 2)
    np.testing.assert_allclose(
        basis.project(np.rot90(patches, axes=(1, 2))), quarter, atol=2e-5 * np.abs(quarter).max()
    )


def test_annular_basis__pairs_share_one_norm():
    basis = dsc.annular_basis(11)
    for t in range(1, basis.max_frequency + 1):
        cosine, sine = np.split(basis.matrix[:, basis.frequency == t], 2, axis=1)
        envelope = cosine**2 + sine**2  # f(r)² (cos² + sin²): flat on its ring
        for column in envelope.T:
            np.testing.assert_allclose(column[column > 0], column.max(), rtol=1e-9)


@pytest.mark.parametrize("fraction", [0.3, 0.5, 0.9])
def test_lowpass__lowers_the_cutoff_of_every_ring(fraction):
    low = dsc.annular_basis(11).lowpass(fraction)
    cutoff = [int(fraction * int(np.pi * s)) for s in range(1, 6)]
    assert low.n_coords == sum(2 * t + 1 for t in cutoff)
    assert low.max_frequency == max(cutoff)
