"""Unused atoms start again from patches that differ, from each other and from all atoms."""

import numpy as np
import oracles
import pytest
from numpy.lib.stride_tricks import sliding_window_view

import dsc
from dsc.update import WorstPatches
from dsc.update.atoms import ALIKE, restart


def likeness(atoms, basis):
    """The largest |correlation| of two of the atoms at any rotation."""
    found = oracles.likeness(atoms, atoms, basis.frequency)
    np.fill_diagonal(found, 0)
    return found.max()


def worst_of(residual):
    error = np.arange(len(residual), 0, -1).astype(np.float32)
    return WorstPatches.of(error, np.asarray(residual, np.float32), 0, len(residual))


def restarted(atoms, lost, residual, basis):
    lost = np.isin(np.arange(len(atoms)), lost)
    return restart(np.asarray(atoms, np.float64), lost, worst_of(residual), basis)


@pytest.fixture
def basis():
    return dsc.disk_basis(9)


def test_restart__takes_the_worst_in_their_order(basis):
    atoms, residual = dsc.random_atoms(basis, 5), 3 * dsc.random_atoms(basis, 4, seed=1)
    new = restarted(atoms, [1, 3], residual, basis)
    np.testing.assert_allclose(new[[1, 3]], residual[:2] / 3, atol=1e-6)
    np.testing.assert_array_equal(new[[0, 2, 4]], atoms[[0, 2, 4]])


def test_restart__passes_over_what_is_like_another_at_some_rotation(basis):
    atoms, residual = dsc.random_atoms(basis, 5), dsc.random_atoms(basis, 2, seed=1)
    same = basis.steer(residual[:1], 1.234)
    candidates = np.concatenate(
        [basis.steer(atoms[:1], 2.5), residual[:1], -same, 2 * same, atoms[1:2], residual[1:]]
    )
    new = restarted(atoms, [1, 3], candidates, basis)
    np.testing.assert_allclose(new[[1, 3]], residual, atol=1e-6)


def test_restart__leaves_those_that_are_apart_where_patches_are_not_enough(basis):
    atoms = dsc.random_atoms(basis, 5)
    residual = dsc.random_atoms(basis, 1, seed=1)
    new = restarted(atoms, [1, 3, 4], np.repeat(residual, 6, axis=0), basis)
    np.testing.assert_allclose(new[1], residual[0], atol=1e-6)
    np.testing.assert_array_equal(new[[0, 2, 3, 4]], atoms[[0, 2, 3, 4]])


@pytest.mark.parametrize("n_angles", [1, 60])
def test_restart__goes_anywhere_rather_than_be_the_same(n_angles):
    basis = dsc.pixel_basis(5) if n_angles == 1 else dsc.disk_basis(9)
    atoms = np.repeat(dsc.random_atoms(basis, 1), 8, axis=0)
    new = restarted(atoms, range(1, 8), atoms, basis)
    assert likeness(new, basis) < ALIKE
    np.testing.assert_allclose(np.linalg.norm(new, axis=1), 1, atol=1e-12)
    np.testing.assert_array_equal(new, restarted(atoms, range(1, 8), atoms, basis))
    other = restarted(basis.steer(atoms, 0.5 * (n_angles > 1)) * -1, range(1, 8), atoms, basis)
    assert (np.abs((new * other).sum(1))[1:] < 0.999).all()


def test_restart__in_few_dimensions_atoms_are_as_different_as_draws_get():
    basis = dsc.disk_basis(3)
    atoms = np.repeat(dsc.random_atoms(basis, 1), 12, axis=0)
    new = restarted(atoms, range(1, 12), atoms, basis)
    assert np.isfinite(new).all()
    assert len(np.unique(new, axis=0)) == 12


@pytest.fixture(scope="module", params=["ksvd", "mod"])
def repeated(request, image):
    """A dictionary of 20 atoms from an image that repeats a few pixels exactly."""
    grey = np.tile(image("brick")[100:108, 200:208], (12, 12))
    windows = sliding_window_view(grey, (11, 11)).reshape(-1, 11, 11)
    options = {"n_iterations": 6, "update": request.param, "progress": False}
    return dsc.learn(windows, 20, 4, **options), windows, options


def test_learn__from_exact_repetitions_has_no_two_atoms_alike(repeated):
    model, _, options = repeated
    assert likeness(model.atoms, model.basis) < 0.999
    if options["update"] == "ksvd":
        unused = model.atoms[model.count == 0]
        assert len(unused) > 1
        assert likeness(unused, model.basis) < ALIKE + 0.02  # found on a grid of angles


def test_learn__says_how_many_atoms_are_unused(repeated):
    model, _, _ = repeated
    assert model.n_unused == (model.count == 0).sum()
    assert model.card().numbers["unused atoms"] == str(model.n_unused)


def test_learn__from_exact_repetitions_has_the_same_bits_on_two_workers(repeated):
    model, windows, options = repeated
    again = dsc.learn(windows, 20, 4, scheduler="threads", n_workers=2, **options)
    assert again.sha256 == model.sha256
    alone = dsc.learn(windows, 20, 4, scheduler="synchronous", **options)
    assert alone.sha256 == model.sha256
