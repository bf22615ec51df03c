"""How `texture-augmentation` cuts, rotates and counts patches."""

from dataclasses import replace

import numpy as np
import pytest

from dsc.experiments import texture_augmentation as room
from dsc.experiments.texture_augmentation import (
    AGAINST,
    BLACK,
    LIKE,
    MEAN,
    QUICK,
    SIDE,
    WAYS,
    Way,
    learn_atoms,
    pixels_of,
)
from dsc.experiments.texture_suites import UPRIGHT, Halves, resampled
from dsc.images import open_images
from dsc.texture import read_inputs

GREY = np.random.default_rng(0).random((40, 44)).astype(np.float32)


def patches(way, angle, monkeypatch):
    """The same places, all rotated by an angle (degrees)."""
    monkeypatch.setitem(room.ROTATIONS, "even", (angle,))
    return room.rotated_patches(way, [GREY], 5, np.random.default_rng(3))


@pytest.mark.parametrize("cut", ["", BLACK, MEAN])
def test_patches__not_rotated_are_windows_of_the_image(cut, monkeypatch):
    found = patches(Way("some", cut=cut), 0.0, monkeypatch)
    windows = np.lib.stride_tricks.sliding_window_view(GREY, (SIDE, SIDE)).reshape(-1, SIDE, SIDE)
    for one in found:
        assert np.abs(windows - one).max(axis=(1, 2)).min() < 1e-5


def test_patches__a_quarter_turn_is_exact_either_way(monkeypatch):
    plain = patches(Way("some"), 0.0, monkeypatch)
    for cut in ("", BLACK, MEAN):
        found = patches(Way("some", cut=cut), 90.0, monkeypatch)
        np.testing.assert_allclose(found, np.rot90(plain, 1, (1, 2)), atol=1e-5)


def test_patches__rotated_when_cut_out_have_corners_of_what_comes_in(monkeypatch):
    cut = patches(Way("some", cut=BLACK), 45.0, monkeypatch)
    assert not cut[:, [0, 0, -1, -1], [0, -1, 0, -1]].any()
    corners = patches(Way("some", cut=MEAN), 45.0, monkeypatch)[:, [0, 0, -1, -1], [0, -1, 0, -1]]
    means = patches(Way("some", cut=MEAN), 0.0, monkeypatch).mean((1, 2))
    np.testing.assert_allclose(corners, np.tile(means, (4, 1)).T, rtol=1e-5)
    inside = patches(Way("some"), 45.0, monkeypatch)
    assert inside[:, [0, 0, -1, -1], [0, -1, 0, -1]].all()


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_atoms__have_norm_one_and_code_their_own_patches(way):
    if way.learner != room.OURS:
        pytest.importorskip("spams")
    y, _ = np.mgrid[:40, :40]
    classes = [[np.float32(0.5 + 0.4 * np.sin(f * y + p)) for p in range(2)] for f in (0.4, 1.3)]
    atoms = learn_atoms(way, classes, replace(QUICK, n_atoms=3))
    assert atoms.shape == (2, 3, pixels_of(way).sum())
    norms = np.linalg.norm(atoms, axis=2)
    assert ((np.abs(norms - 1) < 1e-4) | (norms == 0)).all()
    counts = room._counts(way, atoms, open_images([one for some in classes for one in some]), QUICK)
    windows = ((40 - SIDE) // QUICK.stride + 1) ** 2
    assert counts.sum(axis=(1, 2)).tolist() == [windows] * 4


def test_seen__images_turn_as_patches_do_and_the_other_way(monkeypatch):
    monkeypatch.setattr(room, "ANGLES", (90.0,))
    plain = resampled(GREY.astype(np.float64), 0.0, 1.0)
    data = read_inputs([GREY], ["a"])
    found = {view: images[0].whole() for view, images in room._seen(Halves("", data, data))}
    np.testing.assert_array_equal(found[UPRIGHT], GREY)
    # as `test_patches__a_quarter_turn_is_exact_either_way` has it for patches
    np.testing.assert_allclose(found[LIKE], np.rot90(plain, 1), atol=1e-5)
    np.testing.assert_allclose(found[AGAINST], np.rot90(plain, -1), atol=1e-5)
