"""Online updates: running normal equations against an oracle that keeps all codes."""

from dataclasses import dataclass, replace

import numpy as np
import oracles
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dsc
from dsc.pursuit import Coder
from dsc.update import Running, update_online
from dsc.update.online import times

BASES = {
    "disk": dsc.disk_basis(4),
    "annular": dsc.annular_basis(4),
    "pixels": dsc.pixel_basis(4),
}
N_ANGLES = {"disk": 12, "annular": 8, "pixels": 1}


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@dataclass
class Kept:
    """All that was coded so far, at float64: patches, codes and weights."""

    coords: list
    codes: list
    weights: list

    def fade(self, factor):
        self.weights = [factor * weight for weight in self.weights]

    def scale(self, norms):
        """All codes of each atom times its factor."""
        for i, codes in enumerate(self.codes):
            factor = np.where(codes.used, norms[np.where(codes.used, codes.atom, 0)], 0)
            self.codes[i] = replace(codes, coef=codes.coef * factor)

    def system(self, n_atoms, frequency):
        """Rows and right-hand side whose least squares are the surrogate."""
        operator = np.vstack(
            [
                np.sqrt(w) * oracles.code_operator(codes, n_atoms, frequency)
                for w, codes in zip(self.weights, self.codes, strict=True)
            ]
        )
        right = np.concatenate(
            [np.sqrt(w) * x.ravel() for w, x in zip(self.weights, self.coords, strict=True)]
        )
        return operator, right

    def surrogate(self, atoms, frequency):
        operator, right = self.system(len(atoms), frequency)
        return ((right - operator @ np.asarray(atoms, float).ravel()) ** 2).sum()


def run(kind, seed, n_batches, forget, n_atoms=3, n_patches=50):
    """Yield what is known before and after the update from each batch of noise."""
    basis, rng = BASES[kind], np.random.default_rng(seed)
    atoms = dsc.random_atoms(basis, n_atoms, seed)
    running, kept = Running.start(n_atoms, basis), Kept([], [], [])
    for _ in range(n_batches):
        coords = rng.standard_normal((n_patches, basis.n_coords)).astype(np.float32)
        coder = Coder(atoms, basis, 2, N_ANGLES[kind])
        codes = coder.encode(coords)
        kept.fade(1 - forget)
        kept.coords.append(coords.astype(float))
        kept.codes.append(replace(codes, coef=codes.coef.astype(float)))
        kept.weights.append(1.0)
        batch = dsc.accumulate(coords, codes, atoms, basis, "mod")
        new, running = update_online(running, batch, coder, forget)
        yield atoms, new, running, kept
        atoms = new


@settings(max_examples=12)
@given(
    kind=st.sampled_from(sorted(BASES)),
    seed=st.integers(0, 2**16),
    forget=st.sampled_from([0.0, 0.1, 0.5, 1.0]),
)
def test_update__is_least_squares_of_all_codes_so_far(kind, seed, forget):
    """Atoms are the dense solution's, and the surrogate at them does not rise."""
    frequency = BASES[kind].frequency
    for old, new, _, kept in run(kind, seed, 2, forget):
        operator, right = kept.system(len(old), frequency)
        dense = np.linalg.lstsq(operator, right, rcond=None)[0].reshape(old.shape)
        np.testing.assert_allclose(new, unit(dense), atol=2e-5)
        before, least = kept.surrogate(old, frequency), kept.surrogate(dense, frequency)
        kept.scale(np.linalg.norm(dense, axis=1))
        after = kept.surrogate(new, frequency)
        assert after <= before * (1 + 1e-9)
        assert after == pytest.approx(least, rel=1e-6)


@pytest.mark.parametrize("kind", BASES)
def test_update__keeps_the_right_side_of_the_present_atoms(kind):
    """ρ = B − N d of the codes as rescaled, and N their normal matrix."""
    basis = BASES[kind]
    for old, new, running, kept in run(kind, 7, 2, 0.2):
        operator, right = kept.system(len(old), basis.frequency)
        dense = np.linalg.lstsq(operator, right, rcond=None)[0].reshape(old.shape)
        kept.scale(np.linalg.norm(dense, axis=1))
        operator, right = kept.system(len(old), basis.frequency)
        residual = operator.T @ (right - operator @ new.astype(float).ravel())
        np.testing.assert_allclose(running.right.ravel(), residual, atol=2e-4)
        product = times(running.normal, new.astype(float), basis)
        expected = operator.T @ (operator @ new.astype(float).ravel())
        np.testing.assert_allclose(product.ravel(), expected, rtol=1e-5, atol=2e-4)


