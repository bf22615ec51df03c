"""What the experiments are made of."""

import numpy as np
import pytest
from scipy import ndimage

import dsc
from dsc.experiments.basis_trials import pair_basis
from dsc.experiments.data import LabelledImage, coding_patches
from dsc.experiments.learning import rotated_groups
from dsc.experiments.rotating import cut_rotated, interpolate, rotated_disks
from dsc.experiments.sweeps import flat_from
from dsc.experiments.textures import comma_image


@pytest.fixture(scope="module")
def comma():
    return LabelledImage("comma", comma_image(21))


def test_cut_rotated__a_quarter_turn_is_rot90(comma):
    here = np.array([31.0])
    mask = dsc.disk_basis(21).mask
    still, turned = (cut_rotated(comma, here, here, np.array([t]), 21)[0] for t in (0, np.pi / 2))
    square = np.zeros(mask.shape)
    square[mask] = still
    np.testing.assert_allclose(turned, np.rot90(square)[mask], atol=1e-9)
    np.testing.assert_allclose(still, comma.grey[21:42, 21:42][mask], atol=1e-9)


def test_interpolate__approaches_the_truth(comma):
    disks = rotated_disks([comma], 9, per_image=30, n_rotations=5)
    bicubic, nearest = (disks.error(interpolate(disks, 9, m)) for m in ("bicubic", "nearest"))
    assert bicubic < 0.05 < disks.error(disks.before)
    assert bicubic < nearest


def test_pair_basis__gives_smooth_patches_back_and_rotates_by_quarters():
    pair = pair_basis(9, 120)  # more coordinates than the 69 pixels
    noise = np.random.default_rng(0).normal(size=(4, 9, 9))
    patches = ndimage.gaussian_filter(noise, (0, 1, 1))
    coords = pair.project(patches)
    np.testing.assert_allclose(pair.reconstruct(coords), patches[:, pair.mask], atol=0.01)
    quarter = pair.project(np.rot90(patches, axes=(1, 2)))
    np.testing.assert_allclose(pair.steer(coords, np.pi / 2), quarter, atol=1e-5)


def test_rotated_groups__finds_planted_rotations():
    basis = dsc.disk_basis(11)
    atoms = dsc.random_atoms(basis, 4, seed=2)
    coords = np.concatenate([atoms, basis.steer(atoms[1:2], 1.0), -basis.steer(atoms[1:2], 2.5)])
    images = basis.to_image(coords) + 0.3  # a mean makes no difference
    assert rotated_groups(images) == [[1, 4, 5]]


@pytest.mark.parametrize(("errors", "place"), [([3, 1.04, 1], 2), ([3, 2, 1], 3), ([1, 2, 1], 3)])
def test_flat_from__needs_all_later_errors_to_stay(errors, place):
    assert flat_from([1, 2, 3], errors) == place


def test_coding_patches__are_filtered_unit_and_labelled():
    with coding_patches("cameraman", "cc0", 11, 500) as (label, patches):
        assert label.startswith("camera (CC0) in place of cameraman, 500 random patches of ")
        assert patches.n_patches == 500
        np.testing.assert_allclose(np.linalg.norm(patches.pixels(0, 500), axis=1), 1, rtol=1e-5)
