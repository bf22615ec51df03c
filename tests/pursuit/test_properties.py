"""What holds for any patches, atoms, angles and slots."""

import numpy as np
import oracles
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import dsc

BASES = {
    "disk": dsc.disk_basis(9),
    "annular": dsc.annular_basis(9),
    "disk low": dsc.disk_basis(11).lowpass(0.6),
    "pixels": dsc.pixel_basis(6),
}


ANY_GRID, FEW_SLOTS = st.integers(1, 70), st.integers(1, 6)


@st.composite
def problems(draw, bases=tuple(BASES), n_angles=ANY_GRID, sparsity=FEW_SLOTS):
    """(coords, atoms, basis, sparsity, n_angles)."""
    basis = BASES[draw(st.sampled_from(bases))]
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    coords = rng.standard_normal((draw(st.integers(1, 40)), basis.n_coords)).astype(np.float32)
    atoms = dsc.random_atoms(basis, draw(st.integers(1, 9)), seed=draw(st.integers(0, 999)))
    return coords, atoms, basis, draw(sparsity), draw(n_angles)


@given(problem=problems(bases=("disk", "annular", "disk low")), turns=st.integers(-100, 100))
@settings(max_examples=50)
def test_encode__turning_a_patch_turns_its_code(problem, turns):
    coords, atoms, basis, sparsity, n_angles = problem
    codes = dsc.encode(*problem)
    turned = dsc.encode(
        basis.steer(coords, 2 * np.pi * turns / n_angles), atoms, basis, sparsity, n_angles
    )
    back = np.where(turned.used, (turned.angle.astype(int) - turns) % n_angles, 0)
    forked, gaps = oracles.forks(
        coords, atoms, basis.frequency, n_angles, (codes.atom, codes.angle), (turned.atom, back)
    )
    np.testing.assert_array_less(gaps, 1e-5)
    same = np.setdiff1d(np.arange(len(coords)), forked)
    energy = (coords[same] ** 2).sum(1)
    np.testing.assert_allclose(turned.error[same] / energy, codes.error[same] / energy, atol=1e-5)
    size = np.abs(codes.coef[same]).max(1, initial=0, keepdims=True)
    np.testing.assert_allclose(turned.coef[same] / size, codes.coef[same] / size, atol=1e-3)


def test_encode__turning_natural_patches_turns_their_codes(natural_coords, learned_atoms):
    basis = dsc.disk_basis(11)
    coords, atoms = natural_coords(basis, 3000), learned_atoms(basis)
    codes = dsc.encode(coords, atoms, basis, 3)
    for turns in (1, 15, 22, 30, 59):
        turned = dsc.encode(basis.steer(coords, turns * np.pi / 30), atoms, basis, 3)
        back = (turned.angle.astype(int) - turns) % 60
        forked, gaps = oracles.forks(
            coords, atoms, basis.frequency, 60, (codes.atom, codes.angle), (turned.atom, back)
        )
        assert len(forked) <= 0.001 * len(coords)
        np.testing.assert_array_less(gaps, 1e-5)


@given(problem=problems())
def test_encode__error_decreases_with_every_slot(problem):
    coords, atoms, basis, _, n_angles = problem
    before = (coords.astype(np.float64) ** 2).sum(1)
    for sparsity in range(1, 7):
        codes = dsc.encode(coords, atoms, basis, sparsity, n_angles)
        assert (codes.error <= before * (1 + 1e-6)).all()
        assert (codes.error < before)[codes.used[:, -1]].all()
        before = codes.error


@given(problem=problems(sparsity=st.integers(2, 6)))
def test_encode__first_slots_do_not_depend_on_how_many_follow(problem):
    coords, atoms, basis, sparsity, n_angles = problem
    codes = dsc.encode(*problem)
    fewer = dsc.encode(coords, atoms, basis, sparsity - 1, n_angles)
    np.testing.assert_array_equal(codes.atom[:, :-1], fewer.atom)
    np.testing.assert_array_equal(codes.angle[:, :-1], fewer.angle)


