"""Codes of all disks around a tile."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dsc.dictionary import Dictionary
from dsc.errors import DscError
from dsc.patches import cut_grid
from dsc.pursuit import Coder, Codes
from dsc.tiling import Tiled, Window

ROWS = 16  # rows of disks coded at a time


@dataclass(frozen=True, eq=False)
class Around:
    """Codes of the disks around a tile, all (y, x, slot)."""

    tops: tuple[range, range]  # first rows and first columns of the disks
    atom: NDArray[np.intp]  # −1 is an empty slot
    angle: NDArray[np.intp]  # on the grid of the coder's codes
    coef: NDArray[np.float64]
    # (y, x) 1, or 0 for a disk with a missing pixel, which has no code
    known: NDArray[np.float64]
    # (2, y, x) energy that the codes leave of a disk, as prepared, and what it had; 0 if not known
    energy: NDArray[np.float64]

    def within(self, rows: slice, columns: slice, tops: tuple[range, range]) -> Around:
        """Some of the disks, with these first rows and columns."""
        some = np.s_[rows, columns]
        energy = self.energy[:, rows, columns]
        codes = (self.atom[some], self.angle[some], self.coef[some])
        return Around(tops, *codes, self.known[some], energy)


def energy_left(around: Around, window: Window, diameter: int) -> NDArray[np.float64]:
    """(2, y, x) the energies of the disks around the pixels of a tile; 0 where there is no disk."""
    maps = np.zeros((2, window.y.stop - window.y.start, window.x.stop - window.x.start))
    here, there = [], []
    for tops, part in zip(around.tops, (window.y, window.x), strict=True):
        first = max(tops.start, part.start - diameter // 2)
        last = max(first, min(tops.stop, part.stop - diameter // 2))
        there.append(slice(first - tops.start, last - tops.start))
        begin = first + diameter // 2 - part.start
        here.append(slice(begin, begin + last - first))
    maps[:, *here] = around.energy[:, *there]
    return maps


def share_of(done: Tiled) -> float:
    """The share of the energy of all disks that their codes leave; 0 of nothing."""
    left, energy = done.sums[-2:].tolist()
    return left / energy if energy else 0.0


def check_rotates(model: Dictionary) -> None:
    """Refuse a dictionary whose atoms do not rotate."""
    if not model.basis.max_frequency:
        raise DscError(
            f"model: found one of the {model.basis.name} basis, need atoms that rotate: learn it "
            "with another basis"
        )


def settled_codes(how: HowToCode, coords: NDArray[np.float32]) -> Codes:
    """Codes whose atoms were all chosen with the others in place.

    A pursuit takes its first atom as if it were the only one: where two lines cross, one between
    them. Here every slot in its order is chosen again for what the others leave,
    (m, θ, a)_k = arg min ‖x − Σ_{j≠k} a_j R(θ_j) d_{m_j} − a R(θ) d_m‖², for some rounds: the error
    cannot rise.
    """
    coder, rounds = how.coder, how.rounds
    codes = coder.encode(coords, how.tolerance)
    if coder.sparsity == 1 or not rounds:
        return codes
    single = replace(coder, sparsity=1)
    left = coords - coder.decode(codes)
    for _ in range(rounds):
        for slot in range(coder.sparsity):
            one = np.s_[:, slot : slot + 1]
            own = Codes(
                codes.atom[one], codes.angle[one], codes.coef[one], codes.error, codes.n_angles
            )
            left += coder.decode(own)
            found = single.encode(left)
            left -= coder.decode(found)
            for name in ("atom", "angle", "coef"):
                getattr(codes, name)[one] = getattr(found, name)
    return codes


@dataclass(frozen=True, eq=False)
class HowToCode:
    """How disks are coded: by what, and prepared how.

    Disks of a `unit` dictionary have norm one, as its patches had, so that the squares of their
    coefficients are shares of their energy, whatever the contrast.
    """

    coder: Coder
    center: bool  # whether the mean of a disk is taken out
    unit: bool  # whether what is left is divided by its norm
    tolerance: float  # residual energy at which the coding of a disk stops
    rounds: int = 0  # in which atoms settle


def how_to_code(model: Dictionary, coder: Coder, rounds: int = 0) -> HowToCode:
    """How a dictionary codes the disks of an image, prepared as its patches were."""
    tolerance = model.config.stop(model.basis)
    center, unit = (bool(model.patches.get(name)) for name in ("center", "unit"))
    return HowToCode(coder, center, unit, tolerance, rounds)


def code_disks(window: Window, tops: tuple[range, range], how: HowToCode) -> Around:
    """Code the disks with these first rows and columns of the image."""
    coder = how.coder
    side = coder.basis.diameter
    (y0, x0), (rows, columns) = window.origin, tops
    pixels = window.pixels[:, columns.start - x0 : columns.stop - 1 - x0 + side]
    parts, known, energies = [], [], []
    for first in range(rows.start, rows.stop, ROWS):
        last = min(first + ROWS, rows.stop) - 1
        rows_of_disks = pixels[first - y0 : last - y0 + side]
        disks = cut_grid(rows_of_disks, side, 1, center=how.center, unit=how.unit)
        missing = np.isnan(disks).any(axis=1)
        disks[missing] = 0
        codes = settled_codes(how, coder.basis.project(disks))
        left = disks - coder.basis.reconstruct(coder.decode(codes))
        energies.append([(one.astype(np.float64) ** 2).sum(1) for one in (left, disks)])
        parts.append(codes)
        known.append(~missing)
    shape = (len(rows), len(columns), coder.sparsity)
    atom, angle, coef = (
        np.concatenate([getattr(part, name) for part in parts]).reshape(shape)
        for name in ("atom", "angle", "coef")
    )
    used = np.concatenate([part.used for part in parts]).reshape(shape)
    return Around(
        tops,
        np.where(used, atom.astype(np.intp), -1),
        angle.astype(np.intp),
        np.where(used, coef, 0).astype(np.float64),
        np.concatenate(known).reshape(shape[:2]).astype(np.float64),
        np.concatenate(energies, axis=1).reshape(2, *shape[:2]),
    )


def code_identity(how: HowToCode) -> str:
    """What decides the codes of an image, as text."""
    coder = how.coder
    return (
        f"{coder.sha256} {coder.basis.name} {coder.basis.diameter} {coder.pursuit} "
        f"{coder.sparsity} {coder.code_angles} {how.center} {how.unit} {how.rounds} {how.tolerance}"
    )
