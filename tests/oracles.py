"""Plain, slow float64 references that the fast code is compared with."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

EMPTY = 65535
ZERO_RESIDUAL = 1e-6  # of the patch's norm: nothing is left to gain
DEPENDENT = 1e-5  # squared distance of a unit atom from the span of those already chosen
NEW = 1e-4  # what is new in an atom counts as this share of its energy at least
TOO_LITTLE = 2e-5  # new share below which an atom is not scored


def turn(coords, frequency, theta):
    """R(θ) coords, one angle for all rows or one per row.

    Coordinates are ordered [t=0 | t=1 cos | t=1 sin | t=2 cos | …]; the complex number c + js of a
    pair is multiplied by e^{jtθ}.
    """
    coords = np.asarray(coords, np.float64)
    theta = np.broadcast_to(np.asarray(theta, np.float64), len(coords))
    turned = coords.copy()
    for t in range(1, int(frequency.max()) + 1):
        cosines, sines = np.split(np.flatnonzero(frequency == t), 2)
        z = (coords[:, cosines] + 1j * coords[:, sines]) * np.exp(1j * t * theta)[:, None]
        turned[:, cosines], turned[:, sines] = z.real, z.imag
    return turned


def augmented(atoms, frequency, n_angles):
    """All atoms at all angles: row `atom * n_angles + angle`."""
    grid = [turn(atoms, frequency, 2 * np.pi * r / n_angles) for r in range(n_angles)]
    return np.stack(grid, axis=1).reshape(-1, np.shape(atoms)[1])


class Pursuit(NamedTuple):
    atom: np.ndarray  # (patch, slot), EMPTY where not needed
    angle: np.ndarray  # (patch, slot)
    coef: np.ndarray  # (patch, slot)
    error: np.ndarray  # (patch,)


def pursue(coords, atoms, frequency, sparsity, n_angles, tolerance=0.0, pursuit="ols"):
    """Orthogonal least squares, or matching pursuit, on the explicit augmented dictionary."""
    coords = np.asarray(coords, np.float64)
    dictionary = augmented(atoms, frequency, n_angles)
    choice = np.full((len(coords), sparsity), -1)
    coef = np.zeros((len(coords), sparsity))
    residual = coords.copy()
    enough = np.maximum(tolerance, ZERO_RESIDUAL**2 * (coords**2).sum(1))
    live = np.ones(len(coords), bool)
    new = np.ones((len(coords), len(dictionary)))
    chosen = np.zeros((len(coords), sparsity, coords.shape[1]))
    for k in range(sparsity):
        if pursuit == "ols" and k:
            q = np.linalg.qr(chosen[:, :k].swapaxes(1, 2))[0]
            new = 1 - (np.einsum("pck,ac->pak", q, dictionary) ** 2).sum(2)
        score = np.abs(residual @ dictionary.T) / np.sqrt(np.maximum(new, NEW))
        score[new < TOO_LITTLE] = 0
        best = score.argmax(1)
        live &= ((residual**2).sum(1) > enough) & (score.max(1) > 0)
        live[live] = distance(dictionary[best[live]], dictionary[choice[live, :k]]) >= DEPENDENT
        choice[live, k] = best[live]
        chosen[:, k] = dictionary[choice[:, k]]
        some = chosen[live, : k + 1]  # (patch, slot, coord)
        right = some @ coords[live, :, None]
        coef[live, : k + 1] = np.linalg.solve(some @ some.swapaxes(1, 2), right)[..., 0]
        residual[live] = coords[live] - np.einsum("pk,pkc->pc", coef[live, : k + 1], some)
    atom, angle = np.divmod(choice, n_angles)
    return Pursuit(
        np.where(choice < 0, EMPTY, atom),
        np.where(choice < 0, 0, angle),
        coef,
        (residual**2).sum(1),
    )


def distance(new, chosen):
    """Squared distance of new (patch, coord) from the span of chosen (patch, slot, coord)."""
    cross = chosen @ new[:, :, None]
    inside = np.linalg.solve(chosen @ chosen.swapaxes(1, 2), cross)
    return (new**2).sum(1) - (cross * inside).sum((1, 2))


def forks(coords, atoms, frequency, n_angles, one, other, pursuit="ols"):
    """Where two codes of the same patches first choose differently, and how close the choices are.

    `one` and `other` are (atom, angle) pairs of (patch, slot). Returns the patch numbers and, for
    each, the relative difference of the two scores at the first differing step: infinite where
    only one of them stopped.
    """
    dictionary = augmented(atoms, frequency, n_angles)
    rows = [
        np.where(np.asarray(a) == EMPTY, -1, a * np.int64(n_angles) + r) for a, r in (one, other)
    ]
    patches = np.flatnonzero((rows[0] != rows[1]).any(1))
    gaps = []
    for p in patches:
        k = int((rows[0][p] != rows[1][p]).argmax())
        pair = np.array([rows[0][p, k], rows[1][p, k]])
        x = np.asarray(coords[p], np.float64)
        q = np.linalg.qr(dictionary[rows[0][p, :k]].T)[0]
        new = 1 - ((dictionary[pair] @ q) ** 2).sum(1) if pursuit == "ols" else np.ones(2)
        scores = np.abs(dictionary[pair] @ (x - q @ (q.T @ x))) / np.sqrt(np.maximum(new, NEW))
        low, high = np.sort(scores)
        gaps.append((high - low) / high if (pair >= 0).all() else np.inf)
    return patches, np.array(gaps)


def decode(codes, atoms, frequency):
    """Σ_k a_k R(θ_k) d_k."""
    atoms = np.asarray(atoms, np.float64)
    total = np.zeros((len(codes.atom), atoms.shape[1]))
    for k in range(codes.atom.shape[1]):
        used = codes.atom[:, k] != EMPTY
        theta = 2 * np.pi * codes.angle[used, k] / codes.n_angles
        turned = turn(atoms[codes.atom[used, k]], frequency, theta)
        total[used] += codes.coef[used, k, None].astype(np.float64) * turned
    return total


def aligned_occurrences(coords, codes, atoms, frequency, m):
    """Y_m, (occurrence, coord): y = R(−θ) residual + a d_m, once for each patch that uses m."""
    residual = np.asarray(coords, np.float64) - decode(codes, atoms, frequency)
    patch = np.flatnonzero((codes.atom == m).any(1))
    slot = (codes.atom[patch] == m).argmax(1)  # the first one picked
    theta = 2 * np.pi * codes.angle[patch, slot] / codes.n_angles
    back = turn(residual[patch], frequency, -theta)
    return back + codes.coef[patch, slot, None].astype(np.float64) * np.asarray(atoms[m], float)


def code_operator(codes, n_atoms, frequency):
    """The dense matrix of the map (all atoms) → (decoded patches), at fixed codes."""
    n_coords = len(frequency)
    operator = np.zeros((len(codes.atom), n_coords, n_atoms, n_coords))
    unit = np.eye(n_coords)
    for p, k in zip(*np.nonzero(codes.atom != EMPTY), strict=True):
        turned = turn(unit, frequency, 2 * np.pi * codes.angle[p, k] / codes.n_angles)
        operator[p, :, codes.atom[p, k]] += float(codes.coef[p, k]) * turned.T
    return operator.reshape(len(codes.atom) * n_coords, n_atoms * n_coords)


def likeness(one, other, frequency, n_angles=720):
    """The largest |correlation| of each row of `one` with each of `other`, over all rotations."""
    one, other = (np.asarray(a, np.float64) for a in (one, other))
    one, other = (a / np.linalg.norm(a, axis=1, keepdims=True) for a in (one, other))
    turned = augmented(other, frequency, n_angles).reshape(len(other), n_angles, -1)
    return np.abs(np.einsum("ic,jrc->ijr", one, turned, optimize=True)).max(2)
