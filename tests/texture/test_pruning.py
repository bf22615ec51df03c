"""Bounds decide the time of labelling, not the labels: as without any bound, to the bit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

import dsc
from dsc.bench.labelling import compare, plain_search
from dsc.pursuit import (
    ANGLES,
    BLOCK,
    NO_GAIN,
    correlate,
    packed_order,
    scores,
    search_tables,
    take_patch,
    to_columns,
)
from dsc.texture import tables
from dsc.texture.labelling import NONE, Labeller

BASES = {
    "disk": lambda: dsc.disk_basis(7),
    "even": lambda: dsc.disk_basis(10),
    "annular": lambda: dsc.annular_basis(9),
    "tiny": lambda: dsc.disk_basis(3),
    "lowpass": lambda: dsc.disk_basis(11).lowpass(0.25),
}
ANGLE_COUNTS = [2, 3, 7, 30, 60, 68, 240]


@njit
def all_scores(coords, order, packed, rows_of, n_even, table, n_rounds, out):
    """out (patch, atom) every score, by the pursuit's own loops."""
    padded = -(-coords.shape[1] // 8) * 8
    patches, columns = np.zeros((BLOCK, padded), np.float32), np.zeros(padded * BLOCK, np.float32)
    n_packed, size = out.shape[1] + out.shape[1] % 2, rows_of.size * 2 * BLOCK
    waves, trial = np.zeros(n_packed * size, np.float32), np.zeros(n_rounds * ANGLES, np.float32)
    bound, first = np.zeros(n_packed * BLOCK, np.float32), np.zeros(BLOCK, np.float32)
    for p in range(coords.shape[0]):
        take_patch(coords, p, order, patches, 0)
        to_columns(patches, columns)
        correlate(columns, packed, rows_of, waves, bound, first)
        for m in range(out.shape[1]):
            out[p, m] = scores(waves, m * size, table, n_even, rows_of.size, trial)


def every_best(labeller, coords):
    """The first atom of the largest score of all, without any bound."""
    atoms = labeller.atoms.reshape(-1, labeller.basis.n_coords)
    search = search_tables(atoms, labeller.basis, labeller.n_angles)
    found = np.empty((len(coords), len(atoms)), np.float32)
    all_scores(np.array(coords), packed_order(labeller.basis), *search, found)
    return np.where(found.max(1) >= NO_GAIN, found.argmax(1), NONE)


def make(basis, atoms, n_angles=60):
    return Labeller(np.asarray(atoms, np.float32)[:, None], basis, 1, n_angles, 1)


def assert_same(labeller, coords):
    coords = np.array(coords, np.float32)
    best, outlined, evaluated = labeller.best_by_score(coords)
    np.testing.assert_array_equal(best, every_best(labeller, coords))
    np.testing.assert_array_equal(best, plain_search(labeller)(coords))
    assert (best != NONE).sum() <= evaluated <= outlined <= best.size * len(labeller.atoms)
    return best, evaluated


@pytest.fixture
def natural(natural_coords):
    """natural(basis): 200 patches without their means."""
    return lambda basis: natural_coords(basis, 200)


@pytest.mark.parametrize("n_angles", ANGLE_COUNTS)
@pytest.mark.parametrize("name", BASES)
@pytest.mark.parametrize("kind", ["learned", "random"])
def test_best__same_as_of_all_scores(natural, learned_atoms, name, kind, n_angles):
    basis = BASES[name]()
    atoms = learned_atoms(basis, 31) if kind == "learned" else dsc.random_atoms(basis, 31)
    best, _ = assert_same(make(basis, atoms, n_angles), natural(basis))
    assert len(np.unique(best)) > 3 or name == "lowpass"  # of three coordinates


@pytest.mark.parametrize("n_atoms", [1, 2, 3, 16, 33])
@pytest.mark.parametrize("n_patches", [1, 15, 17, 50])
def test_best__any_number_of_atoms_and_patches(natural, n_atoms, n_patches):
    basis = dsc.disk_basis(7)
    assert_same(make(basis, dsc.random_atoms(basis, n_atoms)), natural(basis)[:n_patches])


@given(exponent=st.integers(-148, 60), seed=st.integers(0, 99))
def test_best__tiny_and_huge_patches(exponent, seed):
    basis = dsc.disk_basis(7)
    atoms = dsc.random_atoms(basis, 20, seed)
    patches = np.random.default_rng(seed).standard_normal((20, basis.n_coords))
    with np.errstate(under="ignore"):
        assert_same(make(basis, atoms), np.ldexp(patches, exponent).astype(np.float32))


def test_best__scales_differ_between_coordinates_and_patches():
    basis = dsc.disk_basis(9)
    rng = np.random.default_rng(3)
    patches = rng.standard_normal((300, basis.n_coords)) * 10.0 ** rng.uniform(
        -20, 10, (300, basis.n_coords)
    )
    assert_same(make(basis, dsc.random_atoms(basis, 40)), patches)


def test_best__zeros_among_others():
    basis = dsc.disk_basis(7)
    patches = np.random.default_rng(0).standard_normal((40, basis.n_coords))
    patches[::3] = 0
    best, _ = assert_same(make(basis, dsc.random_atoms(basis, 9)), patches)
    assert (best[::3] == NONE).all()
    assert (best[1::3] != NONE).all()
    zeros = np.zeros_like(patches)
    assert assert_same(make(basis, dsc.random_atoms(basis, 9)), zeros)[1] == 0


def test_best__ties_of_copies_go_to_the_lowest(natural, learned_atoms):
    basis = dsc.disk_basis(7)
    atoms = np.concatenate([learned_atoms(basis, 11)] * 3)
    best, _ = assert_same(make(basis, atoms), natural(basis))
    assert best.max() < 11


def test_best__rotated_and_negative_copies(natural, learned_atoms):
    basis = dsc.disk_basis(7)
    atoms = learned_atoms(basis, 11)
    quarter, step = (basis.steer(atoms, angle) for angle in (np.pi / 2, 2 * np.pi / 60))
    assert_same(make(basis, np.concatenate([quarter, -atoms, step, atoms])), natural(basis))


def test_best__nearly_the_same_atoms(natural, learned_atoms):
    """Differences of some units in the last place, far below the room that bounds have."""
    basis = dsc.disk_basis(7)
    rng = np.random.default_rng(1)
    atoms = np.concatenate([learned_atoms(basis, 5)] * 12)
    atoms = atoms * (1 + 2e-7 * rng.standard_normal(atoms.shape))
    best, _ = assert_same(make(basis, atoms), natural(basis))
    assert len(np.unique(best)) > 12


@pytest.mark.parametrize("low", [1, 3, 5])
def test_best__energy_in_high_frequencies_only(natural, learned_atoms, low):
    basis = dsc.disk_basis(11)
    patches = natural(basis).copy()
    patches[:, basis.frequency < low] = 0
    best, _ = assert_same(make(basis, learned_atoms(basis, 40)), patches)
    assert (best != NONE).all()


def test_best__patches_that_the_outline_leaves_out(monkeypatch):
    """The atoms' strong components say nothing about these patches: all is in what is left out."""
    monkeypatch.setattr(tables, "ENERGY", 0.5)
    basis = dsc.disk_basis(7)
    rng = np.random.default_rng(0)
    atoms = 0.01 * rng.standard_normal((30, basis.n_coords))
    atoms[:, 1] = 1
    atoms /= np.linalg.norm(atoms, axis=1, keepdims=True)
    patches = rng.standard_normal((100, basis.n_coords))
    patches[:, :2] = 0
    labeller = make(basis, atoms)
    assert labeller._outline.kept.sum() == 1
    best, _ = assert_same(labeller, patches)
    assert len(np.unique(best)) > 10


@pytest.mark.parametrize("energy", [0.0, 0.3, 0.9, 1.0])
def test_best__whatever_the_outline_keeps(natural, learned_atoms, monkeypatch, energy):
    monkeypatch.setattr(tables, "ENERGY", energy)
    basis = dsc.disk_basis(9)
    assert_same(make(basis, learned_atoms(basis, 40)), natural(basis))


def test_best__atoms_of_zeros_and_of_one_frequency(natural):
    basis = dsc.disk_basis(7)
    atoms = np.zeros((5, basis.n_coords))
    assert (assert_same(make(basis, atoms), natural(basis))[0] == NONE).all()
    atoms[3, basis.start[2]] = 1
    assert (assert_same(make(basis, atoms), natural(basis))[0] == 3).all()


@given(cut=st.integers(0, 60), n=st.integers(1, 60))
def test_best__of_a_patch_whatever_stands_beside_it(natural_coords, learned_atoms, cut, n):
    basis = dsc.disk_basis(7)
    labeller, patches = make(basis, learned_atoms(basis, 31)), natural_coords(basis, 200)
    whole = labeller.best_by_score(patches)[0]
    np.testing.assert_array_equal(
        labeller.best_by_score(patches[cut : cut + n])[0], whole[cut : cut + n]
    )


def test_outline__is_of_the_strongest_components(learned_atoms):
    """Scores of outlines and what they leave out bound the scores, which they hardly exceed."""
    basis = dsc.disk_basis(11)
    atoms = learned_atoms(basis, 40)
    outline = tables.outline_of(atoms, basis, search_tables(atoms, basis, 60))
    values = outline.parts.reshape(20, -1, 2).swapaxes(1, 2).reshape(40, -1)
    energy = (values[:, 1:] ** 2).sum(1)
    np.testing.assert_allclose(energy + values[:, 0] ** 2, 1, rtol=1e-5)
    assert tables.ENERGY <= energy.mean() < 0.995
    assert values.shape[1] - 1 < 0.75 * basis.n_coords


def test_bench__shares_add_up(natural, learned_atoms):
    basis = dsc.disk_basis(11)
    found = compare(make(basis, learned_atoms(basis, 40)), natural(basis), 1)
    assert found["outline"] + found["angles"] + found["evaluated"] == pytest.approx(1)
    assert found["different"] == 0
