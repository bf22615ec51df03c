"""A run folder: the options that repeat it, a log of events, checkpoints, and at the end the model.

RUN/run.json            says that the folder is ours; written first
RUN/run.toml            options, for `dsc learn --config`
RUN/events.jsonl        one JSON object a line
RUN/checkpoints/…       the last complete iterations
RUN/model.zarr          the result; a run that has it is finished

A run of `dsc texture` also has patches-…/ while it learns, and features.jsonl.

A folder is ours only if it has run.json. Nothing is ever removed from any other, and from ours only
what a run wrote.
"""

from __future__ import annotations

import json
import re
import shutil
import time
import tomllib
import uuid
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from dsc.basis import SteerableBasis
from dsc.dictionary.loop import State
from dsc.dictionary.model import Dictionary, load_state, save_state
from dsc.engine.numerics import fingerprint_difference
from dsc.errors import DscError
from dsc.files import append_records, partial_path, read_records, write_whole
from dsc.store import is_finished, open_store, remove_store

KEEP = 2  # checkpoints
KIND = "dsc run"
MARK = "run.json"
FILES = ("run.toml", "events.jsonl", "features.jsonl")
CHECKPOINT = re.compile(r"\d{6}\.zarr")


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

    def begin(self, resume: bool, overwrite: bool = False) -> None:
        """Make the folder, and mark it as ours before anything else is written.

        An existing one is taken only if it is marked, and only to continue it or, on purpose, to
        start over; then what the earlier run wrote goes, and nothing else.
        """
        try:
            self._begin(resume, overwrite)
        except OSError as error:
            raise DscError(f"{self.path}: the run folder cannot be made: {error}") from error

    def _begin(self, resume: bool, overwrite: bool) -> None:
        if resume and overwrite:
            raise DscError("resume and overwrite: found both, need one of them at most")
        if self._is_occupied():
            if self.token is None:
                raise DscError(f"{self.path}: exists and is no run of dsc: choose another --out")
            if not resume and not overwrite:
                what, remedy = "a finished", "--overwrite to start over"
                if not self.finished:
                    what, remedy = (
                        "an unfinished",
                        "--resume to continue it or --overwrite to start over",
                    )
                raise DscError(f"{self.path}: holds {what} run: use {remedy}, or another --out")
            if not resume:
                self._clear()
        self.path.mkdir(parents=True, exist_ok=True)
        if self.token is None:
            write_whole(self.path / MARK, json.dumps({"kind": KIND, "token": uuid.uuid4().hex}))
        (self.path / "checkpoints").mkdir(exist_ok=True)

    @property
    def token(self) -> str | None:
        """What names this run; None where the folder is not ours."""
        try:
            mark = json.loads((self.path / MARK).read_text(encoding="utf-8"))
            return str(mark["token"]) if mark["kind"] == KIND else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    @property
    def scratch(self) -> Path:
        """A folder for what is needed only while the run goes on; nobody else has one like it."""
        return self.path / f"patches-{self.token}"

    def _is_occupied(self) -> bool:
        """Whether there is anything, but for a mark that a kill has cut."""
        if not self.path.is_dir():
            return self.path.exists()
        return any(entry.name != partial_path(Path(MARK)).name for entry in self.path.iterdir())

    def _clear(self) -> None:
        """Remove what an earlier run wrote."""
        for name in FILES:
            (self.path / name).unlink(missing_ok=True)
        for store in (Path(self.model), *self.checkpoints()):
            remove_store(store)
        shutil.rmtree(self.scratch, ignore_errors=True)

    def checkpoints(self) -> list[Path]:
        """Those of this run, the oldest first."""
        folder = self.path / "checkpoints"
        entries = folder.iterdir() if folder.is_dir() else ()
        return sorted(path for path in entries if CHECKPOINT.fullmatch(path.name))

    def write_options(self, options: dict[str, Any]) -> None:
        """Write run.toml, whole or not at all."""
        write_whole(self.path / "run.toml", to_toml(options))

    def options(self) -> dict[str, Any]:
        """What is in run.toml; nothing if the run was stopped before it was written."""
        path = self.path / "run.toml"
        return from_toml(path) if path.is_file() else {}

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
        self.drop_old_checkpoints()

    def drop_old_checkpoints(self) -> None:
        """Remove all but the last two."""
        for old in self.checkpoints()[:-KEEP]:
            remove_store(old)

    def last(self, identity: dict[str, Any]) -> tuple[State, SteerableBasis] | None:
        """The last complete checkpoint, refused if it is of another problem."""
        for path in reversed(self.checkpoints()):
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
    if "://" not in path and folder.token is not None:
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
    if "://" not in path and folder.token is not None:
        passes = [event for event in folder.events() if event["event"] == "iteration"]
        about = {"kind": "run", "finished": folder.finished, "passes": len(passes)}
        if passes:
            about["mse"] = passes[-1]["mse"]
        return {**about, **folder.options()}
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