@given(problem=problems())
def test_decode__with_the_residual_gives_the_patch_back(problem):
    coords, atoms, basis, sparsity, n_angles = problem
    codes = dsc.encode(*problem)
    decoded = dsc.decode(codes, atoms, basis)
    assert decoded.dtype == np.float32
    exact = oracles.decode(codes, atoms, basis.frequency)
    np.testing.assert_allclose(decoded, exact, atol=1e-5 * np.abs(codes.coef).max())
    residual = coords - exact
    energy = (coords.astype(np.float64) ** 2).sum(1)
    np.testing.assert_allclose(
        codes.error / energy, (residual**2).sum(1) / energy, rtol=1e-4, atol=1e-6
    )
    for k in range(sparsity):  # least squares: what is left is orthogonal to all that was chosen
        used = codes.used[:, k]
        chosen = oracles.turn(
            atoms[codes.atom[used, k]], basis.frequency, 2 * np.pi * codes.angle[used, k] / n_angles
        )
        np.testing.assert_allclose(
            (chosen * residual[used]).sum(1) / np.sqrt(energy[used]), 0, atol=1e-4
        )


@given(problem=problems(n_angles=st.integers(1, 8), sparsity=st.integers(6, 18)))
def test_encode__never_takes_an_atom_twice_at_one_angle(problem):
    codes = dsc.encode(*problem)
    for atom, angle, used in zip(codes.atom, codes.angle, codes.used, strict=True):
        taken = list(zip(atom[used], angle[used], strict=True))
        assert len(set(taken)) == len(taken)
    assert (codes.angle < codes.n_angles).all()


@given(problem=problems(n_angles=st.integers(1, 8), sparsity=st.integers(1, 18)))
def test_encode__empty_slots_come_last_and_say_so(problem):
    codes = dsc.encode(*problem)
    empty = codes.atom == dsc.EMPTY
    assert dsc.EMPTY == 65535
    assert (np.diff(empty.astype(int), axis=1) >= 0).all()
    assert not codes.angle[empty].any()
    assert not codes.coef[empty].any()
    assert (codes.atom[~empty] < len(problem[1])).all()
    np.testing.assert_array_equal(codes.used, ~empty)


def test_encode__more_slots_than_atoms_repeat_atoms_at_other_angles():
    basis = dsc.disk_basis(11)
    atoms = dsc.random_atoms(basis, 1, seed=0)
    patches = basis.steer(atoms, 0.0) + 0.7 * basis.steer(atoms, np.pi / 3)
    codes = dsc.encode(patches, atoms, basis, 2)
    assert codes.atom.tolist() == [[0, 0]]
    assert sorted(codes.angle[0]) == [0, 10]
    np.testing.assert_allclose(np.sort(codes.coef[0]), [0.7, 1], atol=1e-5)


def test_encode__gives_the_stored_types(natural_coords):
    basis = dsc.disk_basis(7)
    codes = dsc.encode(natural_coords(basis, 10), dsc.random_atoms(basis, 3), basis, 2)
    assert (codes.atom.dtype, codes.angle.dtype) == (np.uint16, np.uint16)
    assert (codes.coef.dtype, codes.error.dtype) == (np.float32, np.float32)
    assert codes.atom.shape == codes.angle.shape == codes.coef.shape == (10, 2)
    assert codes.error.shape == (10,)
    assert (len(codes), codes.sparsity) == (10, 2)
    np.testing.assert_allclose(codes.theta, codes.angle * (np.pi / 30))


@pytest.mark.parametrize("name", BASES)
@given(data=st.data())
@settings(max_examples=30)
def test_encode__never_gives_a_nan(name, data):
    basis = BASES[name]
    values = st.floats(-(2.0**46), 2.0**46, width=32) | st.floats(-1, 1, width=32) | st.just(0.0)
    coords = data.draw(hnp.arrays(np.float32, (3, basis.n_coords), elements=values))
    coords *= np.float32(data.draw(st.sampled_from([1, 1e-10, 1e-25, 1e-30, 1e-38, 1e-44])))
    n_angles = data.draw(st.integers(1, 12))
    atoms = dsc.random_atoms(basis, 3, seed=data.draw(st.integers(0, 99)))
    codes = dsc.encode(coords, atoms, basis, 4, n_angles)
    decoded = dsc.decode(codes, atoms, basis)
    for array in (codes.coef, codes.error, decoded):
        assert np.isfinite(array).all()
    energy = (coords.astype(np.float64) ** 2).sum(1)
    assert (codes.error <= energy * (1 + 1e-5)).all()
