"""A checkpoint: the states of a list of problems in one store.

Dictionaries may differ in their numbers of atoms and in their bases, so all of them stand one after
the other in flat arrays. A basis is kept whole, since its bits depend on where it was computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dsc.basis import SteerableBasis, check_diameter, disk_mask
from dsc.dictionary.loop import Problem, State
from dsc.errors import DscError, count_problem
from dsc.store import as_written, create, open_store, schema_of


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
    with store.writing():
        for name, array in arrays.items():
            store.write(name, 0, array)
        store.finish()


def load_checkpoint(path: Path) -> tuple[list[State], list[SteerableBasis]]:
    """The state and the basis of every problem."""
    store = open_store(path, "checkpoint")
    arrays = {name: store.read(name) for name in schema_of("checkpoint")}
    with as_written(store.url, "a checkpoint"):
        return _unpack(store.attributes["bases"], arrays)


def check_learned(history: Any, count: Any, n_patches: object = 1) -> None:
    """Refuse what no learning leaves: no error at all, or numbers of uses below zero."""
    problems = [count_problem("n_patches", n_patches, 1)]
    if not len(history) or np.isnan(history).any():
        problems.append("history: found no error, or one that is no number, need one of each pass")
    if (np.asarray(count) < 0).any():
        problems.append("count: found numbers below 0, need the uses of each atom")
    if any(problems):
        raise DscError("; ".join(filter(None, problems)))


def _unpack(about: Any, arrays: dict[str, Any]) -> tuple[list[State], list[SteerableBasis]]:
    bases = _read_bases(about, arrays)
    indices, n_atoms, n_entries = (arrays[name] for name in ("basis", "n_atoms", "n_entries"))
    if not len(indices) or not 0 <= indices.min() <= indices.max() < len(bases):
        raise DscError(f"basis: found others than the {len(bases)} bases there, need one of these")
    chosen = [bases[int(index)] for index in indices]
    n_values = n_atoms * [basis.n_coords for basis in chosen]
    parts = []
    for name, sizes in (("atoms", n_values), ("count", n_atoms), ("history", n_entries)):
        if min(sizes) < 1 or sum(map(int, sizes)) != len(arrays[name]):
            raise DscError(f"{name}: found {len(arrays[name])} values, need {sizes.tolist()}")
        parts.append(np.split(arrays[name], np.cumsum(sizes)[:-1]))
    atoms, counts, histories = parts
    if not np.isfinite(arrays["atoms"]).all() or arrays["iteration"].min() < 0:
        raise DscError("atoms and iteration: found values that no iteration has")
    check_learned(arrays["history"], arrays["count"])
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
        mask, n_coords = disk_mask(check_diameter(one["diameter"])), one["n_coords"]
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
