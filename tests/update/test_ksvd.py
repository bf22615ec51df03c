"""`ksvd` against the SVD of explicit Y_m, and what becomes of unused atoms."""

import numpy as np
import oracles
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dsc

BASES = {
    "disk": dsc.disk_basis(7),
    "annular": dsc.annular_basis(7),
    "pixels": dsc.pixel_basis(6),
}


def unit(rows):
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def assert_tops_of_svd(new, coords, codes, atoms, basis):
    for m in range(len(atoms)):
        occurrences = oracles.aligned_occurrences(coords, codes, atoms, basis.frequency, m)
        if not len(occurrences):
            continue
        _, values, right = np.linalg.svd(occurrences, full_matrices=False)
        if len(values) > 1 and values[1] > 0.98 * values[0]:
            continue  # no well-defined first singular vector
        expected = right[0] * (1 if right[0] @ atoms[m] >= 0 else -1)
        np.testing.assert_allclose(new[m], expected, atol=1e-4)


@given(
    name=st.sampled_from(sorted(BASES)),
    n_atoms=st.integers(1, 5),
    sparsity=st.integers(1, 4),
    n_angles=st.sampled_from([1, 6, 7, 60]),
    seed=st.integers(0, 2**32),
)
def test_ksvd__gives_the_first_singular_vector(name, n_atoms, sparsity, n_angles, seed):
    basis = BASES[name]
    coords = np.random.default_rng(seed).standard_normal((200, basis.n_coords)).astype(np.float32)
    atoms = dsc.random_atoms(basis, n_atoms, seed=seed % 1000 + 1)
    codes = dsc.encode(coords, atoms, basis, sparsity, n_angles)
    new = dsc.solve(dsc.accumulate(coords, codes, atoms, basis, "ksvd"), atoms, basis)
    assert new.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(new, axis=1), 1, atol=1e-6)
    assert_tops_of_svd(new, coords, codes, atoms, basis)


@pytest.mark.parametrize("diameter", [3, 5, 6, 7, 9])
@pytest.mark.parametrize("n_atoms", [1, 3, 40])
def test_scatter__is_the_lower_triangle_of_the_sum_of_products(diameter, n_atoms):
    basis = dsc.disk_basis(diameter)
    coords = np.random.default_rng(diameter).standard_normal((400, basis.n_coords))
    atoms = dsc.random_atoms(basis, n_atoms)
    codes = dsc.encode(coords, atoms, basis, 2)
    found = dsc.accumulate(coords, codes, atoms, basis).scatter
    lower = np.tril_indices(basis.n_coords)
    assert found.shape == (n_atoms, len(lower[0]))
    for m in range(n_atoms):
        rows = oracles.aligned_occurrences(coords, codes, atoms, basis.frequency, m)
        np.testing.assert_allclose(found[m], (rows.T @ rows)[lower], rtol=1e-5, atol=1e-3)


def test_ksvd__natural_patches(natural_coords, learned_atoms):
    basis = dsc.disk_basis(11)
    coords, atoms = natural_coords(basis, 1500)[:500], learned_atoms(basis)
    codes = dsc.encode(coords, atoms, basis, 3)
    statistics = dsc.accumulate(coords, codes, atoms, basis)
    assert_tops_of_svd(dsc.solve(statistics, atoms, basis), coords, codes, atoms, basis)


def test_ksvd__is_the_default_update():
    basis = dsc.disk_basis(7)
    coords, atoms = dsc.random_atoms(basis, 40, seed=0), dsc.random_atoms(basis, 2, seed=1)
    codes = dsc.encode(coords, atoms, basis, 2)
    default, ksvd, mod = (
        dsc.solve(dsc.accumulate(coords, codes, atoms, basis, *update), atoms, basis)
        for update in ([], ["ksvd"], ["mod"])
    )
    np.testing.assert_array_equal(default, ksvd)
    assert np.abs(default - mod).max() > 1e-3


def test_ksvd__a_repeated_atom_counts_once_per_patch():
    # one atom in four slots: Y has as many rows as patches, not as occurrences
    basis = dsc.disk_basis(7)
    coords = np.random.default_rng(0).standard_normal((60, basis.n_coords)).astype(np.float32)
    atoms = dsc.random_atoms(basis, 1, seed=1)
    codes = dsc.encode(coords, atoms, basis, 4)
    assert (codes.atom == 0).all()
    assert len(oracles.aligned_occurrences(coords, codes, atoms, basis.frequency, 0)) == 60
    statistics = dsc.accumulate(coords, codes, atoms, basis)
    assert_tops_of_svd(dsc.solve(statistics, atoms, basis), coords, codes, atoms, basis)


