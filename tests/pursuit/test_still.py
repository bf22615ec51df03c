"""Atoms that do not turn: coded by their Gram matrix, as by the kernel of those that do."""

import numpy as np
import pytest

import dsc
from dsc.pursuit import Coder, coder, rotating, single, still


def both_ways(monkeypatch, coords, atoms, basis, sparsity, tolerance=0.0):
    """The codes by the Gram matrix, and by the kernels of turning atoms."""
    assert Coder(atoms, basis, 1, 1)._pursuit[0] is still.pursue
    by_gram = dsc.encode(coords, atoms, basis, sparsity, 1, tolerance)
    monkeypatch.setattr(coder, "MOST_STILL", 0)
    assert Coder(atoms, basis, 2, 1)._pursuit[0] is rotating.pursue
    by_angles = dsc.encode(coords, atoms, basis, sparsity, 1, tolerance)
    return by_gram, by_angles


def assert_same_codes(one, other):
    same = (one.atom == other.atom).all(1)
    assert same.mean() >= 0.999
    scale = np.abs(other.coef).max()
    np.testing.assert_allclose(one.coef[same], other.coef[same], atol=1e-6 * scale)
    np.testing.assert_allclose(one.error, other.error, rtol=1e-5, atol=1e-9 * scale**2)


@pytest.mark.parametrize("sparsity", [1, 2, 5, 12])
@pytest.mark.parametrize("n_atoms", [1, 7, 8, 9, 40])
@pytest.mark.parametrize("make", [dsc.pixel_basis, dsc.disk_basis])
def test_still__codes_as_the_kernel_of_turning_atoms(
    monkeypatch, natural_coords, make, n_atoms, sparsity
):
    basis = make(9)
    coords = natural_coords(basis, 400)
    atoms = dsc.random_atoms(basis, n_atoms, seed=1)
    one, other = both_ways(monkeypatch, coords, atoms, basis, sparsity)
    assert_same_codes(one, other)
    if n_atoms >= sparsity:
        assert one.used.all()


def test_still__stops_at_the_tolerance_as_the_kernel_of_turning_atoms(monkeypatch, natural_coords):
    basis = dsc.pixel_basis(9)
    coords = natural_coords(basis, 400)
    tolerance = 0.75 * float(np.median((coords.astype(np.float64) ** 2).sum(1)))
    atoms = dsc.random_atoms(basis, 20, seed=1)
    one, other = both_ways(monkeypatch, coords, atoms, basis, 6, tolerance)
    assert_same_codes(one, other)
    assert 0.05 < one.used.mean() < 0.95


def test_still__twin_atoms_go_to_the_lowest_wherever_they_stand(natural_coords):
    basis = dsc.pixel_basis(7)
    coords = natural_coords(basis, 200)
    atoms = dsc.random_atoms(basis, 24, seed=2)
    twins = np.concatenate([atoms, -atoms])[np.random.default_rng(0).permutation(48)]
    lowest = np.abs(twins @ twins.T).round(4).argmax(1)
    codes = dsc.encode(coords, twins, basis, 3)
    assert codes.used.all()
    np.testing.assert_array_equal(lowest[codes.atom], codes.atom)


def test_still__the_atoms_of_a_large_dictionary_need_no_gram_matrix():
    basis = dsc.pixel_basis(3)
    atoms = dsc.random_atoms(basis, coder.MOST_STILL + 1, seed=0)
    assert Coder(atoms, basis, 1, 1)._pursuit[0] is single.pursue
    codes = dsc.encode(atoms[[5, coder.MOST_STILL]], atoms, basis, 1)
    assert codes.atom.ravel().tolist() == [5, coder.MOST_STILL]


def test_still__a_planted_code_is_found(natural_coords):
    basis = dsc.pixel_basis(15)
    atoms = dsc.random_atoms(basis, 30, seed=3)
    patch = 3 * atoms[4] - 2 * atoms[21] + atoms[9]
    codes = dsc.encode(patch[None], atoms, basis, 6)
    assert codes.atom[0].tolist() == [4, 21, 9] + [dsc.EMPTY] * 3
    np.testing.assert_allclose(codes.coef[0, :3], [3, -2, 1], rtol=1e-5)
