"""How far steering is from turning the whole image before cutting the patch out."""

import numpy as np
import pytest
from scipy import ndimage

import dsc

DIAMETER = 11
IMAGES = ("camera", "coins", "brick", "grass", "gravel", "moon")


@pytest.fixture(scope="module")
def turned(image):
    """Patches, the same places after turning the image by θ (5th-order spline), and θ."""
    rng = np.random.default_rng(0)
    center = (DIAMETER - 1) / 2
    y, x = np.nonzero(dsc.pixel_basis(DIAMETER).mask)
    offset = (x - center) - 1j * (y - center)  # y points down, angles grow counter-clockwise
    before, after, thetas = [], [], []
    for name in IMAGES:
        spline = ndimage.spline_filter(image(name), 5, mode="mirror")
        low, high = 2 * DIAMETER, np.array(spline.shape)[:, None] - 2 * DIAMETER
        cy, cx = rng.integers(low, high, (2, 800))
        theta = rng.uniform(0, 2 * np.pi, 800)
        for store, turn in ((before, np.zeros(800)), (after, theta)):
            source = offset * np.exp(-1j * turn)[:, None]
            places = [cy[:, None] - source.imag, cx[:, None] + source.real]
            store.append(ndimage.map_coordinates(spline, places, order=5, prefilter=False))
        thetas.append(theta)
    return np.concatenate(before), np.concatenate(after), np.concatenate(thetas)


def rotation_error(basis, turned, mean_removed):
    before, after, theta = turned
    mean = before.mean(1, keepdims=True) if mean_removed else 0
    steered = basis.reconstruct(basis.steer(basis.project(before - mean), theta))
    return ((steered - (after - mean)) ** 2).sum() / ((after - mean) ** 2).sum()


def test_rotation_error__disk_with_the_mean_removed(turned):
    assert rotation_error(dsc.disk_basis(DIAMETER), turned, mean_removed=True) <= 0.022


def test_rotation_error__disk_is_a_third_below_bessel(turned):
    disk, bessel = (
        rotation_error(make(DIAMETER), turned, mean_removed=True)
        for make in (dsc.disk_basis, dsc.bessel_basis)
    )
    assert disk <= 0.7 * bessel
    assert 0.03 <= bessel <= 0.035


def test_rotation_error__annular_with_the_mean_removed(turned):
    assert rotation_error(dsc.annular_basis(DIAMETER), turned, mean_removed=True) >= 0.12


def test_rotation_error__disk_with_the_mean_kept(turned):
    assert rotation_error(dsc.disk_basis(DIAMETER), turned, mean_removed=False) <= 0.0013


def test_rotation_error__steering_the_other_way_is_far_off(turned):
    before, after, theta = turned
    back = (before, after, -theta)
    assert rotation_error(dsc.disk_basis(DIAMETER), back, mean_removed=True) > 0.5
