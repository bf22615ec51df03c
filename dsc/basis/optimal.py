"""The orthonormal steerable basis that rotates images best.

Take images as an isotropic random field with the spectrum S(f), f in cycles per pixel. By Graf's
addition theorem its covariance, as a function of the angle u between two pixels at the radii r and
r', has the Fourier coefficients

    c_t(r, r') = ∫ S(f) J_t(2πfr) J_t(2πfr') f df .

For a frequency t let F_t[k, k'] = e^{jt(φ_k − φ_k')} c_t(r_k, r_k') on the pixels k = (r, φ), with
the constant projected out on both sides: Hermitian and positive semidefinite. A basis with
orthonormal complex functions Φ_t (of the frequencies ±t) that rotates by multiplying them with
e^{jtθ} has, averaged over all angles θ, the expected squared error

    E‖x‖² + E‖Φ*x‖² − 2 Σ_t tr(Φ_t* F_t Φ_t) ,

in which E‖Φ*x‖² is nearly E‖x‖² for a nearly complete basis. The last sum is maximised:

1. *Start*: all eigenvectors of all F_t, largest eigenvalue first, each taken if what is left of it
   outside the span so far has singular values ≥ 0.15, up to the wanted number of coordinates.
2. *Ascent*: Φ ← polar factor of [F_t Φ_t]. It maximises the linear function Re tr(Φ* F Φ_old), and
   as F_t ⪰ 0 the sum cannot fall.
3. Within each frequency the functions are rotated to the eigenvectors of Φ_t* F_t Φ_t, which leaves
   the sum as it is and orders them by what they explain.

All of it is done in the real coordinates of the classes t mod 4 (`dsc.basis.wedge`), so that the
quarter rotation is exact, the constant is orthogonal to all else, and pairs are whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import jv

from dsc.basis.wedge import DIRECTIONS, ClassCoords, Wedge, class_coords, wedge_of
from dsc.blas import one_blas_thread

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

VERSION = 1  # of the computation: another one gives other bits

SMALLEST_LEFT = 0.15  # of a new function outside the span so far: below it, it does not fit
SMALLEST_SINGULAR_VALUE = 1e-10  # of the largest, else rounding decides on a polar factor
SMALLEST_EIGENVALUE = 1e-9  # of the largest: what is below is not looked at


class Spectrum(NamedTuple):
    """S(f) = (f² + corner²)^−exponent up to the cutoff, falling to 0 over the last `roll`."""

    exponent: float = 1.5
    corner: float = 0.02
    cutoff: float = 0.7
    roll: float = 0.02


class Options(NamedTuple):
    """What decides an optimal basis, beside the diameter."""

    spectrum: Spectrum = Spectrum()
    share: float = 0.98  # coordinates wanted, of the pixels
    n_rounds: int = 10


DEFAULT = Options()


class WedgeBasis(NamedTuple):
    """A basis on the wedge, its coordinates as in `SteerableBasis`: (coord,), (place, coord)."""

    frequency: Ints
    level: Floats
    values: Floats


class Pair(NamedTuple):
    """A function of the basis at its end."""

    t: int
    gain: float  # ψ* F ψ of the unit function
    values: Floats  # (2, place) c and s on the wedge


@dataclass(frozen=True, eq=False)
class Field:
    """The random field on the radii of a disk: c_t = B Bᵀ, so that it is positive semidefinite."""

    radius: Floats
    nodes: Floats  # f of the quadrature
    weights: Floats  # S(f) f df

    def root(self, t: int) -> Floats:
        """(radius, node) B, with c_t = B Bᵀ."""
        waves = jv(t, 2 * np.pi * np.outer(self.radius, self.nodes))
        return np.asarray(waves * np.sqrt(self.weights))


def field_of(radius: Floats, spectrum: Spectrum) -> Field:
    """The field of variance one, by Gauss–Legendre quadrature between the spectrum's bends."""
    exponent, corner, cutoff, roll = spectrum
    bends = [0.0, corner, 4 * corner, cutoff - roll, cutoff]
    nodes, weights = [], []
    for low, high in pairwise(bends):
        n_waves = 2 * (high - low) * radius.max()  # of J_t(2πfr) J_t(2πfr')
        x, w = np.polynomial.legendre.leggauss(20 + int(4 * n_waves))
        nodes.append((low + high) / 2 + (high - low) / 2 * x)
        weights.append((high - low) / 2 * w)
    f, df = np.concatenate(nodes), np.concatenate(weights)
    density = (f**2 + corner**2) ** -exponent * np.clip((cutoff - f) / roll, 0, 1) * f * df
    return Field(radius, f, density / density.sum())


@dataclass(frozen=True, eq=False)
class Modes:
    """F_s of one frequency s, in the real coordinates of its class, as E diag(λ) Eᵀ.

    Coordinates are those of ψ for class 1; for the classes 0 and 2, where ψ and its conjugate are
    of one class, those of c and of s.
    """

    s: int  # below zero in class 1: the conjugate is of the frequency −s, of class 3
    vectors: Floats  # (coord, mode) E, orthonormal
    values: Floats  # (mode,) λ > 0, falling

    def apply(self, functions: Floats) -> Floats:
        """F_s Φ_s."""
        return self.vectors @ (self.values[:, None] * (self.vectors.T @ functions))


