"""`encode` against a plain float64 pursuit on the explicit augmented dictionary, and others'."""

import numpy as np
import oracles
import pytest
from sklearn.linear_model import orthogonal_mp

import dsc
from dsc.pursuit import tables

ALL_ANGLES = (1, 2, 3, 4, 5, 6, 7, 8, 12, 60, 61, 62, 64, 90, 180)


PURSUITS = ("ols", "omp")


def assert_same_as_oracle(coords, atoms, basis, sparsity, n_angles, pursuit):
    codes = dsc.encode(coords, atoms, basis, sparsity, n_angles, pursuit=pursuit)
    plain = oracles.pursue(coords, atoms, basis.frequency, sparsity, n_angles, pursuit=pursuit)
    forked, gaps = oracles.forks(
        coords, atoms, basis.frequency, n_angles, (codes.atom, codes.angle), plain[:2], pursuit
    )
    assert len(forked) <= 0.001 * len(coords)
    np.testing.assert_array_less(gaps, 1e-5)
    same = np.setdiff1d(np.arange(len(coords)), forked)
    size = np.abs(plain.coef[same]).max(1, keepdims=True)
    np.testing.assert_allclose(codes.coef[same] / size, plain.coef[same] / size, atol=1e-4)
    np.testing.assert_allclose(codes.error[same], plain.error[same], rtol=1e-5)


@pytest.mark.parametrize("pursuit", PURSUITS)
@pytest.mark.parametrize("n_angles", ALL_ANGLES)
def test_encode__chooses_as_the_oracle(n_angles, pursuit, natural_coords, learned_atoms):
    basis = dsc.disk_basis(11)
    coords = natural_coords(basis, 1000)
    assert_same_as_oracle(coords, learned_atoms(basis), basis, 4, n_angles, pursuit)


@pytest.mark.parametrize("pursuit", PURSUITS)
def test_encode__chooses_as_the_oracle_with_the_mean_kept(pursuit, natural_coords, learned_atoms):
    basis = dsc.disk_basis(11)
    coords = natural_coords(basis, 2000, mean_removed=False)
    atoms = learned_atoms(basis, n_atoms=7, mean_removed=False)
    assert_same_as_oracle(coords, atoms, basis, 4, 60, pursuit)


@pytest.mark.parametrize("pursuit", PURSUITS)
@pytest.mark.parametrize("n_angles", [5, 60])
@pytest.mark.parametrize(
    "basis",
    [
        pytest.param(dsc.annular_basis(11), id="annular 11"),
        pytest.param(dsc.disk_basis(11).lowpass(0.5), id="disk low 11"),
        pytest.param(dsc.disk_basis(15), id="disk 15"),
        pytest.param(dsc.disk_basis(8), id="disk 8"),
        pytest.param(dsc.pixel_basis(11), id="pixels 11"),
    ],
)
def test_encode__chooses_as_the_oracle_in_every_basis(
    basis, n_angles, pursuit, natural_coords, learned_atoms
):
    coords = natural_coords(basis, 1000)
    assert_same_as_oracle(coords, learned_atoms(basis), basis, 3, n_angles, pursuit)


@pytest.mark.parametrize("pursuit", PURSUITS)
@pytest.mark.parametrize(("n_atoms", "n_angles"), [(1, 20), (1, 250), (2, 20), (3, 128), (17, 20)])
def test_encode__chooses_as_the_oracle_for_any_number_of_atoms(n_atoms, n_angles, pursuit):
    basis = dsc.disk_basis(7)
    coords = np.random.default_rng(0).standard_normal((1000, basis.n_coords)).astype(np.float32)
    atoms = dsc.random_atoms(basis, n_atoms, seed=1)
    assert_same_as_oracle(coords, atoms, basis, 5, n_angles, pursuit)


@pytest.mark.parametrize("pursuit", PURSUITS)
def test_encode__chooses_as_the_oracle_without_a_table_of_pairs(
    monkeypatch, pursuit, natural_coords, learned_atoms
):
    basis = dsc.disk_basis(11)
    coords, atoms = natural_coords(basis, 1000), learned_atoms(basis)
    with_table = dsc.encode(coords, atoms, basis, 4, pursuit=pursuit)
    monkeypatch.setattr(tables, "MOST_PAIRS", 0)
    assert_same_as_oracle(coords, atoms, basis, 4, 60, pursuit)
    without = dsc.encode(coords, atoms, basis, 4, pursuit=pursuit)
    assert (with_table.atom == without.atom).mean() > 0.999


