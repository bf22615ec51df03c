"""A run folder: the options that repeat it, a log of events, checkpoints, and at the end the model.

RUN/run.toml            options, for `dsc learn --config`
RUN/events.jsonl        one JSON object a line
RUN/checkpoints/…       the last complete iterations
RUN/model.zarr          the result; a run that has it is finished

A run of `dsc texture` also has patches/ while it learns, and features.jsonl.
"""

from __future__ import annotations

import json
import shutil
import time
import tomllib
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from dsc.basis import SteerableBasis
from dsc.engine.numerics import fingerprint_difference
from dsc.errors import DscError
from dsc.files import append_records, partial_path, read_records, write_whole
from dsc.learning.loop import State
from dsc.model.dictionary import Dictionary, load_state, save_state
from dsc.store import is_finished, open_store

KEEP = 2  # checkpoints
PARTIAL = partial_path(Path("run.toml")).name
FILES = {
    "run.toml", PARTIAL, "events.jsonl", "checkpoints", "model.zarr", "report", "patches",
    "features.jsonl",
}  # fmt: skip


@dataclass(frozen=True)
class RunFolder:
    """The files of one run of `learn`."""

    path: Path

    @property
    def model(self) -> str:
        """Where the learned dictionary is, once the run is finished."""
        return str(self.path / "model.zarr")

    @property
    def finished(self) -> bool:
        """Whether the model is there, complete."""
        return is_finished(self.model)

    def begin(self, resume: bool) -> None:
        """Make the folder; an existing path is taken only if it is an unfinished run of ours."""
        try:
            self._begin(resume)
        except OSError as error:
            raise DscError(f"{self.path}: the run folder cannot be made: {error}") from error

    def _begin(self, resume: bool) -> None:
        if self.path.exists() and not self._ours():
            raise DscError(f"{self.path}: exists and is no run of dsc: choose another --out")
        if not resume and self.finished:
            raise DscError(
                f"{self.path}: holds a finished run: choose another --out, or remove it first"
            )
        if not resume and self.path.exists():
            shutil.rmtree(self.path)
        (self.path / "checkpoints").mkdir(parents=True, exist_ok=True)

    def _ours(self) -> bool:
        return self.path.is_dir() and {entry.name for entry in self.path.iterdir()} <= FILES

    def write_options(self, options: dict[str, Any]) -> None:
        """Write run.toml, whole or not at all."""
        write_whole(self.path / "run.toml", to_toml(options))

    def log(self, event: str, **values: Any) -> None:
        """Append an event."""
        append_records(
            self.path / "events.jsonl", [{"event": event, "time": time.time(), **values}]
        )

    @property
    def n_tasks(self) -> int:
        """Tasks in the graph of one iteration, as planned when the run last started."""
        starts = [event for event in self.events() if event["event"] == "start"]
        return int(starts[-1]["plan"]["graph_size"]) if starts else 0

    def events(self) -> list[dict[str, Any]]:
        """All complete events so far; a line that a kill has cut does not count."""
        return read_records(self.path / "events.jsonl")

    def save(self, state: State, basis: SteerableBasis, identity: dict[str, Any]) -> None:
        """Write a checkpoint; older ones than the last two go."""
        assert state.count is not None
        folder = self.path / "checkpoints"
        save_state(
            str(folder / f"{state.iteration:06d}.zarr"),
            basis,
            {
                "basis": basis.name,
                "diameter": basis.diameter,
                "iteration": state.iteration,
                "rest": state.rest,
                "identity": identity,
            },
            atoms=state.atoms,
            history=np.array(state.history),
            count=state.count,
        )
        for old in sorted(folder.glob("*.zarr"))[:-KEEP]:
            shutil.rmtree(old)

    def last(self, identity: dict[str, Any]) -> tuple[State, SteerableBasis] | None:
        """The last complete checkpoint, refused if it is of another problem."""
        for path in sorted((self.path / "checkpoints").glob("*.zarr"), reverse=True):
            if not is_finished(str(path)):
                continue
            arrays, attributes, basis = load_state(str(path))
            check_identity(str(self.path), attributes["identity"], identity)
            state = State(
                iteration=int(attributes["iteration"]),
                atoms=arrays["atoms"],
                history=tuple(arrays["history"].tolist()),
                count=arrays["count"],
                rest=float(attributes["rest"]),
            )
            return state, basis
        return None


def load_dictionary(path: str | PathLike[str]) -> Dictionary:
    """The dictionary of a finished run folder, or of a model store."""
    path = str(path)
    folder = RunFolder(Path(path))
    if "://" not in path and (folder.path / "run.toml").is_file():
        if not folder.finished:
            raise DscError(
                f"{path}: the run is not finished: continue it with `dsc learn --resume`"
            )
        return Dictionary.load(folder.model)
    return Dictionary.load(path)


def describe(path: str | PathLike[str]) -> dict[str, Any]:
    """What is at a path: a run folder, or any store of ours, in plain values."""
    path = str(path)
    folder = RunFolder(Path(path))
    if "://" not in path and (folder.path / "run.toml").is_file():
        passes = [event for event in folder.events() if event["event"] == "iteration"]
        about = {"kind": "run", "finished": folder.finished, "passes": len(passes)}
        if passes:
            about["mse"] = passes[-1]["mse"]
        return {**about, **from_toml(folder.path / "run.toml")}
    store = open_store(path)
    attributes = {name.removeprefix("dsc_"): value for name, value in store.attributes.items()}
    arrays = {
        name: " × ".join(f"{size:,}" for size in store.shape(name)) for name in store.variables
    }
    return {"kind": store.kind, **attributes, **arrays}


def check_finished(model: Dictionary, path: str, identity: dict[str, Any]) -> None:
    """Refuse to take a finished model of another problem for this one."""
    found = {"config": asdict(model.config), "patches": model.patches, "numerics": model.numerics}
    check_identity(path, found, identity)


def check_identity(path: str, found: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Name every difference between the run at `path` and the one asked for."""
    differences = [
        f"{part}: {text}"
        for part in wanted
        if (text := fingerprint_difference(wanted[part], found[part]))
    ]
    if differences:
        listed = "\n".join(f"  {line}" for line in differences)
        raise DscError(
            f"{path}: cannot resume, it was made with\n{listed}\n"
            "repeat its options (they are in run.toml), or choose another --out"
        )


def to_toml(options: dict[str, Any]) -> str:
    """Flat options as TOML; None is left out."""
    lines = [
        f"{name} = {json.dumps(value, ensure_ascii=False)}"
        for name, value in options.items()
        if value is not None
    ]
    return "\n".join(lines) + "\n"


def from_toml(path: Path) -> dict[str, Any]:
    """Flat options of a TOML file."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise DscError(f"{path}: cannot be read as TOML: {error}") from error
