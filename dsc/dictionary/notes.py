"""What people should know of their data and of what was learned: one line each, most often none."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np

from dsc.dictionary.loop import Problem, State
from dsc.errors import DscError
from dsc.patches import StoredPatches
from dsc.show import percent

FLAT = 1e-7  # of the energy: patches that vary less are constant, but for rounding
SATURATED = 0.01  # of the pixels: so many at one end of the range are no chance
ENDS = (("black (0)", "raise the offset"), ("white (1)", "expose less"))
LOOK = 4096  # patches looked at, in spans of neighbours
SPAN = 64


def learning_notes(states: Sequence[State], n_patches: Sequence[int]) -> list[str]:
    """What is odd about dictionaries that were learned from so many patches each."""
    n_atoms = [len(state.atoms) for state in states]
    unused = [int((state.count == 0).sum()) for state in states]
    notes = []
    small = [i for i, number in enumerate(n_patches) if n_atoms[i] > number]
    flat = [i for i, one in enumerate(states) if one.variation <= FLAT * one.energy]
    if small:
        first = f"{n_atoms[small[0]]:,} atoms, {n_patches[small[0]]:,} patches"
        notes.append(f"more atoms than patches ({first}){_of(small, states)}: ask for fewer atoms")
    if flat:
        notes.append(f"constant data: all patches are flat{_of(flat, states)}: look at the images")
    if sum(unused):
        some = [i for i, number in enumerate(unused) if number]
        found = f"{sum(unused):,} of {sum(n_atoms):,} atoms are unused"
        notes.append(f"{found}{_of(some, states)}: ask for fewer, or learn from more patches")
    return notes


def saturation_notes(sources: Sequence[object]) -> list[str]:
    """Whether the images of stored patch sets are cut off at black or white.

    A bounded number of patches is looked at, as they are in their images. Pixels are in
    [0, 1], whatever their type was; those of floats beyond it have no ends, and are passed over.
    """
    stored = [one for one in sources if isinstance(one, StoredPatches)]
    found: dict[int, dict[int, float]] = {}  # by the end of the range, share of each that has it
    for index, source in enumerate(stored):
        pixels = _some_pixels(source, max(SPAN, LOOK // len(stored)))
        if pixels.min() < 0 or pixels.max() > 1:
            continue
        for level in range(len(ENDS)):
            share = float((pixels == level).mean())
            if share > SATURATED:
                found.setdefault(level, {})[index] = share
    return [
        f"saturated images: {percent(max(shares.values()))} of the pixels of patches are "
        f"{ENDS[level][0]}{_of(list(shares), stored)}: {ENDS[level][1]}, or leave such images out"
        for level, shares in sorted(found.items())
    ]


def notes_of(problems: Sequence[Problem], states: Sequence[State]) -> list[str]:
    """All that is odd about what was learned, and what from."""
    sources = [problem.source for problem in problems]
    found = learning_notes(states, [source.n_patches for source in sources])
    with suppress(DscError, OSError):  # what cannot be read here, workers could: no reason to fail
        found += image_notes(sources)
    return found


def image_notes(sources: Sequence[object]) -> list[str]:
    """What is odd about the images of stored patch sets: a small part of a range, saturation."""
    stored = [one for one in sources if isinstance(one, StoredPatches)]
    noted = dict.fromkeys(note for one in stored for note in one.notes)
    return [*noted, *saturation_notes(stored)]


def _of(some: Sequence[int], everything: Sequence[object]) -> str:
    """In how many of several."""
    return f", in {len(some)} of {len(everything)} dictionaries" if len(everything) > 1 else ""


def _some_pixels(source: StoredPatches, most: int) -> np.ndarray:
    """(patch, pixel) of patches all over a set, neither centered nor scaled."""
    raw, n_patches = replace(source, center=False, unit=False), source.n_patches
    n_spans = -(-n_patches // SPAN)
    spans = np.unique(np.linspace(0, n_spans - 1, min(n_spans, most // SPAN)).astype(np.int64))
    return np.concatenate(
        [raw.pixels(s * SPAN, min((s + 1) * SPAN, n_patches)) for s in spans.tolist()]
    )
