"""A checkpoint: the states of a list of problems in one store.

Dictionaries may differ in their numbers of atoms and in their bases, so all of them stand one after
the other in flat arrays. A basis is kept whole, since its bits depend on where it was computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dsc.basis import SteerableBasis, disk_mask
from dsc.dictionary.loop import Problem, State
from dsc.store import create, open_store, schema_of


def save_checkpoint(path: Path, problems: Sequence[Problem], states: Sequence[State]) -> None:
    """Write the states of all problems."""
    bases = list({id(problem.basis): problem.basis for problem in problems}.values())
    arrays: dict[str, Any] = {
        "atoms": np.concatenate([state.atoms.ravel() for state in states]),
        "count": np.concatenate([state.count for state in states]),
        "history": np.concatenate([state.history for state in states]),
        "n_atoms": np.array([len(state.atoms) for state in states]),
        "n_entries": np.array([len(state.history) for state in states]),
        "iteration": np.array([state.iteration for state in states]),
        "rest": np.array([state.rest for state in states]),
        "finished": np.array([state.finished for state in states]),
        "basis": np.array([_index(bases, problem.basis) for problem in problems]),
        "basis_matrix": np.concatenate([basis.matrix.ravel() for basis in bases]),
        "basis_dual": np.concatenate([basis.dual.ravel() for basis in bases]),
        "basis_frequency": np.concatenate([basis.frequency for basis in bases]),
        "basis_level": np.concatenate([basis.level for basis in bases]),
    }
    sizes = {one.dims[0]: len(arrays[one.name]) for one in schema_of("checkpoint").values()}
    about = [
        {"name": basis.name, "diameter": basis.diameter, "n_coords": basis.n_coords}
        for basis in bases
    ]
    store = create(path, "checkpoint", sizes, {}, {"bases": about})
    for name, array in arrays.items():
        store.write(name, 0, array)
    store.finish()


def load_checkpoint(path: Path) -> tuple[list[State], list[SteerableBasis]]:
    """The state and the basis of every problem."""
    store = open_store(path, "checkpoint")
    arrays = {name: store.read(name) for name in schema_of("checkpoint")}
    bases = _read_bases(store.attributes["bases"], arrays)
    chosen = [bases[int(index)] for index in arrays["basis"]]
    n_values = arrays["n_atoms"] * [basis.n_coords for basis in chosen]
    atoms, counts, histories = (
        np.split(arrays[name], np.cumsum(sizes)[:-1])
        for name, sizes in (
            ("atoms", n_values),
            ("count", arrays["n_atoms"]),
            ("history", arrays["n_entries"]),
        )
    )
    states = [
        State(
            iteration=int(arrays["iteration"][i]),
            atoms=atoms[i].reshape(-1, basis.n_coords),
            history=tuple(histories[i].tolist()),
            count=counts[i],
            rest=float(arrays["rest"][i]),
            finished=bool(arrays["finished"][i]),
        )
        for i, basis in enumerate(chosen)
    ]
    return states, chosen


def _index(bases: Sequence[SteerableBasis], basis: SteerableBasis) -> int:
    return next(i for i, one in enumerate(bases) if one is basis)


def _read_bases(about: list[dict[str, Any]], arrays: dict[str, Any]) -> list[SteerableBasis]:
    bases = []
    value = coord = 0
    for one in about:
        mask, n_coords = disk_mask(one["diameter"]), one["n_coords"]
        values = slice(value, value + int(mask.sum()) * n_coords)
        coords = slice(coord, coord + n_coords)
        value, coord = values.stop, coords.stop
        bases.append(
            SteerableBasis.restore(
                dual=arrays["basis_dual"][values].reshape(-1, n_coords),
                name=one["name"],
                diameter=one["diameter"],
                mask=mask,
                frequency=arrays["basis_frequency"][coords],
                matrix=arrays["basis_matrix"][values].reshape(-1, n_coords),
                level=arrays["basis_level"][coords],
            )
        )
    return bases
