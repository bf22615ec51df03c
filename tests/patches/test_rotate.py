"""Patches turned in their image."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.ndimage import map_coordinates

from dsc.basis.grid import disk_mask
from dsc.errors import DscError
from dsc.patches import PatchConfig, cut, extract_patches


@pytest.fixture
def scene(image):
    """The image; `image` is the number of one in these tests."""
    return image


def oracle(image, y, x, turn, diameter):
    """The disk about (y, x) + middle, turned counter-clockwise, by SciPy's quintic spline."""
    middle = (diameter - 1) / 2
    dy, dx = np.argwhere(disk_mask(diameter)).T - middle
    cos, sin = np.cos(turn), np.sin(turn)
    places = [y + middle + dx * sin + dy * cos, x + middle + dx * cos - dy * sin]
    return map_coordinates(image, places, order=5, mode="mirror")


@pytest.mark.parametrize("diameter", [11, 12])
def test_turned__is_scipys_spline_of_the_image(tmp_path, scene, diameter):
    image = scene("camera")[:60, :70].astype(np.float32)
    config = PatchConfig(diameter=diameter, stride=4, rotate=(0.0, 17.0, 45.0, 200.5))
    patches = extract_patches(image, tmp_path / "a", config)
    at = patches.positions(0, patches.n_patches)
    found = patches.pixels(0, patches.n_patches)
    for i in range(0, patches.n_patches, 5):
        turn = np.float64(at.rotation[i])
        expected = oracle(image.astype(np.float64), at.y[i], at.x[i], turn, diameter)
        np.testing.assert_allclose(found[i], expected, atol=1e-6)


def test_turned__far_pixels_do_not_matter(tmp_path, scene):
    image = np.tile(scene("camera")[:300, :300], (2, 2)).astype(np.float32)
    config = PatchConfig(stride=37, rotate=(33.0,))
    patches = extract_patches(image, tmp_path / "a", config)
    at = patches.positions(0, patches.n_patches)
    assert at.y.max() > 2 * cut.CELL
    for i in range(0, patches.n_patches, 29):
        expected = oracle(
            image.astype(np.float64), at.y[i], at.x[i], np.float64(at.rotation[i]), 11
        )
        np.testing.assert_allclose(patches.pixels(i, i + 1)[0], expected, atol=1e-6)


@pytest.mark.parametrize("diameter", [11, 12])
@pytest.mark.parametrize("quarters", [0, 1, 2, 3])
def test_turned__quarter_turns_are_rot90(tmp_path, scene, diameter, quarters):
    image = scene("coins")[:50, :50].astype(np.float32)
    config = PatchConfig(diameter=diameter, stride=6, rotate=(90.0 * quarters,))
    patches = extract_patches(image, tmp_path / "a", config)
    at, mask = patches.positions(0, patches.n_patches), disk_mask(diameter)
    for i, found in enumerate(patches.pixels(0, patches.n_patches)):
        window = image[at.y[i] : at.y[i] + diameter, at.x[i] : at.x[i] + diameter]
        np.testing.assert_allclose(found, np.rot90(window, quarters)[mask], atol=2e-6)


def test_turned__positions_keep_a_margin(tmp_path, scene):
    image = scene("camera")[:40, :50]
    patches = extract_patches(image, tmp_path / "a", PatchConfig(rotate=(10.0,)))
    at = patches.positions(0, patches.n_patches)
    assert (at.y.min(), at.y.max()) == (3, 40 - 11 - 3)
    assert (at.x.min(), at.x.max()) == (3, 50 - 11 - 3)
    with pytest.raises(DscError, match=r"need at least 17 × 17 for rotated patches of diameter 11"):
        extract_patches(image[:16], tmp_path / "b", PatchConfig(rotate=(10.0,)))


def test_turned__angles_are_drawn_evenly_and_by_seed(tmp_path, scene):
    image = scene("camera")[:80, :80]
    angles = (0.0, 90.0, 123.0)
    patches = extract_patches(image, tmp_path / "a", PatchConfig(rotate=angles))
    turns = patches.positions(0, patches.n_patches).rotation
    values, counts = np.unique(turns, return_counts=True)
    np.testing.assert_allclose(np.rad2deg(values), angles, rtol=1e-6)
    np.testing.assert_allclose(counts / len(turns), 1 / 3, atol=0.03)
    other = extract_patches(image, tmp_path / "b", PatchConfig(rotate=angles, seed=5))
    assert (other.positions(0, len(turns)).rotation != turns).mean() > 0.5


def test_turned__an_angle_belongs_to_its_place(tmp_path, scene):
    image = scene("camera")[:80, :80]
    full = extract_patches(image, tmp_path / "a", PatchConfig(rotate=(0.0, 50.0)))
    few = extract_patches(image, tmp_path / "b", PatchConfig(rotate=(0.0, 50.0), per_image=300))
    at, some = full.positions(0, full.n_patches), few.positions(0, 300)
    turn = {(y, x): t for y, x, t in zip(at.y, at.x, at.rotation, strict=True)}
    assert all(turn[y, x] == t for y, x, t in zip(some.y, some.x, some.rotation, strict=True))


def test_turned__any_span_has_the_same_bits(tmp_path, scene):
    image = scene("camera")[:300, :80]
    config = PatchConfig(rotate=(0.0, 20.0), stride=3, center=True, unit=True, materialize="disk")
    patches = extract_patches(image, tmp_path / "a", config)
    whole = patches.pixels(0, patches.n_patches)
    for a, b in ((0, 1), (5, 700), (patches.n_patches - 3, patches.n_patches)):
        np.testing.assert_array_equal(patches.pixels(a, b), whole[a:b])
    expected = patches.basis.project(whole)
    np.testing.assert_array_equal(patches.read(patches.basis, 0, patches.n_patches), expected)
