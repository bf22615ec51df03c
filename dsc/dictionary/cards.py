"""Cards of dictionaries: the atoms as they are, or as they form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dsc.basis import SteerableBasis
from dsc.dictionary.loop import State
from dsc.show import COLUMNS, Card, atom_shades, mosaic

MOST_ATOMS = 50  # on a card
MOST_CARDS = 48  # side by side


def state_card(state: State, basis: SteerableBasis) -> Card:
    """One dictionary: error, atoms, use."""
    n_atoms, side = len(state.atoms), basis.diameter
    numbers = {}
    if state.history:
        numbers = {
            "error per pixel": f"{state.history[-1]:.4g}",
            "unused atoms": f"{(state.count == 0).sum()}",
        }
    return Card(
        f"{n_atoms} atoms of {side} × {side} pixels",
        numbers=numbers,
        curve=state.history,
        image=_atoms(state, basis, MOST_ATOMS),
        bars=state.count.tolist(),
    )


def states_card(
    states: Sequence[State], bases: Sequence[SteerableBasis], names: Sequence[str] = ()
) -> Card:
    """One dictionary, or many side by side under their names."""
    if len(states) == 1:
        return state_card(states[0], bases[0])
    titles = list(names) or [f"dictionary {index}" for index in range(len(states))]
    parts = [
        replace(state_card(state, basis), title=title, image=_atoms(state, basis, COLUMNS), bars=())
        for state, basis, title in zip(states[:MOST_CARDS], bases, titles, strict=False)
    ]
    if n_more := len(states) - len(parts):
        parts.append(Card(f"and {n_more} more"))
    return Card(f"{len(states)} dictionaries", cards=tuple(parts))


def _atoms(state: State, basis: SteerableBasis, most: int) -> NDArray[np.uint8]:
    """The most used atoms as one image."""
    order = np.argsort(-state.count, kind="stable")[:most]
    return mosaic(atom_shades(basis.to_image(state.atoms[order])), COLUMNS)