@dataclass(frozen=True, eq=False)
class Class:
    """Everything of one class: its coordinates, without the constant, and its modes."""

    coords: ClassCoords
    parts: list[Ints]  # rows of c and rows of s, or all rows in class 1
    modes: list[Modes]


class Taken(NamedTuple):
    """One function taken at the start: its eigenvalue, and where its eigenvector is."""

    value: float
    number: int  # of the class
    mode: int
    vector: int
    n_coords: int  # one at t = 0, else two


def class_of(wedge: Wedge, number: int, field: Field) -> Class:
    """The modes of the frequencies of a class: 0, 4, 8, … or 2, 6, … or 1, −3, 5, −7, …."""
    coords = class_coords(wedge, number)
    radius = np.searchsorted(field.radius, _radius(wedge))[coords.place]
    modes, t, largest = [], number, 0.0
    while True:
        s = t if (t - number) % 4 == 0 else -t
        root = coords.harmonic(s)[:, None] * field.root(t)[radius]
        root = without_constant(coords, root)
        values, right = np.linalg.eigh(root.T @ root)  # F = L Lᵀ has those of Lᵀ L
        largest = max(largest, values[-1])
        used = np.flatnonzero(values > SMALLEST_EIGENVALUE * largest)[::-1]
        if not used.size and t > 4:
            break
        vectors = root @ right[:, used] / np.sqrt(values[used])
        modes.append(Modes(s, vectors, values[used]))
        t += 2 if number == 1 else 4
    parts = [np.flatnonzero(part[int(number == 0) :]) for part in coords.parts]
    return Class(coords, parts, modes)


def without_constant(coords: ClassCoords, rows: Floats) -> Floats:
    """Coordinates on the constant's complement: one fewer in class 0, by a reflection."""
    return _reflected(coords, rows)[1:] if coords.number == 0 else rows


def with_constant(coords: ClassCoords, rows: Floats) -> Floats:
    """The inverse of `without_constant`, for functions orthogonal to the constant."""
    if coords.number != 0:
        return rows
    return _reflected(coords, np.vstack([np.zeros((1, rows.shape[1])), rows]))


def _reflected(coords: ClassCoords, rows: Floats) -> Floats:
    """The Householder reflection that exchanges the constant and the first coordinate."""
    normal = np.where(coords.direction == 0, coords.weight, 0.0)
    normal /= -np.linalg.norm(normal)
    normal[0] -= 1.0  # both have the same sign: nothing is lost by rounding
    return np.asarray(rows - np.outer(normal, 2 / (normal @ normal) * (normal @ rows)))


def fitting(one: Class) -> list[Taken]:
    """Step 1 for a class, to its end: the functions that fit, largest eigenvalue first."""
    queue = [(-v, m, i) for m, mode in enumerate(one.modes) for i, v in enumerate(mode.values)]
    spans = [np.empty((rows.size, rows.size)) for rows in one.parts]
    filled = [0 for _ in spans]
    taken = []
    for value, m, i in sorted(queue):
        s = one.modes[m].s
        function = functions_of(one, m, [i])[:, 0]
        left = []
        for rows, span, size in zip(one.parts, spans, filled, strict=True):
            vector = function[rows]
            for _ in range(2):  # once more, for the rounding
                vector = vector - span[:, :size] @ (span[:, :size].T @ vector)
            left.append(vector)
        used = left[:1] if s == 0 else left
        norms = [float(np.linalg.norm(vector)) for vector in used]
        if min(norms) < SMALLEST_LEFT:
            continue
        for part, (vector, norm) in enumerate(zip(used, norms, strict=True)):
            spans[part][:, filled[part]] = vector / norm
            filled[part] += 1
        taken.append(Taken(-value, one.coords.number, m, i, 1 if s == 0 else 2))
    return taken


def best(taken: list[Taken], n_coords: int) -> list[Taken]:
    """The first ones up to a number of coordinates; a pair that does not fit whole is left out."""
    chosen, room = [], n_coords
    for one in sorted(taken, reverse=True):
        if one.n_coords <= room:
            chosen.append(one)
            room -= one.n_coords
    return chosen


def functions_of(one: Class, mode: int, vectors: list[int]) -> Floats:
    """Eigenvectors as columns: c and s, where they are apart, have about norm one each."""
    scale = len(one.parts) ** 0.5 if one.modes[mode].s else 1.0
    return one.modes[mode].vectors[:, vectors] * scale