@pytest.mark.parametrize("update", ["ksvd", "mod"])
@given(seed=st.integers(0, 999))
@settings(max_examples=15)
def test_solve__new_atoms_keep_the_sign_closest_to_the_old(update, seed):
    basis = dsc.disk_basis(7)
    old = dsc.random_atoms(basis, 3, seed=seed)
    rng = np.random.default_rng(seed)
    coords = rng.choice([-1, 1], (150, 1)) * old[rng.integers(0, 3, 150)]  # signs at random
    coords = coords + 0.05 * rng.standard_normal(coords.shape)
    start = unit(old + 0.03 * rng.standard_normal(old.shape))
    codes = dsc.encode(coords, start, basis, 1)
    new = dsc.solve(dsc.accumulate(coords, codes, start, basis, update), start, basis)
    assert ((new * start).sum(1) > 0.9).all()


@pytest.fixture(params=["ksvd", "mod"])
def unused(request):
    """(statistics, atoms, basis, coords): atoms 1 and 3 of five are never used."""
    basis = dsc.disk_basis(7)
    frequency = basis.frequency
    atoms = dsc.random_atoms(basis, 5, seed=0)
    atoms[[1, 3]] *= frequency == 3
    atoms[[0, 2, 4]] *= frequency < 2
    atoms = unit(atoms)
    rng = np.random.default_rng(1)
    coords = atoms[rng.choice([0, 2, 4], 60)] + 0.1 * (frequency < 2) * rng.standard_normal(
        (60, basis.n_coords)
    )
    unseen = rng.standard_normal((2, basis.n_coords)) * (frequency == 2)  # no atom sees these
    coords[[17, 40]] = unit(unseen) * [[5.0], [7.0]]
    coords = coords.astype(np.float32)
    codes = dsc.encode(coords, atoms, basis, 1)
    assert set(codes.atom[codes.used]) == {0, 2, 4}
    return dsc.accumulate(coords, codes, atoms, basis, request.param), atoms, basis, coords


def test_solve__unused_atoms_restart_from_the_worst_coded_patches(unused):
    statistics, atoms, basis, coords = unused
    assert statistics.usage.count.tolist()[1::2] == [0, 0]
    assert statistics.usage.count.sum() == 58
    new = dsc.solve(statistics, atoms, basis)
    np.testing.assert_allclose(new[[1, 3]], unit(coords[[40, 17]]), atol=1e-6)
    assert ((new * atoms).sum(1)[[0, 2, 4]] > 0.9).all()


@pytest.mark.parametrize("update", ["ksvd", "mod"])
def test_solve__unused_atoms_stay_when_every_patch_is_coded_perfectly(update):
    basis = dsc.pixel_basis(5)
    atoms = np.eye(basis.n_coords, dtype=np.float32)[:4]
    coords = 2 * atoms[[0, 2, 0]]
    codes = dsc.encode(coords, atoms, basis, 1)
    new = dsc.solve(dsc.accumulate(coords, codes, atoms, basis, update), atoms, basis)
    np.testing.assert_allclose(new, atoms, atol=1e-6)


@pytest.mark.parametrize("update", ["ksvd", "mod"])
def test_solve__zero_patches_leave_the_atoms_alone(update):
    basis = dsc.disk_basis(7)
    atoms = dsc.random_atoms(basis, 3, seed=0)
    coords = np.zeros((20, basis.n_coords))
    codes = dsc.encode(coords, atoms, basis, 2)
    new = dsc.solve(dsc.accumulate(coords, codes, atoms, basis, update), atoms, basis)
    np.testing.assert_array_equal(new, atoms)


def test_ksvd__iterations_lower_the_error(natural_coords):
    basis = dsc.disk_basis(11)
    coords = natural_coords(basis, 1500)
    atoms = dsc.random_atoms(basis, 8, seed=0)
    errors = []
    for _ in range(5):
        codes = dsc.encode(coords, atoms, basis, 3)
        statistics = dsc.accumulate(coords, codes, atoms, basis)
        errors.append(statistics.usage.sse)
        atoms = dsc.solve(statistics, atoms, basis)
    assert errors[-1] < 0.5 * errors[0]
    np.testing.assert_allclose(statistics.usage.sse, codes.error.sum(dtype=float), rtol=1e-6)
