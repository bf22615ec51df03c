"""Atoms: where learning starts, and from statistics to new ones."""

from __future__ import annotations

from hashlib import sha256
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import eigh
from scipy.special import ndtri

from dsc.basis import SteerableBasis
from dsc.counter import uniform_bits
from dsc.errors import DscError, count_problem
from dsc.pursuit import check_atoms
from dsc.update.statistics import KsvdStatistics, ModStatistics, Statistics
from dsc.update.worst import WorstPatches

Floats = NDArray[np.float32]
Sums = NDArray[np.float64]

PINV_RCOND = 1e-10
ALIKE = 0.9  # correlation at some rotation from which on no atom starts again
DRAWS = 16  # random directions among which one is found that is not like another atom


def random_atoms(basis: SteerableBasis, n_atoms: int, seed: int = 0) -> Floats:
    """Random unit vectors of the basis, evenly spread: (atom, coord)."""
    if problem := count_problem("n_atoms", n_atoms, 1):
        raise DscError(problem)
    atoms = np.random.default_rng(seed).standard_normal((n_atoms, basis.n_coords))
    atoms /= np.linalg.norm(atoms, axis=1, keepdims=True)
    return atoms.astype(np.float32)


def solve(
    statistics: Statistics,
    atoms: ArrayLike,
    basis: SteerableBasis,
    replace_twins: float | None = None,
) -> Floats:
    """New unit-norm atoms from the statistics of a pass: (atom, coord).

    Atoms that no patch uses start again from the worst-coded patches, each from one that is not
    like any atom, whatever its rotation.

    Parameters
    ----------
    statistics
        From `accumulate`, merged over all patches.
    atoms
        The atoms that the codes were made with.
    basis
        Their basis.
    replace_twins
        Where two new atoms are alike beyond this correlation at some rotation, the less used one
        starts again too. None keeps twins.
    """
    old = check_atoms(atoms, basis).astype(np.float64)
    if replace_twins is not None and not 0 < replace_twins <= 1:
        raise DscError(f"replace_twins: found {replace_twins}, need a correlation in (0, 1]")
    count = statistics.usage.count
    if count.size != len(old):
        raise DscError(f"atoms: found {len(old)}, need {count.size}, as in the statistics")
    if isinstance(statistics, KsvdStatistics):
        new = top_eigenvectors(statistics, old)
    else:
        new = joint_least_squares(statistics, old, basis)
    norms = np.linalg.norm(new, axis=1, keepdims=True)
    new = np.divide(new, norms, out=old.copy(), where=norms > 0)
    lost = count == 0
    if replace_twins is not None:
        lost |= find_twins(new, count, basis, replace_twins)
    return restart(new, lost, statistics.usage.worst, basis).astype(np.float32)


def top_eigenvectors(statistics: KsvdStatistics, old: Sums) -> Sums:
    """The unit vector that keeps most of each atom's scatter, with the sign closest to the old."""
    new = old.copy()
    n_coords = old.shape[1]
    matrix, lower = np.zeros((n_coords, n_coords)), np.tril_indices(n_coords)
    for m in np.flatnonzero(statistics.usage.count):
        matrix[lower] = statistics.scatter[m]  # eigh does not look at the upper triangle
        _, vector = eigh(matrix, subset_by_index=[n_coords - 1, n_coords - 1])
        new[m] = vector[:, 0] * (1.0 if vector[:, 0] @ old[m] >= 0 else -1.0)
    return new


def joint_least_squares(statistics: ModStatistics, old: Sums, basis: SteerableBasis) -> Sums:
    """All atoms at once: the least-squares correction at fixed codes (not normalised).

    In complex coordinates c + js a rotation multiplies by e^{jtθ}, so the problem falls apart by
    frequency: N_t δ_t = right_t. The coordinate error at these codes cannot rise.
    """
    new = old.copy()
    start = basis.start
    for t in range(len(start) - 1):
        columns = slice(start[t], start[t + 1])
        normal, right = statistics.normal[t], statistics.right[:, columns]
        if t == 0:
            new[:, columns] += np.linalg.pinv(normal.real, PINV_RCOND, hermitian=True) @ right
        elif right.size:
            half = right.shape[1] // 2
            complex_right = right[:, :half] + 1j * right[:, half:]
            delta = np.linalg.pinv(normal, PINV_RCOND, hermitian=True) @ complex_right
            new[:, columns] += np.hstack([delta.real, delta.imag])
    return new


