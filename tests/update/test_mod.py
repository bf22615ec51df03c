"""`mod`: exact joint least squares for all atoms at fixed codes."""

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dsc
from dsc.update.atoms import joint_least_squares

BASES = {
    "disk": dsc.disk_basis(5),
    "annular": dsc.annular_basis(4),
    "disk low": dsc.disk_basis(9).lowpass(0.5),
    "pixels": dsc.pixel_basis(4),
}


@st.composite
def coded(draw):
    """(coords, codes, atoms, basis)."""
    basis = BASES[draw(st.sampled_from(sorted(BASES)))]
    seed = draw(st.integers(0, 2**32))
    n_patches = draw(st.integers(1, 60))
    coords = np.random.default_rng(seed).standard_normal((n_patches, basis.n_coords))
    atoms = dsc.random_atoms(basis, draw(st.integers(1, 5)), seed=seed % 1000 + 1)
    n_angles = draw(st.sampled_from([1, 5, 8, 60]))
    codes = dsc.encode(coords, atoms, basis, draw(st.integers(1, 4)), n_angles)
    return coords.astype(np.float32), codes, atoms, basis


def corrected(coords, codes, atoms, basis):
    statistics = dsc.accumulate(coords, codes, atoms, basis, "mod")
    return joint_least_squares(statistics, atoms.astype(np.float64), basis)


def error_at(coords, codes, atoms, basis):
    return ((coords - oracles.decode(codes, atoms, basis.frequency)) ** 2).sum()


@given(case=coded())
def test_mod__never_increases_the_error_at_fixed_codes(case):
    coords, codes, _, basis = case
    before = error_at(*case)
    after = error_at(coords, codes, corrected(*case), basis)
    assert after <= before + 1e-6 * (coords.astype(float) ** 2).sum()


@given(case=coded())
def test_mod__is_the_dense_least_squares_solution(case):
    coords, codes, atoms, basis = case
    operator = oracles.code_operator(codes, len(atoms), basis.frequency)
    residual = coords - (operator @ atoms.astype(np.float64).ravel()).reshape(coords.shape)
    change = np.linalg.lstsq(operator, residual.ravel(), rcond=1e-5)[0]
    dense = atoms + change.reshape(atoms.shape)
    least = error_at(coords, codes, dense, basis)
    energy = (coords.astype(float) ** 2).sum()
    new = corrected(*case)
    assert abs(error_at(coords, codes, new, basis) - least) <= 1e-6 * energy
    values = np.linalg.svd(operator, compute_uv=False)
    if values[-1] > 1e-2 * values[0]:  # one solution only
        np.testing.assert_allclose(new, dense, atol=1e-4)


@pytest.mark.parametrize("n_angles", [7, 12])
def test_mod__equals_dense_least_squares_with_repeated_atoms(n_angles):
    basis = dsc.disk_basis(5)
    coords = np.random.default_rng(0).standard_normal((120, basis.n_coords)).astype(np.float32)
    atoms = dsc.random_atoms(basis, 2, seed=1)
    codes = dsc.encode(coords, atoms, basis, 3, n_angles)  # three slots, two atoms
    operator = oracles.code_operator(codes, 2, basis.frequency)
    dense = np.linalg.lstsq(operator, coords.ravel().astype(float), rcond=None)[0]
    new = corrected(coords, codes, atoms, basis)
    np.testing.assert_allclose(new, dense.reshape(new.shape), atol=1e-5)
    solved = dsc.solve(dsc.accumulate(coords, codes, atoms, basis, "mod"), atoms, basis)
    unit = new / np.linalg.norm(new, axis=1, keepdims=True)
    np.testing.assert_allclose(solved, unit, atol=1e-5)


def test_mod__unused_atoms_get_no_correction():
    basis = dsc.disk_basis(5)
    atoms = dsc.random_atoms(basis, 3, seed=0)
    coords = 2 * basis.steer(atoms[[0, 2, 0, 2]], [0.0, 0.5, 1.0, 2.0])
    codes = dsc.encode(coords, atoms, basis, 1)
    assert set(codes.atom.ravel()) == {0, 2}
    np.testing.assert_array_equal(corrected(coords, codes, atoms, basis)[1], atoms[1])


def test_mod__one_atom_per_patch_at_angle_zero_is_a_weighted_mean():
    basis = dsc.pixel_basis(5)
    rng = np.random.default_rng(0)
    atoms = dsc.random_atoms(basis, 1, seed=0)
    coords = rng.uniform(1, 2, (50, 1)) * atoms + 0.1 * rng.standard_normal((50, basis.n_coords))
    codes = dsc.encode(coords, atoms, basis, 1)
    a = codes.coef.astype(float)
    expected = (a * coords).sum(0) / (a**2).sum()
    np.testing.assert_allclose(corrected(coords, codes, atoms, basis)[0], expected, atol=1e-6)


def test_mod__iterations_lower_the_error(natural_coords):
    basis = dsc.disk_basis(11)
    coords = natural_coords(basis, 1500)
    atoms = dsc.random_atoms(basis, 8, seed=0)
    errors = []
    for _ in range(5):
        codes = dsc.encode(coords, atoms, basis, 3)
        errors.append(codes.error.sum(dtype=float))
        atoms = dsc.solve(dsc.accumulate(coords, codes, atoms, basis, "mod"), atoms, basis)
    assert errors[-1] < 0.5 * errors[0]
