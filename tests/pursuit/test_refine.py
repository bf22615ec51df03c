"""Angles between those of the grid."""

import numpy as np
import oracles
import pytest

import dsc

FINER = 64


@pytest.mark.parametrize("pursuit", ["ols", "omp"])
@pytest.mark.parametrize("n_angles", [12, 60, 61])
def test_refine__the_first_atom_is_never_worse(n_angles, pursuit, natural_coords, learned_atoms):
    basis = dsc.disk_basis(11)
    coords, atoms = natural_coords(basis, 1500), learned_atoms(basis)
    grid = dsc.encode(coords, atoms, basis, 1, n_angles, pursuit=pursuit)
    fine = dsc.encode(coords, atoms, basis, 1, n_angles, pursuit=pursuit, refine=True)
    assert fine.n_angles == FINER * n_angles
    np.testing.assert_array_equal(fine.atom, grid.atom)
    energy = (coords.astype(np.float64) ** 2).sum(1)
    assert ((fine.error - grid.error) <= 1e-6 * energy).all()
    assert fine.error.mean() < grid.error.mean()
    off = (fine.angle.astype(int) - FINER * grid.angle.astype(int)) % fine.n_angles
    assert (np.minimum(off, fine.n_angles - off) <= FINER // 2).all()


def test_refine__every_further_step_is_not_worse_than_the_grids(natural_coords, learned_atoms):
    # given the atoms refined so far, the grid's own best next atom must not beat the refined one
    basis = dsc.disk_basis(11)
    coords, atoms = natural_coords(basis, 300), learned_atoms(basis)
    codes = dsc.encode(coords, atoms, basis, 3, 60, refine=True)
    grid = oracles.augmented(atoms, basis.frequency, 60)
    for p in range(len(coords)):
        x = coords[p].astype(np.float64)
        for k in range(3):
            before = codes.atom[p, :k]
            theta = 2 * np.pi * codes.angle[p, : k + 1] / codes.n_angles
            chosen = oracles.turn(atoms[codes.atom[p, : k + 1]], basis.frequency, theta)
            q = np.linalg.qr(chosen[:k].T)[0] if len(before) else np.zeros((len(x), 0))
            left = x - q @ (q.T @ x)
            new = np.maximum(1 - ((grid @ q) ** 2).sum(1), oracles.NEW)
            best = ((grid @ left) ** 2 / new).max()
            taken = (chosen[k] @ left) ** 2 / max(1 - ((chosen[k] @ q) ** 2).sum(), oracles.NEW)
            assert taken >= best * (1 - 1e-4)


def test_refine__as_good_as_a_grid_sixteen_times_finer(natural_coords, learned_atoms):
    basis = dsc.disk_basis(11)
    coords, atoms = natural_coords(basis, 1500), learned_atoms(basis)
    one = dsc.encode(coords, atoms, basis, 1, 60, refine=True).error.mean()
    fine = dsc.encode(coords, atoms, basis, 1, 960).error.mean()
    coarse = dsc.encode(coords, atoms, basis, 1, 60).error.mean()
    assert one <= fine + 0.02 * (coarse - fine)


def test_refine__finds_an_angle_between_those_of_the_grid():
    basis = dsc.disk_basis(11)
    atoms = dsc.random_atoms(basis, 4, seed=0)
    for angle in (0, 7, 100, 3839):
        patch = 2 * basis.steer(atoms[2:3], 2 * np.pi * angle / 3840)
        codes = dsc.encode(patch, atoms, basis, 1, 60, refine=True)
        assert codes.atom[0, 0] == 2
        assert abs((int(codes.angle[0, 0]) - angle + 1920) % 3840 - 1920) <= 1


def test_refine__turning_a_patch_turns_its_code(natural_coords, learned_atoms):
    basis = dsc.disk_basis(11)
    coords, atoms = natural_coords(basis, 1000), learned_atoms(basis)
    codes = dsc.encode(coords, atoms, basis, 1, 60, refine=True)
    for turns in (1, 15, 30, 47):
        turned = dsc.encode(basis.steer(coords, turns * np.pi / 30), atoms, basis, 1, refine=True)
        off = (turned.angle.astype(int) - codes.angle - FINER * turns) % codes.n_angles
        same = (turned.atom == codes.atom) & (np.minimum(off, codes.n_angles - off) <= 1)
        assert same.mean() > 0.998


def test_refine__decodes_what_it_coded(natural_coords, learned_atoms):
    basis = dsc.disk_basis(11)
    coords, atoms = natural_coords(basis, 500), learned_atoms(basis)
    codes = dsc.encode(coords, atoms, basis, 3, 60, refine=True)
    left = coords - dsc.decode(codes, atoms, basis)
    np.testing.assert_allclose((left**2).sum(1), codes.error, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(
        dsc.decode(codes, atoms, basis), oracles.decode(codes, atoms, basis.frequency), atol=1e-4
    )


def test_refine__does_nothing_where_nothing_rotates():
    basis = dsc.pixel_basis(5)
    atoms = dsc.random_atoms(basis, 4, seed=0)
    coords = np.random.default_rng(0).standard_normal((20, basis.n_coords)).astype(np.float32)
    one, other = (dsc.encode(coords, atoms, basis, 2, refine=refine) for refine in (True, False))
    assert one.n_angles == other.n_angles == 1
    np.testing.assert_array_equal(one.coef, other.coef)


def test_refine__refuses_a_grid_that_codes_cannot_hold_refined():
    basis = dsc.disk_basis(5)
    atoms = dsc.random_atoms(basis, 2)
    with pytest.raises(dsc.DscError, match="refined"):
        dsc.encode(atoms, atoms, basis, 1, 2000, refine=True)