@pytest.mark.parametrize(("n_angles", "ratio"), [(1, 1.0), (60, 0.98)])
def test_encode__least_squares_leave_less_than_matching(
    n_angles, ratio, natural_coords, learned_atoms
):
    basis = dsc.disk_basis(11)
    coords, atoms = natural_coords(basis, 3000), learned_atoms(basis)
    ols, omp = (
        dsc.encode(coords, atoms, basis, 4, n_angles, pursuit=pursuit) for pursuit in PURSUITS
    )
    assert ols.error.mean() < ratio * omp.error.mean()
    one, other = (
        dsc.encode(coords, atoms, basis, 1, n_angles, pursuit=pursuit) for pursuit in PURSUITS
    )
    np.testing.assert_array_equal(one.atom, other.atom)
    np.testing.assert_array_equal(one.coef, other.coef)


def test_encode__refuses_a_pursuit_that_it_does_not_know():
    basis = dsc.disk_basis(5)
    atoms = dsc.random_atoms(basis, 2)
    with pytest.raises(dsc.DscError, match="pursuit"):
        dsc.encode(atoms, atoms, basis, 1, pursuit="lars")


@pytest.mark.parametrize("n_angles", [None, 1])
def test_encode__pixels_with_one_angle_are_standard_omp(n_angles, natural_coords):
    basis = dsc.pixel_basis(9)
    coords = natural_coords(basis, 400)
    atoms = dsc.random_atoms(basis, 40, seed=0)
    codes = dsc.encode(coords, atoms, basis, 5, n_angles, pursuit="omp")
    assert codes.n_angles == 1
    assert not codes.angle.any()
    dense = np.zeros((len(coords), len(atoms)))
    np.put_along_axis(dense, codes.atom.astype(int), codes.coef, axis=1)
    expected = orthogonal_mp(
        atoms.T.astype(np.float64), coords.T.astype(np.float64), n_nonzero_coefs=5
    ).T
    same = ((dense != 0) == (expected != 0)).all(1)
    assert same.mean() >= 0.999
    np.testing.assert_allclose(dense[same], expected[same], atol=1e-5 * np.abs(expected).max())


def test_encode__default_grid_has_sixty_angles():
    basis = dsc.disk_basis(7)
    coords = np.random.default_rng(0).standard_normal((50, basis.n_coords)).astype(np.float32)
    atoms = dsc.random_atoms(basis, 2, seed=0)
    default, explicit = dsc.encode(coords, atoms, basis, 2), dsc.encode(coords, atoms, basis, 2, 60)
    assert default.n_angles == explicit.n_angles == 60
    np.testing.assert_array_equal(default.angle, explicit.angle)
    assert default.angle.max() > 30


def test_encode__finds_a_turned_atom_exactly():
    basis = dsc.disk_basis(11)
    atoms = dsc.random_atoms(basis, 5, seed=0)
    for n_angles in (7, 12, 60, 61):
        for angle in range(n_angles):
            patch = -3 * basis.steer(atoms[2:3], 2 * np.pi * angle / n_angles)
            codes = dsc.encode(patch, atoms, basis, 1, n_angles)
            assert (codes.atom[0, 0], codes.angle[0, 0]) == (2, angle)
            np.testing.assert_allclose(codes.coef[0, 0], -3, rtol=1e-6)


@pytest.mark.parametrize("scale", [1e-6, 1e-15, 1e-22, 1e-30])
def test_encode__small_structure_beside_a_large_part_that_no_atom_sees(scale):
    # correlations of 1e-22 beside a constant of 1: their products fall below float32
    basis = dsc.disk_basis(11)
    atoms = dsc.random_atoms(basis, 3, seed=0)
    atoms[:, 0] = 0
    atoms /= np.linalg.norm(atoms, axis=1, keepdims=True)
    small = dsc.random_atoms(basis, 200, seed=5) * np.float32(scale)
    small[:, 0] = 0
    large = small.copy()
    large[:, 0] = 1
    alone, beside = dsc.encode(small, atoms, basis, 3), dsc.encode(large, atoms, basis, 3)
    assert beside.used.all() or scale < 1e-20  # so little may count as nothing left to gain
    atom = np.where(beside.used, beside.atom, alone.atom)
    angle = np.where(beside.used, beside.angle, alone.angle)
    forked, gaps = oracles.forks(
        small, atoms, basis.frequency, 60, (atom, angle), (alone.atom, alone.angle)
    )
    np.testing.assert_array_less(gaps, 1e-5)
    assert len(forked) <= 1