def rotation_correlations(atoms: Sums, basis: SteerableBasis) -> Sums:
    """(atom, atom) the largest |correlation| of two atoms over all rotations.

    ⟨d, R(θ) d'⟩ is a trigonometric polynomial; it is evaluated on a grid of 8 (T + 1) angles.
    """
    start = basis.start
    spectrum = np.empty((basis.max_frequency + 1, len(atoms), len(atoms)), np.complex128)
    spectrum[0] = atoms[:, : start[1]] @ atoms[:, : start[1]].T
    for t in range(1, len(start) - 1):
        half = (start[t + 1] - start[t]) // 2
        z = atoms[:, start[t] : start[t] + half] + 1j * atoms[:, start[t] + half : start[t + 1]]
        spectrum[t] = z @ z.conj().T
    largest = np.zeros(spectrum.shape[1:])
    for theta in np.linspace(0, 2 * np.pi, 8 * len(spectrum), endpoint=False):
        wave = np.exp(-1j * theta * np.arange(len(spectrum)))
        np.maximum(largest, np.abs(np.tensordot(wave, spectrum, 1).real), out=largest)
    return largest


def find_twins(
    atoms: Sums, count: NDArray[np.int64], basis: SteerableBasis, threshold: float
) -> NDArray[np.bool_]:
    """(atom,) True for the less used of each pair more alike than `threshold`."""
    alike = rotation_correlations(atoms, basis) > threshold
    lost = np.zeros(len(atoms), bool)
    kept: list[int] = []
    for m in np.lexsort((np.arange(len(atoms)), -count)):
        lost[m] = alike[m, kept].any()
        if not lost[m]:
            kept.append(m)
    return lost


def restart(
    atoms: Sums, lost: NDArray[np.bool_], worst: WorstPatches, basis: SteerableBasis
) -> Sums:
    """`atoms` with the lost ones set to what the code left of the worst patches.

    Taken are those less like each other and all atoms, the lost ones too, than `ALIKE`: an atom
    that nothing used since it started from a patch does not start from it again. Where the patches
    are not enough, a lost atom stays if it is not like any other, else its direction is random: a
    pure function of all atoms and its number.
    """
    new = atoms.copy()
    waiting = list(np.flatnonzero(lost))
    known = _Known(atoms, basis)
    for entry in np.flatnonzero(worst.error > 0):
        if not waiting:
            break
        residual = worst.residual[entry].astype(np.float64)
        norm = np.linalg.norm(residual)
        if norm > 0 and known.likeness(residual / norm) < ALIKE:
            new[waiting.pop(0)] = residual / norm
            known.add(residual / norm)
    if waiting:
        settled = np.setdiff1d(np.arange(len(new)), waiting)
        known = _Known(new[settled], basis)
        for m in waiting:
            new[m] = _apart(new[m], known, f"restart {m} {sha256(atoms.tobytes()).hexdigest()}")
            known.add(new[m])
    return new


class _Known:
    """Atoms that new ones must not be like, whatever their rotation."""

    def __init__(self, atoms: Sums, basis: SteerableBasis) -> None:
        self._atoms, self._start = atoms, basis.start
        n_angles = 8 * (basis.max_frequency + 1)
        steps = np.outer(np.arange(n_angles), np.arange(basis.max_frequency + 1)) % n_angles
        theta = 2 * np.pi * steps / n_angles
        self._waves = np.hstack([np.cos(theta), np.sin(theta)])  # (angle, 2 · frequency)

    def add(self, atom: Sums) -> None:
        """One more."""
        self._atoms = np.vstack([self._atoms, atom])

    def likeness(self, atom: Sums) -> float:
        """The largest |correlation| with any of them, as of `rotation_correlations`."""
        products = np.zeros((2, len(self._start) - 1, len(self._atoms)))
        for t, (begin, end) in enumerate(pairwise(self._start)):
            products[0, t] = self._atoms[:, begin:end] @ atom[begin:end]
            if t > 0:  # with c + js as -s + jc
                cos, sin = np.split(atom[begin:end], 2)
                products[1, t] = self._atoms[:, begin:end] @ np.concatenate([-sin, cos])
        both = products.reshape(self._waves.shape[1], len(self._atoms))
        return float(np.abs(self._waves @ both).max(initial=0))


def _apart(atom: Sums, known: _Known, purpose: str) -> Sums:
    """An atom, or if it is like a known one the first random direction that is not."""
    if known.likeness(atom) < ALIKE:
        return atom
    bits = uniform_bits(0, purpose, np.arange(DRAWS * atom.size)).reshape(DRAWS, -1)
    draws = ndtri(((bits >> np.uint64(11)) + 0.5) / 2.0**53)  # directions evenly spread
    draws /= np.linalg.norm(draws, axis=1, keepdims=True)
    found = np.array([known.likeness(one) for one in draws])
    first = np.argmax(found < ALIKE) if found.min() < ALIKE else np.argmin(found)
    return np.asarray(draws[first])