def test_update__that_forgets_all_is_that_of_the_batch():
    for old, new, _, kept in run("disk", 3, 3, 1.0):
        codes, coords = kept.codes[-1], kept.coords[-1]
        plain = replace(codes, coef=codes.coef.astype(np.float32))
        statistics = dsc.accumulate(coords, plain, old, BASES["disk"], "mod")
        np.testing.assert_array_equal(new, dsc.solve(statistics, old, BASES["disk"]))


def lonely(n_batches, n_patches=60):
    """Batches in which the last of three atoms is of no use."""
    basis = BASES["disk"]
    atoms = dsc.random_atoms(basis, 3, 1)
    rng = np.random.default_rng(0)
    running = Running.start(3, basis)
    for _ in range(n_batches):
        theta = 2 * np.pi * rng.integers(0, 12, n_patches) / 12
        coords = basis.steer(atoms[rng.integers(0, 2, n_patches)], theta)
        coords = (2 * coords + 0.01 * rng.standard_normal(coords.shape)).astype(np.float32)
        coder = Coder(atoms, basis, 1, 12)
        batch = dsc.accumulate(coords, coder.encode(coords), atoms, basis, "mod")
        new, running = update_online(running, batch, coder, 0.1)
        yield atoms, new, running, batch
        atoms = new


def test_update__an_atom_starts_again_once_it_was_idle_for_64_uses_of_each():
    idle = []
    for old, new, running, batch in lonely(5):  # 192 patches: 64 · 3 atoms of one in each patch
        if batch.usage.count[2]:
            break
        idle.append(running.idle[2])
        moved = not np.array_equal(old[2], new[2])
        assert moved == (len(idle) == 4)
        if moved:
            alike = oracles.likeness(new[2:], new[:2], BASES["disk"].frequency)
            assert alike.max() < 0.9
            assert not running.right[2].any()
            assert not running.normal[:, 2].any()
            assert not running.normal[:, :, 2].any()
            assert running.normal[:, 0, 0].all()
            break
    assert idle == [60, 120, 180, 0]


def test_update__a_lost_atom_stays_in_earlier_codes():
    """To the others, what it gave to patches so far is as it was before it started again."""
    basis = BASES["disk"]
    coords = np.random.default_rng(5).standard_normal((60, basis.n_coords)).astype(np.float32)
    atoms = dsc.random_atoms(basis, 3, 5)
    coder = Coder(atoms, basis, 2, 12)
    codes = coder.encode(coords)
    batch = dsc.accumulate(coords, codes, atoms, basis, "mod")
    usage = replace(batch.usage, count=batch.usage.count * [1, 1, 0])  # as if the last one is lost
    running = replace(Running.start(3, basis), idle=np.array([0, 0, 10**6]))
    new, after = update_online(running, replace(batch, usage=usage), coder, 0.0)
    assert oracles.likeness(new[2:], atoms[2:], basis.frequency) < 0.9

    n_coords = basis.n_coords
    operator = oracles.code_operator(codes, 3, basis.frequency)
    solution = np.linalg.lstsq(operator, coords.ravel().astype(float), rcond=None)[0]
    norms = np.linalg.norm(solution.reshape(3, -1), axis=1)[:2, None]
    before = np.vstack([norms * new[:2], atoms[2:]]).astype(float)
    residual = coords.ravel() - operator @ before.ravel()
    expected = norms * (operator.T @ residual).reshape(3, n_coords)[:2]
    assert np.abs(expected).max() > 0.1  # the others were solved with another third atom
    np.testing.assert_allclose(after.right[:2], expected, atol=1e-4)
    assert not after.right[2].any()
    assert not after.normal[:, 2].any()
    assert not after.normal[:, :, 2].any()
