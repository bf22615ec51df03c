"""Where learning starts: random atoms, patches of the set, or the atoms of a dictionary."""

from __future__ import annotations

from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dsc.basis import SteerableBasis
from dsc.counter import choose
from dsc.dictionary.config import HASH, INITS, LearnConfig
from dsc.dictionary.loop import Problem
from dsc.dictionary.model import Dictionary, load_dictionary
from dsc.errors import DscError
from dsc.update import random_atoms

PICKS = 2**20  # patch numbers looked at together when atoms start from patches
SAME_BASIS = 1e-9  # entries of two computations of one basis differ by less


class GivenAtoms(NamedTuple):
    """Atoms of a dictionary, and what they are called in a configuration."""

    name: str
    atoms: NDArray[np.float32]


def given_atoms(config: LearnConfig, basis: SteerableBasis) -> GivenAtoms | None:
    """The atoms of a dictionary to start from, if there is one, known to fit."""
    init: Any = config.init
    if isinstance(init, str) and init in INITS:
        return None
    first = _first(init)
    _check_first(first, basis, config)
    return GivenAtoms(f"sha256:{first.sha256}", first.atoms)


def start_atoms(problem: Problem) -> NDArray[np.float32]:
    """Where learning starts: random atoms, patches of the set by their numbers, or given atoms."""
    config, basis = problem.config, problem.basis
    if problem.start is not None:
        return problem.start
    atoms = random_atoms(basis, config.n_atoms, config.seed)
    if config.init == "random":
        return atoms
    numbers = np.empty(0, np.int64)
    for begin in range(0, problem.source.n_patches, PICKS):  # choosing again among the chosen
        end = min(begin + PICKS, problem.source.n_patches)
        candidates = np.concatenate([numbers, np.arange(begin, end)])
        numbers = choose(config.seed, "init", candidates, config.n_atoms)
    for m, number in enumerate(numbers):
        coords = problem.source.read(basis, int(number), int(number) + 1)[0].astype(np.float64)
        norm = np.linalg.norm(coords)
        if norm > 0:  # else the random atom stays
            atoms[m] = coords / norm
    return atoms


def _first(init: Any) -> Dictionary:
    """The dictionary that learning starts from: a value, or the path of a run or a model."""
    if isinstance(init, Dictionary):
        return init
    if not isinstance(init, str | PathLike):
        raise DscError(
            f"init: found {type(init).__name__}, need {' or '.join(INITS)}, a Dictionary, or the "
            "path of a run or a model"
        )
    if HASH.fullmatch(str(init)):
        raise DscError(f"init: found {init}, which only names atoms, need the dictionary itself")
    return load_dictionary(init)


def _check_first(first: Dictionary, basis: SteerableBasis, config: LearnConfig) -> None:
    """Refuse a dictionary of other atoms than those that are to be learned."""
    found = first.basis
    pairs = {
        "basis": (found.name, basis.name),
        "diameter": (found.diameter, basis.diameter),
        "channels": (found.n_channels, basis.n_channels),
        "coordinates": (found.n_coords, basis.n_coords),
        "n_atoms": (len(first.atoms), config.n_atoms),
    }
    wrong = {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
    if wrong:
        has = ", ".join(f"{name} {pair[0]}" for name, pair in wrong.items())
        wanted = ", ".join(f"{name} {pair[1]}" for name, pair in wrong.items())
        raise DscError(f"init: found a dictionary of {has}, need {wanted}")
    if np.abs(found.matrix - basis.matrix).max() > SAME_BASIS:
        raise DscError(f"init: found another {found.name} basis, need that of this version")
