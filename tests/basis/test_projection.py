"""Projection, reconstruction, and the images of coordinates."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dsc

BASES = {
    "disk": dsc.disk_basis,
    "annular": dsc.annular_basis,
    "pixels": dsc.pixel_basis,
    "disk low": lambda diameter: dsc.disk_basis(diameter).lowpass(0.6),
}


@pytest.fixture(params=BASES)
def basis(request):
    return BASES[request.param](11)


def test_project__gives_the_coordinates_of_the_nearest_pixels_in_the_span(basis, natural_patches):
    patches = natural_patches(11, 60)
    pixels = patches[:, basis.mask].astype(np.float64)
    expected = np.linalg.lstsq(basis.matrix, pixels.T, rcond=1e-6)[0].T
    coords = basis.project(patches)
    assert coords.dtype == np.float32
    np.testing.assert_allclose(coords, expected, atol=2e-6 * np.abs(expected).max())


def test_project__images_and_disk_pixels_give_the_same_bits(basis, natural_patches):
    patches = natural_patches(11, 30)
    np.testing.assert_array_equal(basis.project(patches), basis.project(patches[:, basis.mask]))


def test_project__does_not_look_outside_the_disk(basis, natural_patches):
    patches = natural_patches(11, 30).copy()
    expected = basis.project(patches)
    patches[:, ~basis.mask] = np.nan
    np.testing.assert_array_equal(basis.project(patches), expected)


@given(
    name=st.sampled_from(sorted(BASES)),
    cuts=st.lists(st.integers(0, 70), max_size=6),
    order=st.randoms(use_true_random=False),
)
def test_project__rows_do_not_depend_on_each_other_to_the_bit(name, cuts, order, natural_patches):
    basis = BASES[name](11)
    patches = natural_patches(11, 70)
    coords, rest = basis.project_with_rest(patches)
    np.testing.assert_array_equal(basis.project(patches), coords)
    edges = [0, *sorted(cuts), 70]
    for begin, end in pairwise(edges):
        part, part_rest = basis.project_with_rest(patches[begin:end])
        np.testing.assert_array_equal(part, coords[begin:end])
        np.testing.assert_array_equal(part_rest, rest[begin:end])
    shuffled = list(range(70))
    order.shuffle(shuffled)
    np.testing.assert_array_equal(basis.project(patches[shuffled]), coords[shuffled])


@pytest.mark.parametrize("name", sorted(BASES))
def test_project__large_sets_have_the_bits_of_small_ones(name):
    basis = BASES[name](5)
    pixels = np.random.default_rng(0).standard_normal((9001, basis.n_pixels)).astype(np.float32)
    coords, rest = basis.project_with_rest(pixels)
    for part in (slice(0, 1), slice(4090, 4101), slice(8190, 8201), slice(9000, 9001)):
        some, some_rest = basis.project_with_rest(pixels[part])
        np.testing.assert_array_equal(coords[part], some)
        np.testing.assert_array_equal(rest[part], some_rest)


@pytest.mark.parametrize("dtype", ["f2", ">f4", ">f8", "f8", "u1", "i2", ">i4", "i8", "?"])
def test_project__takes_any_real_dtype(basis, dtype):
    patches = np.random.default_rng(0).integers(0, 2 if dtype == "?" else 200, (9, 11, 11))
    expected = basis.project(patches.astype(np.float32))
    np.testing.assert_array_equal(basis.project(patches.astype(dtype)), expected)


def test_project__takes_any_layout(basis, natural_patches):
    patches = natural_patches(11, 24)  # read-only
    expected = basis.project(patches)
    np.testing.assert_array_equal(basis.project(np.asfortranarray(patches)), expected)
    np.testing.assert_array_equal(basis.project(patches[::-3]), expected[::-3])
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(patches[0], 2), (11, 11))
    np.testing.assert_array_equal(basis.project(windows[2, 2:3]), expected[:1])
    np.testing.assert_array_equal(basis.project(patches.tolist()), expected)


def test_project_with_rest__is_the_energy_outside_the_span(basis, natural_patches):
    patches = natural_patches(11, 80)
    pixels = patches[:, basis.mask].astype(np.float64)
    outside = pixels - pixels @ np.linalg.pinv(basis.matrix, rcond=1e-6).T @ basis.matrix.T
    coords, rest = basis.project_with_rest(patches)
    np.testing.assert_array_equal(coords, basis.project(patches))
    energy = (pixels**2).sum(1)
    np.testing.assert_allclose(rest, (outside**2).sum(1), rtol=1e-4, atol=1e-7 * energy.max())
    assert rest.shape == (80,)


def test_project_with_rest__completes_the_energy(natural_patches):
    basis = dsc.disk_basis(15)
    patches = natural_patches(15, 80)
    coords, rest = basis.project_with_rest(patches)
    energy = (patches[:, basis.mask].astype(np.float64) ** 2).sum(1)
    np.testing.assert_allclose((coords.astype(np.float64) ** 2).sum(1) + rest, energy, rtol=1e-5)


@pytest.mark.parametrize("make", [dsc.disk_basis, dsc.annular_basis])
def test_project_with_rest__pixel_error_is_rest_and_coordinate_error(make, natural_patches):
    basis = make(11)
    patches = natural_patches(11, 80)
    coords, rest = basis.project_with_rest(patches)
    atoms = dsc.random_atoms(basis, 5, seed=0)
    decoded = dsc.decode(dsc.encode(coords, atoms, basis, 3), atoms, basis)
    left = (coords - decoded).astype(np.float64) @ basis.matrix.T
    error = ((patches[:, basis.mask] - basis.reconstruct(decoded)) ** 2).sum(1)
    np.testing.assert_allclose(rest + (left**2).sum(1), error, rtol=1e-4)


def test_reconstruct__are_the_pixels_of_the_coordinates(basis):
    coords = dsc.random_atoms(basis, 20, seed=0)
    pixels = basis.reconstruct(coords)
    assert pixels.dtype == np.float32
    np.testing.assert_allclose(pixels, coords.astype(float) @ basis.matrix.T, atol=2e-6)
    np.testing.assert_array_equal(basis.reconstruct(coords[7:8]), pixels[7:8])


@pytest.mark.parametrize("diameter", [3, 4, 6, 9, 11])
@pytest.mark.parametrize("name", sorted(BASES))
def test_to_image__puts_pixels_in_the_disk_and_fill_outside(name, diameter):
    basis = BASES[name](diameter)
    coords = dsc.random_atoms(basis, 3, seed=0)
    pixels = basis.reconstruct(coords)
    image = basis.to_image(coords)
    assert image.shape == (3, diameter, diameter)
    np.testing.assert_array_equal(image[:, basis.mask], pixels)
    assert np.isnan(image[:, ~basis.mask]).all()
    filled = basis.to_image(pixels, fill=7)
    np.testing.assert_array_equal(filled[:, basis.mask], pixels)
    assert (filled[:, ~basis.mask] == 7).all()
