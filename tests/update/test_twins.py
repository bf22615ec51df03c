"""Twin atoms: found at any rotation and either sign, the less used one restarted, on request."""

import numpy as np
import oracles
import pytest

import dsc
from dsc.update.atoms import rotation_correlations


def unit(rows):
    return (rows / np.linalg.norm(rows, axis=-1, keepdims=True)).astype(np.float32)


TWIN_ANGLE = 1.234  # between the angles of the grid
KEPT, TWIN, OTHER = 0, 2, 3


@pytest.fixture(params=["ksvd", "mod"])
def twins(request):
    """(statistics, atoms, basis, odd): atom 2 is nearly atom 0 turned and negated, used less.

    Patches are turned atoms, so the update leaves them as they are; `odd` is one that no atom
    sees.
    """
    basis = dsc.disk_basis(9)
    atoms = dsc.random_atoms(basis, 4, seed=2) * (basis.frequency != 4)
    atoms = unit(atoms)
    change = dsc.random_atoms(basis, 1, seed=9)[0] * (basis.frequency != 4)
    atoms[TWIN] = unit(-basis.steer(atoms[[KEPT]], TWIN_ANGLE)[0] + 0.4 * change)
    rng = np.random.default_rng(0)
    used = np.repeat([0, 1, 2, 3], [40, 20, 10, 20])
    coords = 2 * basis.steer(atoms[used], rng.integers(0, 60, used.size) * np.pi / 30)
    odd = unit(dsc.random_atoms(basis, 1, seed=5)[0] * (basis.frequency == 4))
    coords = np.concatenate([coords, 3 * odd[None]])
    codes = dsc.encode(coords, atoms, basis, 1)
    np.testing.assert_array_equal(codes.atom[:-1, 0], used)
    statistics = dsc.accumulate(coords, codes, atoms, basis, request.param)
    return statistics, atoms, basis, odd


def test_twins__are_kept_by_default(twins):
    statistics, atoms, basis, _ = twins
    np.testing.assert_allclose(dsc.solve(statistics, atoms, basis), atoms, atol=1e-4)


def test_replace_twins__restarts_the_less_used_one_from_the_worst_residual(twins):
    statistics, atoms, basis, odd = twins
    likeness = oracles.likeness(atoms, atoms, basis.frequency)[KEPT, TWIN]
    assert 0.9 < likeness < 0.97
    new = dsc.solve(statistics, atoms, basis, replace_twins=0.8)
    np.testing.assert_allclose(new[TWIN], odd, atol=1e-5)
    rest = [m for m in range(4) if m != TWIN]
    np.testing.assert_allclose(new[rest], atoms[rest], atol=1e-4)


def test_replace_twins__keeps_those_less_alike_than_the_threshold(twins):
    statistics, atoms, basis, _ = twins
    new = dsc.solve(statistics, atoms, basis, replace_twins=0.99)
    np.testing.assert_allclose(new, atoms, atol=1e-4)


def test_replace_twins__of_three_alike_one_stays():
    basis = dsc.disk_basis(9)
    atom = dsc.random_atoms(basis, 1, seed=0) * (basis.frequency != 4)
    atom = unit(atom)
    atoms = np.concatenate([basis.steer(atom, theta) for theta in (0.0, 0.5, 2.0)])
    odd = unit(dsc.random_atoms(basis, 2, seed=5) * (basis.frequency == 4))
    coords = np.concatenate([atoms[[1, 1, 1, 0, 0, 2]], [[3.0], [2.0]] * odd])
    codes = dsc.encode(coords, atoms, basis, 1)
    statistics = dsc.accumulate(coords, codes, atoms, basis)
    assert statistics.usage.count.tolist() == [2, 3, 1]
    new = dsc.solve(statistics, atoms, basis, replace_twins=0.8)
    np.testing.assert_allclose(new, [odd[0], atoms[1], odd[1]], atol=1e-4)


def test_rotation_correlations__are_the_largest_over_all_rotations():
    basis = dsc.disk_basis(11)
    atoms = dsc.random_atoms(basis, 6, seed=0)
    atoms[5] = -basis.steer(atoms[:1], 2.345)[0]
    found = rotation_correlations(atoms.astype(np.float64), basis)
    true = oracles.likeness(atoms, atoms, basis.frequency, n_angles=1000)
    assert (found <= true + 1e-4).all()
    assert (found >= true - 0.03).all()
    assert found[0, 5] > 0.97
    np.testing.assert_allclose(found, found.T, atol=0.03)
