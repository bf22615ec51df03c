"""A checkpoint: the states of a list of problems in one store.

Dictionaries may differ in their numbers of atoms and in their bases, so all of them stand one after
the other in flat arrays. A basis is kept whole, since its bits depend on where it was computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, fields
from pathlib import Path
from typing import Any

import numpy as np

from dsc.basis import SteerableBasis, check_diameter, disk_mask
from dsc.dictionary.loop import PassSums, Problem, State
from dsc.errors import DscError, count_problem
from dsc.store import as_written, create, open_store, schema_of
from dsc.update import Running

ENERGIES = ("energy", "variation")  # that checkpoints of earlier versions do not have
# what only checkpoints of online runs have
ONLINE = ("batch", "sums", "running", "normal", "right", "idle")


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
        **{name: np.array([getattr(state, name) for state in states]) for name in ENERGIES},
        "finished": np.array([state.finished for state in states]),
        "basis": np.array([_index(bases, problem.basis) for problem in problems]),
        "basis_matrix": np.concatenate([basis.array("matrix").ravel() for basis in bases]),
        "basis_dual": np.concatenate([basis.array("dual").ravel() for basis in bases]),
        "basis_frequency": np.concatenate([basis.frequency for basis in bases]),
        "basis_level": np.concatenate([basis.level for basis in bases]),
        **_pack_online(states),
    }
    schema = schema_of("checkpoint")
    sizes = {schema[name].dims[0]: len(array) for name, array in arrays.items()}
    about = [
        {name: getattr(basis, name) for name in ("name", "diameter", "n_coords", "n_channels")}
        for basis in bases
    ]
    optional = [name for name in (*ENERGIES, *ONLINE) if name in arrays]
    store = create(path, "checkpoint", sizes, {}, {"bases": about}, optional)
    with store.writing():
        for name, array in arrays.items():
            store.write(name, 0, array)
        store.finish()


def _pack_online(states: Sequence[State]) -> dict[str, Any]:
    """What is kept between batches; nothing where no dictionary is updated online."""
    kept = [state.running for state in states if state.running is not None]
    if not kept:
        return {}
    return {
        "batch": np.array([state.batch for state in states]),
        "sums": np.concatenate([astuple(state.sums) for state in states]).astype(np.float64),
        "running": np.array([state.running is not None for state in states]),
        "normal": np.concatenate([one.normal.ravel() for one in kept]).view(np.float64),
        "right": np.concatenate([one.right.ravel() for one in kept]),
        "idle": np.concatenate([one.idle for one in kept]),
    }


def load_checkpoint(path: Path) -> tuple[list[State], list[SteerableBasis]]:
    """The state and the basis of every problem."""
    store = open_store(path, "checkpoint")
    arrays = {name: store.read(name) for name in store.variables}
    unknown = np.full(len(arrays["rest"]), np.nan)  # of a checkpoint of an earlier version
    arrays = dict.fromkeys(ENERGIES, unknown) | arrays
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
    atoms, counts = (
        _split(arrays, name, sizes) for name, sizes in (("atoms", n_values), ("count", n_atoms))
    )
    online = _unpack_online(arrays, n_atoms, chosen)
    histories = _split(arrays, "history", n_entries, 0)
    if any(not len(one) and not more["batch"] for one, more in zip(histories, online, strict=True)):
        raise DscError("history: found no error, need one of each pass")
    if not np.isfinite(arrays["atoms"]).all() or arrays["iteration"].min() < 0:
        raise DscError("atoms and iteration: found values that no iteration has")
    check_learned(arrays["history"] if len(arrays["history"]) else [0.0], arrays["count"])
    states = [
        State(
            iteration=int(arrays["iteration"][i]),
            atoms=atoms[i].reshape(-1, basis.n_coords),
            history=tuple(histories[i].tolist()),
            count=counts[i],
            rest=float(arrays["rest"][i]),
            energy=float(arrays["energy"][i]),
            variation=float(arrays["variation"][i]),
            finished=bool(arrays["finished"][i]),
            **online[i],
        )
        for i, basis in enumerate(chosen)
    ]
    return states, chosen


def _split(arrays: dict[str, Any], name: str, sizes: Any, least: int = 1) -> list[Any]:
    """The values of each dictionary, of these sizes."""
    if len(sizes) and (min(sizes) < least or sum(map(int, sizes)) != len(arrays[name])):
        raise DscError(f"{name}: found {len(arrays[name])} values, need {list(map(int, sizes))}")
    return np.split(arrays[name], np.cumsum(sizes)[:-1])


def _unpack_online(
    arrays: dict[str, Any], n_atoms: Any, bases: Sequence[SteerableBasis]
) -> list[dict[str, Any]]:
    """What `State` has of each dictionary besides, where one is updated online."""
    if not any(name in arrays for name in ONLINE):
        return [{"batch": 0} for _ in bases]
    if missing := [name for name in ONLINE if name not in arrays]:
        raise DscError(f"found no {', '.join(missing)}, need all of an online run")
    if not all(np.isfinite(arrays[name]).all() for name in ONLINE) or arrays["batch"].min() < 0:
        raise DscError("batch and its sums: found values that no batch leaves")
    sums = arrays["sums"].reshape(len(bases), len(fields(PassSums)))
    states: list[dict[str, Any]] = [
        {"batch": int(batch), "sums": PassSums(int(n_patches), *map(float, values))}
        for batch, (n_patches, *values) in zip(arrays["batch"], sums, strict=True)
    ]
    online = np.flatnonzero(arrays["running"]).tolist()
    atoms = [int(n_atoms[i]) for i in online]
    orders = [bases[i].max_frequency + 1 for i in online]
    n_normal = [2 * order * m**2 for order, m in zip(orders, atoms, strict=True)]
    n_right = [m * bases[i].n_coords for i, m in zip(online, atoms, strict=True)]
    parts = (
        _split(arrays, name, sizes)
        for name, sizes in (("normal", n_normal), ("right", n_right), ("idle", atoms))
    )
    for i, m, order, normal, right, idle in zip(online, atoms, orders, *parts, strict=True):
        normal = np.ascontiguousarray(normal).view(np.complex128).reshape(order, m, m)
        states[i]["running"] = Running(normal, right.reshape(m, -1), idle)
    return states


def _index(bases: Sequence[SteerableBasis], basis: SteerableBasis) -> int:
    return next(i for i, one in enumerate(bases) if one is basis)


def _read_bases(about: list[dict[str, Any]], arrays: dict[str, Any]) -> list[SteerableBasis]:
    bases = []
    value = coord = 0
    for one in about:
        mask, n_coords = disk_mask(check_diameter(one["diameter"])), one["n_coords"]
        n_pixels = int(mask.sum()) * one.get("n_channels", 1)
        values = slice(value, value + n_pixels * n_coords)
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
