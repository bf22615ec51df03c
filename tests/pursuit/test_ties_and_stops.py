"""Equal scores go to the lowest (atom, angle); coding stops when nothing is left to gain."""

import numpy as np
import pytest

import dsc

N_PATCHES = 500


def unit(rows):
    rows = np.asarray(rows, np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.fixture
def patches():
    def make(basis):
        rng = np.random.default_rng(123)
        return rng.standard_normal((N_PATCHES, basis.n_coords)).astype(np.float32)

    return make


@pytest.mark.parametrize("n_angles", [1, 4, 6, 7, 60])
@pytest.mark.parametrize("sign", [1, -1])
def test_ties__duplicated_atoms_go_to_the_first(sign, n_angles, patches):
    basis = dsc.disk_basis(9)
    few = dsc.random_atoms(basis, 3, seed=0)
    many = np.concatenate([few, sign * few, few[::-1]])
    expected = dsc.encode(patches(basis), few, basis, 3, n_angles)
    codes = dsc.encode(patches(basis), many, basis, 3, n_angles)
    np.testing.assert_array_equal(codes.atom, expected.atom)
    np.testing.assert_array_equal(codes.angle, expected.angle)
    np.testing.assert_array_equal(codes.coef, expected.coef)


def test_ties__the_twin_in_front_takes_its_place():
    basis = dsc.disk_basis(9)
    atoms = dsc.random_atoms(basis, 4, seed=0)
    patch = atoms[3:4]
    for twin in (0, 1, 2):
        dictionary = atoms.copy()
        dictionary[twin] = atoms[3]
        assert dsc.encode(patch, dictionary, basis, 1).atom[0, 0] == twin


@pytest.mark.parametrize("n_angles", [1, 2, 3, 4, 60, 61, 62])
def test_ties__a_constant_atom_has_angle_zero(n_angles, patches):
    basis = dsc.disk_basis(9)
    constant = np.zeros((1, basis.n_coords))
    constant[0, 0] = 1
    codes = dsc.encode(patches(basis), constant, basis, 2, n_angles)
    assert not codes.angle.any()
    np.testing.assert_array_equal(codes.atom[:, 0], 0)
    np.testing.assert_array_equal(codes.atom[:, 1], dsc.EMPTY)
    np.testing.assert_allclose(codes.coef[:, 0], patches(basis)[:, 0], rtol=1e-6)


@pytest.mark.parametrize(
    ("fold", "n_angles"),
    [
        (fold, n_angles)
        for fold in (2, 3, 4)
        for n_angles in (4, 6, 8, 9, 10, 12, 60, 62, 64, 90, 180)
        if n_angles % fold == 0
    ],
)
def test_ties__a_symmetric_atom_takes_the_lowest_of_its_angles(fold, n_angles, patches):
    basis = dsc.disk_basis(11)
    atoms = unit(dsc.random_atoms(basis, 4, seed=1) * (basis.frequency % fold == 0))
    codes = dsc.encode(patches(basis), atoms, basis, 1, n_angles)
    assert (codes.angle < n_angles // fold).all()


@pytest.mark.parametrize("n_angles", [2, 4, 6, 60, 62])
def test_ties__an_atom_that_half_a_turn_negates_takes_the_lower_angle(n_angles, patches):
    basis = dsc.disk_basis(11)
    atoms = unit(dsc.random_atoms(basis, 4, seed=1) * (basis.frequency % 2 == 1))
    codes = dsc.encode(patches(basis), atoms, basis, 1, n_angles)
    assert (codes.angle < n_angles // 2).all()
    assert (codes.coef < 0).any()
    assert (codes.coef > 0).any()


def test_ties__equal_pixels_go_to_the_first():
    basis = dsc.pixel_basis(5)
    patch = np.zeros((1, basis.n_coords))
    patch[0, [2, 5, 9]] = 1.0, -1.0, 1.0
    codes = dsc.encode(patch, np.eye(basis.n_coords), basis, 4)
    assert codes.atom.tolist() == [[2, 5, 9, dsc.EMPTY]]
    assert codes.coef.tolist() == [[1, -1, 1, 0]]
    assert codes.error.tolist() == [0]


def test_stop__a_zero_patch_has_an_empty_code(patches):
    basis = dsc.disk_basis(9)
    atoms = dsc.random_atoms(basis, 3, seed=0)
    coords = patches(basis)[:40]
    coords[[0, 7, 39]] = 0
    codes = dsc.encode(coords, atoms, basis, 3)
    empty = np.isin(np.arange(40), [0, 7, 39])
    assert (codes.atom[empty] == dsc.EMPTY).all()
    assert codes.used[~empty].all()
    assert not codes.angle[empty].any()
    assert not codes.coef[empty].any()
    assert not codes.error[empty].any()
    np.testing.assert_array_equal(dsc.decode(codes, atoms, basis)[empty], 0)


def test_stop__nothing_left_of_a_patch_made_of_two_atoms():
    basis = dsc.disk_basis(11)
    atoms = dsc.random_atoms(basis, 6, seed=0)
    patch = 2 * basis.steer(atoms[1:2], np.pi / 3) - basis.steer(atoms[4:5], np.pi / 2)
    codes = dsc.encode(patch, atoms, basis, 5)
    assert codes.atom[0, :2].tolist() == [1, 4]
    assert codes.angle[0, :2].tolist() == [10, 15]
    np.testing.assert_allclose(codes.coef[0, :2], [2, -1], rtol=1e-5)
    assert (codes.atom[0, 2:] == dsc.EMPTY).all()
    assert codes.error[0] <= 1e-10


def test_stop__a_dependent_atom_adds_nothing():
    basis = dsc.pixel_basis(5)
    eye = np.eye(basis.n_coords)
    atoms = unit([eye[0], eye[1], eye[0] + eye[1]])
    patch = 3 * eye[:1] + 2 * eye[1:2] + 5 * eye[7:8]
    codes = dsc.encode(patch, atoms, basis, 5)
    assert codes.atom[0, 0] == 2
    assert codes.atom[0, 1] in (0, 1)  # either spans the plane with the first
    assert codes.atom[0, 2:].tolist() == [dsc.EMPTY] * 3
    np.testing.assert_allclose(codes.error, 25, rtol=1e-6)


def test_stop__a_patch_that_no_atom_sees_has_an_empty_code():
    basis = dsc.disk_basis(9)
    atoms = unit(dsc.random_atoms(basis, 3, seed=0) * (basis.frequency == 2))
    patch = unit(dsc.random_atoms(basis, 1, seed=1) * (basis.frequency == 3))
    codes = dsc.encode(patch, atoms, basis, 2)
    assert (codes.atom == dsc.EMPTY).all()
    np.testing.assert_allclose(codes.error, 1, rtol=1e-6)


def test_stop__as_many_slots_as_coordinates_are_allowed():
    basis = dsc.disk_basis(4)
    coords = np.random.default_rng(0).standard_normal((30, basis.n_coords))
    atoms = dsc.random_atoms(basis, 5, seed=0)
    codes = dsc.encode(coords, atoms, basis, basis.n_coords)
    np.testing.assert_allclose(codes.error / (coords**2).sum(1), 0, atol=1e-3)
    assert np.isfinite(codes.coef).all()


@pytest.mark.parametrize("tolerance", [5.0, 10.0, 20.0])
def test_tolerance__stops_as_soon_as_it_is_reached(tolerance, patches):
    basis = dsc.disk_basis(7)
    coords, atoms = patches(basis), dsc.random_atoms(basis, 6, seed=0)
    codes = dsc.encode(coords, atoms, basis, 8, tolerance=tolerance)
    n_used = codes.used.sum(1)
    assert len(set(n_used.tolist())) > 2
    assert ((codes.error <= tolerance) | (n_used == 8)).all()
    errors = [(coords.astype(np.float64) ** 2).sum(1)]
    errors += [dsc.encode(coords, atoms, basis, k, tolerance=0.0).error for k in range(1, 9)]
    errors = np.array(errors)
    rows = np.arange(len(coords))
    np.testing.assert_allclose(errors[n_used, rows], codes.error, rtol=1e-5)
    one_less = errors[np.maximum(n_used - 1, 0), rows]
    assert (one_less[n_used > 0] > tolerance).all()


def test_tolerance__changes_nothing_of_what_is_coded(patches):
    basis = dsc.disk_basis(7)
    coords, atoms = patches(basis), dsc.random_atoms(basis, 6, seed=0)
    whole, some = (dsc.encode(coords, atoms, basis, 6, tolerance=t) for t in (0.0, 5.0))
    np.testing.assert_array_equal(some.atom[some.used], whole.atom[some.used])
    np.testing.assert_array_equal(some.angle[some.used], whole.angle[some.used])


def test_tolerance__above_the_energy_leaves_the_code_empty(patches):
    basis = dsc.disk_basis(7)
    coords = patches(basis)
    codes = dsc.encode(coords, dsc.random_atoms(basis, 2), basis, 3, tolerance=1e6)
    assert not codes.used.any()
    np.testing.assert_allclose(codes.error, (coords.astype(float) ** 2).sum(1), rtol=1e-6)


@pytest.mark.parametrize("scale", [1e-30, 1e-15, 1e14])
def test_encode__small_and_large_values_are_coded_the_same(scale, patches):
    basis = dsc.disk_basis(11)
    atoms = dsc.random_atoms(basis, 5, seed=0)
    codes = dsc.encode(patches(basis), atoms, basis, 3)
    scaled = dsc.encode(patches(basis).astype(np.float64) * scale, atoms, basis, 3)
    np.testing.assert_array_equal(scaled.atom, codes.atom)
    np.testing.assert_array_equal(scaled.angle, codes.angle)
    np.testing.assert_allclose(scaled.coef / np.float64(scale), codes.coef, rtol=1e-4, atol=1e-5)
    if scale**2 > 1e-38:
        error = scaled.error / np.float64(scale) ** 2
        np.testing.assert_allclose(error, codes.error, rtol=1e-5)


@pytest.mark.parametrize("power", [-90, -1, 3, 40])
def test_encode__powers_of_two_change_no_bit(power, patches):
    basis = dsc.disk_basis(9)
    atoms = dsc.random_atoms(basis, 5, seed=0)
    codes = dsc.encode(patches(basis), atoms, basis, 3)
    scaled = dsc.encode(np.ldexp(patches(basis), power), atoms, basis, 3)
    np.testing.assert_array_equal(scaled.atom, codes.atom)
    np.testing.assert_array_equal(scaled.angle, codes.angle)
    np.testing.assert_array_equal(scaled.coef, np.ldexp(codes.coef, power))


@pytest.mark.parametrize("n_angles", [1, 60])
@pytest.mark.parametrize("size", [1e-44, 1e-40, 1e-38])
def test_stop__a_patch_of_almost_nothing_does_not_disturb_the_others(patches, n_angles, size):
    basis = dsc.disk_basis(9)
    assert basis.n_coords % 8  # the rest of the last vector is padding
    atoms = dsc.random_atoms(basis, 5, seed=0)
    coords = np.resize(patches(basis), (60, basis.n_coords))
    alone = dsc.encode(coords, atoms, basis, 2, n_angles)
    coords[::7] *= 0
    coords[::7, 2] = size
    codes = dsc.encode(coords, atoms, basis, 2, n_angles)
    others = np.arange(60) % 7 != 0
    np.testing.assert_array_equal(codes.atom[others], alone.atom[others])
    np.testing.assert_array_equal(codes.coef[others], alone.coef[others])
    assert np.isfinite(codes.coef).all()


@pytest.mark.parametrize("n_angles", [1, 60])
def test_stop__an_atom_that_is_nearly_there_already_does_not_end_the_code(n_angles):
    basis = dsc.disk_basis(11)
    atoms = dsc.random_atoms(basis, 10, seed=0)
    other = dsc.random_atoms(basis, 1, seed=9)[0]
    atoms[1] = unit([atoms[0] + 0.003 * other])[0]
    patch = (5 * atoms[0] + other)[None]
    ols, omp = (
        dsc.encode(patch, atoms, basis, 4, n_angles, pursuit=pursuit) for pursuit in ("ols", "omp")
    )
    assert ols.used.all()
    assert ols.error[0] <= omp.error[0]