def polar_factor(one: Class, functions: list[Floats]) -> tuple[list[Floats], float]:
    """The nearest functions, of all frequencies together, that are orthonormal on each part.

    Also the smallest singular value by the largest: near zero, rounding decides on the result.
    """
    nearest, smallest = [np.zeros_like(columns) for columns in functions], 1.0
    for number, rows in enumerate(one.parts):
        used = [m for m, mode in enumerate(one.modes) if mode.s or number == 0]
        matrix = np.hstack([functions[m][rows] for m in used])
        if not matrix.size:
            continue
        left, values, right = np.linalg.svd(matrix, full_matrices=False)
        smallest = min(smallest, float(values[-1] / values[0]))
        ends = np.cumsum([functions[m].shape[1] for m in used])
        for m, columns in zip(used, np.split(left @ right, ends[:-1], axis=1), strict=True):
            nearest[m][rows] = columns
    return nearest, smallest


def explained(one: Class, functions: list[Floats]) -> float:
    """Σ_t tr(Φ_t* F_t Φ_t), over both functions of a pair: what the ascent raises."""
    pair = 2.0 if len(one.parts) == 1 else 1.0
    both = zip(one.modes, functions, strict=True)
    return float(pair * sum((phi * mode.apply(phi)).sum() for mode, phi in both))


def ascend(one: Class, functions: list[Floats]) -> list[Floats]:
    """Step 2, one round; none where the functions would be decided by rounding."""
    both = zip(one.modes, functions, strict=True)
    better, smallest = polar_factor(one, [mode.apply(phi) for mode, phi in both])
    return better if smallest >= SMALLEST_SINGULAR_VALUE else functions


def in_order(one: Class, functions: list[Floats]) -> tuple[list[Floats], list[Floats]]:
    """Step 3: the functions of each frequency by ψ* F ψ, falling, and these values.

    The sign is the one that makes the largest coordinate positive.
    """
    ordered, gains = [], []
    for mode, phi in zip(one.modes, functions, strict=True):
        share = len(one.parts) if mode.s else 1  # c and s have norm one each
        values, mixing = np.linalg.eigh(phi.T @ mode.apply(phi) / share)
        columns = phi @ mixing[:, ::-1]
        largest = columns[np.abs(columns).argmax(0), np.arange(columns.shape[1])]
        ordered.append(columns * np.sign(largest))
        gains.append(values[::-1])
    return ordered, gains


@one_blas_thread()
def wedge_basis(diameter: int, options: Options = DEFAULT) -> WedgeBasis:
    """The optimal basis of a disk, on its wedge."""
    wedge = wedge_of(diameter)
    field = field_of(np.unique(_radius(wedge)), options.spectrum)
    classes = [class_of(wedge, number, field) for number in range(3)]
    n_wanted = int(options.share * wedge.n_pixels)
    taken = best([one for some in classes for one in fitting(some)], n_wanted - 1)
    pairs = []
    for one in classes:
        functions, _ = polar_factor(one, _started(one, taken))
        for _ in range(options.n_rounds):
            functions = ascend(one, functions)
        for mode, phi, gains in zip(one.modes, *in_order(one, functions), strict=True):
            for values, gain in zip(_on_wedge(one, wedge, mode.s, phi), gains, strict=True):
                pairs.append(Pair(abs(mode.s), float(gain), values))
    return _assembled(pairs, wedge)


def _radius(wedge: Wedge) -> Floats:
    return np.asarray(np.sqrt(wedge.x**2 + wedge.y**2) / 2)


def _started(one: Class, taken: list[Taken]) -> list[Floats]:
    ours = [some for some in taken if some.number == one.coords.number]
    return [
        functions_of(one, m, [some.vector for some in ours if some.mode == m])
        for m in range(len(one.modes))
    ]


def _on_wedge(one: Class, wedge: Wedge, s: int, functions: Floats) -> Floats:
    """(function, 2, place): c and s, the sign of s changed where s < 0 stands for −s."""
    coords = one.coords
    rows = with_constant(coords, functions) / coords.weight[:, None]
    if coords.number == 1:
        rows = rows * 2**0.5  # ψ = (c + js) / √2
    values = np.zeros((functions.shape[1], 2, wedge.x.size))
    for part in range(2):
        np.add.at(
            values[:, part].T, coords.place, rows * DIRECTIONS[coords.direction, part][:, None]
        )
    values[:, 1] *= np.sign(s)
    return values


def _assembled(pairs: list[Pair], wedge: Wedge) -> WedgeBasis:
    """Columns in the order [constant | t=0 | t=1 cos | t=1 sin | …].

    The level of a coordinate is √(the share of coordinates up to it and its partner, in the order
    of what they explain): the first quarter of them is below the level ½.
    """
    pairs = sorted(pairs, key=lambda pair: -pair.gain)
    n_before = np.cumsum([1] + [1 if pair.t == 0 else 2 for pair in pairs])
    levels = np.sqrt(n_before[1:] / n_before[-1])
    columns = [np.full(wedge.x.size, wedge.n_pixels**-0.5)]
    frequency, level = [0], [0.0]
    for t in sorted({pair.t for pair in pairs}):
        ours = [i for i, pair in enumerate(pairs) if pair.t == t]
        for part in range(1 if t == 0 else 2):
            columns += [pairs[i].values[part] for i in ours]
            frequency += [t] * len(ours)
            level += [float(levels[i]) for i in ours]
    return WedgeBasis(np.array(frequency, np.int64), np.array(level), np.stack(columns, axis=1))
