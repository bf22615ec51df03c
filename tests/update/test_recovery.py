"""Planted dictionaries are found again, by iterating encode, accumulate and solve by hand."""

import numpy as np
import oracles
import pytest
from scipy import ndimage
from skimage.transform import rotate

import dsc

N_ITERATIONS = 25
SIZES = {"10 atoms": (10, 2, 6_000), "20 atoms": (20, 3, 12_000)}


def learn(coords, atoms, basis, sparsity, update, n_iterations, replace_twins=None):
    """No twin is reset in the last five iterations."""
    for iteration in range(n_iterations):
        codes = dsc.encode(coords, atoms, basis, sparsity)
        statistics = dsc.accumulate(coords, codes, atoms, basis, update)
        threshold = replace_twins if iteration < n_iterations - 5 else None
        atoms = dsc.solve(statistics, atoms, basis, threshold)
    return atoms


@pytest.fixture(scope="module", params=SIZES)
def planted(request):
    """(truth, coords, sparsity, basis): turned atoms off the grid, and a tenth of noise."""
    n_atoms, sparsity, n_patches = SIZES[request.param]
    basis = dsc.disk_basis(11)
    rng = np.random.default_rng(0)
    truth = dsc.random_atoms(basis, n_atoms, seed=1000)
    atom = rng.permuted(np.tile(np.arange(n_atoms), (n_patches, 1)), axis=1)[:, :sparsity]
    coords = np.zeros((n_patches, basis.n_coords))
    for k in range(sparsity):
        coef = rng.uniform(0.5, 1.5, n_patches) * rng.choice([-1, 1], n_patches)
        turned = oracles.turn(truth[atom[:, k]], basis.frequency, rng.uniform(0, 7, n_patches))
        coords += coef[:, None] * turned
    noise = rng.standard_normal(coords.shape)
    coords += 0.1 * noise * np.linalg.norm(coords) / np.linalg.norm(noise)
    return truth, coords.astype(np.float32), sparsity, basis


@pytest.mark.parametrize(
    ("update", "replace_twins", "fraction"),
    [("ksvd", 0.8, 0.95), ("ksvd", None, 0.75), ("mod", None, 0.75)],
)
def test_recovery__of_a_planted_dictionary(planted, update, replace_twins, fraction):
    truth, coords, sparsity, basis = planted
    start = dsc.random_atoms(basis, len(truth), seed=0)
    atoms = learn(coords, start, basis, sparsity, update, N_ITERATIONS, replace_twins)
    recovered = oracles.likeness(truth, atoms, basis.frequency).max(1) > 0.95
    assert recovered.mean() >= fraction


@pytest.mark.parametrize("update", ["ksvd", "mod"])
def test_recovery__of_the_template_of_the_toy_experiment(update):
    # patches of 42 x 42 pixels: two turned copies of one sign, and noise
    basis = dsc.disk_basis(42)
    sign = np.zeros((42, 42))
    sign[8:34, 14:18] = sign[8:12, 14:30] = sign[19:23, 14:26] = 1
    sign = ndimage.gaussian_filter(sign, 1.0)
    rng = np.random.default_rng(0)

    def turned():
        return rng.uniform(0.5, 1.5) * rotate(sign, rng.uniform(0, 360), order=3)

    patches = np.array([turned() + turned() for _ in range(150)])
    patches += 0.05 * rng.standard_normal(patches.shape)
    patches = np.concatenate([sign[None], patches])[:, basis.mask]
    coords = basis.project(patches - patches.mean(1, keepdims=True))
    atoms = learn(coords[1:], dsc.random_atoms(basis, 1, seed=0), basis, 2, update, 10)
    assert oracles.likeness(coords[:1], atoms, basis.frequency, n_angles=240)[0, 0] >= 0.99
