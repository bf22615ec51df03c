"""A run: a folder with an identity, a log of events, checkpoints, and at the end the results.

RUN/run.json            says that the folder is ours and what decides the results; written first
RUN/run.toml            options, for `dsc learn --config`
RUN/events.jsonl        one JSON object a line
RUN/progress.json       how far the present pass is, written anew at most twice a second
RUN/checkpoints/…       the last complete iterations, online batches too
RUN/model.zarr          the result; a run that has all of its results is finished

A folder is ours only if it has run.json. Nothing is ever removed from any other, and from ours only
what a run wrote.
"""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from math import isfinite, nan
from os import PathLike
from pathlib import Path
from typing import Any
from uuid import uuid4

from dsc.basis import SteerableBasis
from dsc.dictionary.cards import RunFacts, run_card
from dsc.dictionary.checkpoint import load_checkpoint, save_checkpoint
from dsc.dictionary.events import UNLOGGED
from dsc.dictionary.loop import Problem, State
from dsc.engine import fingerprint_difference
from dsc.errors import DscError
from dsc.files import (
    append_records,
    checksum,
    from_toml,
    local_path,
    partial_path,
    read_records,
    read_text,
    seal,
    to_toml,
    unseal,
    write_whole,
)
from dsc.locks import INSIDE, check_held, last_beat, lock, lock_path, unlock
from dsc.show import Card, Event
from dsc.store import is_finished, open_store, remove_store

KEEP = 2  # checkpoints
LONGEST = 500  # characters of what is said beside a bar
KIND, FORMAT = "dsc run", 3
MARK, OPTIONS, LOG, PULSE = "run.json", "run.toml", "events.jsonl", "progress.json"
MODEL = "model.zarr"

Identity = dict[str, dict[str, Any]]  # part → name → value, such as config, patches, numerics


@dataclass(frozen=True)
class RunTarget:
    """Which folder a run is kept in, and what to do with a run that is there."""

    path: str | PathLike[str]  # the folder
    resume: bool = False  # continue a run that is there, or start over; otherwise it is refused
    overwrite: bool = False
    # what stands in run.toml besides the configuration
    options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        local_path(self.path)


@dataclass(frozen=True)
class Run:
    """The folder of one run.

    Attributes
    ----------
    path
        Where it is, on a file system.
    """

    path: Path

    @staticmethod
    @contextmanager
    def begin(
        target: RunTarget,
        identity: Identity,
        results: Sequence[str] = (MODEL,),
        logs: Sequence[str] = (),
    ) -> Iterator[Run]:
        """Make the folder, and mark it as ours before anything else is written.

        No other process may work in it meanwhile. An existing one is taken only if it is marked,
        and only to continue it or, on purpose, to start over; then what the earlier run wrote goes,
        and nothing else.

        Parameters
        ----------
        target
            The folder, and what to do with a run that is there.
        identity
            What decides the results; a run with another one is not continued.
        results
            Names of the stores and files that finish the run.
        logs
            Names of the files that it writes besides.
        """
        if target.resume and target.overwrite:
            raise DscError("resume and overwrite: found both, need one of them at most")
        run = Run(Path(target.path))
        mark = {"kind": KIND, "format": FORMAT, "token": uuid4().hex, "identity": identity}
        mark |= {"results": list(results), "logs": [OPTIONS, LOG, PULSE, *logs]}
        with run.locked():
            try:
                is_there = run._is_occupied()
                if is_there:
                    run._check(target)
                if is_there and target.resume:
                    check_identity(str(run.path), run._mark["identity"], identity)
                else:
                    if is_there:
                        run._clear()
                    run.path.mkdir(exist_ok=True)
                    write_whole(run.path / MARK, seal(mark, indent=1))
                for folder in {(run.path / name).parent for name in results}:
                    folder.mkdir(exist_ok=True)  # not later: the run folder may be removed
            except OSError as error:
                raise DscError(f"{run.path}: the run folder cannot be made: {error}") from error
            yield run
            run._check_there()

    def check(self, target: RunTarget) -> None:
        """Refuse a folder in which a run cannot begin, before any work is done for it."""
        if self._is_occupied():
            self._check(target)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes out of the folder; this one may come in again."""
        place = lock_path(self.path)
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            lock(place, str(self.path))
        except OSError as error:
            raise DscError(f"{self.path}: the run folder cannot be made: {error}") from error
        try:
            yield
        finally:
            unlock(place)

    def _check(self, target: RunTarget) -> None:
        """Refuse a folder that is not ours, and one of ours unless it is said what to do."""
        if not self.exists:
            raise DscError(f"{self.path}: exists and is no run of dsc: choose another --out")
        if target.resume or target.overwrite:
            return
        found, remedy = "a finished", "--overwrite to start over"
        if not self.finished:
            found, remedy = "an unfinished", f"--resume to continue it or {remedy}"
        raise DscError(f"{self.path}: holds {found} run: use {remedy}, or another --out")

    @property
    def _mark(self) -> dict[str, Any]:
        """What is in run.json; nothing if the folder is not ours."""
        found = _read_json(self.path / MARK)
        if found.get("kind") != KIND:
            return {}
        mark = unseal(json.dumps(found))
        inside = mark is not None and all(
            isinstance(mark.get(part), list) and all(_is_inside(name) for name in mark[part])
            for part in ("results", "logs")
        )
        if mark is None or mark.get("format") != FORMAT or not inside:
            raise DscError(
                f"{self.path}: its {MARK} is damaged, or of another format than {FORMAT}: use the "
                "version of dsc that made it, or another --out"
            )
        return mark

    @property
    def exists(self) -> bool:
        """Whether the folder holds a run of ours."""
        return bool(self._mark)

    @property
    def finished(self) -> bool:
        """Whether all results are there, complete."""
        return bool(self.results) and all(_is_complete(self.path / name) for name in self.results)

    @property
    def is_worked_on(self) -> bool:
        """Whether a process that lives has locked the folder."""
        return last_beat(lock_path(self.path)) > 0

    @property
    def results(self) -> list[str]:
        """Names of the stores and files that finish the run."""
        return list(self._mark.get("results", ()))

    @property
    def model(self) -> str:
        """Where the model is, once the run is finished."""
        return str(self.path / MODEL)

    @property
    def scratch(self) -> Path:
        """A folder for what is used only while the run goes on; nobody else has one like it."""
        self._check_there()
        return self.path / f"patches-{self._mark['token']}"

    def _is_occupied(self) -> bool:
        """Whether there is anything, but for a mark that a kill has cut."""
        if not self.path.is_dir():
            return self.path.exists()
        nothing = {partial_path(Path(MARK)).name, INSIDE}
        return any(entry.name not in nothing for entry in self.path.iterdir())

    def _clear(self) -> None:
        """Remove what an earlier run wrote, its results first: then it is unfinished."""
        report = self.path / "report" / "report.json"
        facts, mark = _read_json(report), self._mark
        for path in (*(self.path / name for name in mark["results"]), *self.checkpoints()):
            path.unlink() if path.is_file() else remove_store(path)
        files = [self.path / name for name in mark["logs"]]
        if str(facts.get("kind")).startswith("dsc "):
            names = [name for name in facts.get("files", ()) if _is_inside(name)]
            files += [report, *(report.parent / name for name in names)]
        for path in files:
            path.unlink(missing_ok=True)
        shutil.rmtree(self.scratch, ignore_errors=True)

    def write_options(self, options: dict[str, Any]) -> None:
        """Write run.toml, whole or not at all; its first line has the checksum of the others."""
        text = to_toml(options)
        write_whole(self.path / OPTIONS, f"# crc32c {checksum(text)}\n{text}")

    def options(self) -> dict[str, Any]:
        """What is in run.toml; nothing if the run was stopped before it was written."""
        path = self.path / OPTIONS
        if not path.is_file():
            return {}
        first, _, text = read_text(path).partition("\n")
        if first != f"# crc32c {checksum(text)}":
            raise DscError(
                f"{path}: is not as the run wrote it: put it back; edit a copy for --config"
            )
        return from_toml(path)

    def log(self, event: Event) -> None:
        """Append an event, a dataclass, under its name, and show how far the run is."""
        self._check_there()
        if event.is_kept:
            values = {
                one.name: asdict(value) if is_dataclass(type(value)) else value
                for one in fields(event)
                if one.metadata != UNLOGGED
                for value in [getattr(event, one.name)]
            }
            name = type(event).__name__.lower()
            append_records(self.path / LOG, [{"event": name, "time": time.time(), **values}])
        self.show(event)

    def show(self, event: Event) -> None:
        """Write down what an event says of how far the run is, over what the last one said."""
        if (bar := event.bar()) is not None:
            self._check_there()
            record = {"time": time.time(), "share": bar[0], "text": bar[1]}
            with suppress(OSError):  # a sign of life is no reason to die
                write_whole(self.path / PULSE, json.dumps(record), durable=False)

    def _check_there(self) -> None:
        if not (self.path / MARK).is_file():
            raise DscError(f"{self.path}: the run folder was removed while the run was going on")
        check_held(lock_path(self.path), str(self.path))

    def pulse(self) -> dict[str, Any]:
        """The last sign of life: its time, the share that is done, and words.

        Empty if there is none, or none that we could have written.
        """
        found = _read_json(self.path / PULSE)
        try:
            when, share = (float(found[name]) for name in ("time", "share"))
            text = found["text"].encode().decode()[:LONGEST]
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError):
            return {}
        if not (isfinite(when) and 0 <= share <= 1):
            return {}
        return {"time": when, "share": share, "text": text}

    def events(self) -> list[dict[str, Any]]:
        """All complete events so far; a line that a kill has cut does not count."""
        return read_records(self.path / LOG)

    @property
    def n_tasks(self) -> int:
        """Tasks in the graph of one iteration, as planned when the run last started."""
        starts = [event for event in self.events() if event["event"] == "start"]
        return int(starts[-1]["plan"]["graph_size"]) if starts else 0

    @property
    def share(self) -> float:
        """Share of the energy left after the last pass; NaN if the log does not say."""
        passes = [event for event in self.events() if event["event"] == "iteration"]
        return float(passes[-1].get("share", nan)) if passes else nan

    @property
    def notes(self) -> list[str]:
        """What is odd about what was learned, one line each."""
        passes = [event for event in self.events() if event["event"] == "iteration"]
        return [str(note) for note in passes[-1].get("notes", ())] if passes else []

    def card(self) -> Card:
        """Where the run stands: its last checkpoint, how far it is, and whether it lives."""
        if not self.exists:
            return Card(str(self.path), alert="there is no run here yet")
        alerts = self.notes
        last = self.last(lambda text: alerts.append(f"a checkpoint cannot be read: {text}"))
        facts = RunFacts(
            self.path,
            events=self.events(),
            last=last,
            pulse=self.pulse(),
            last_beat=last_beat(lock_path(self.path)),
            is_over=self.finished and not self.is_worked_on,
        )
        return run_card(facts, alerts)

    def _repr_html_(self) -> str:
        return self.card().html()

    def checkpoints(self) -> list[Path]:
        """Those of this run, the oldest first."""
        folder = self.path / "checkpoints"
        entries = folder.iterdir() if folder.is_dir() else ()
        found = [path for path in entries if re.fullmatch(r"\d{6}(-\d{6})?\.zarr", path.name)]
        return sorted(found, key=lambda path: path.stem)

    @property
    def iteration(self) -> int:
        """Passes with updates that are done in the last complete checkpoint."""
        done = (path.stem[:6] for path in self.checkpoints() if is_finished(path))
        return max(map(int, done), default=0)

    def save(self, problems: Sequence[Problem], states: Sequence[State]) -> None:
        """Write a checkpoint; older ones than the last two go."""
        self._check_there()
        name = checkpoint_name(states)
        folder = self.path / "checkpoints"
        folder.mkdir(exist_ok=True)  # but not the run folder, if that was removed
        path = folder / f"{name}.zarr"
        if is_finished(path):  # and damaged, since the run went on from an earlier one
            remove_store(path)
        save_checkpoint(path, problems, states)
        self._check_there()  # it may have been suspended meanwhile
        for old in self.checkpoints()[:-KEEP]:
            remove_store(old)

    def last(
        self, say: Callable[[str], None] = lambda _: None
    ) -> tuple[list[State], list[SteerableBasis]] | None:
        """The states and bases of the last complete checkpoint; None if there is none.

        A damaged one is passed over, and `say` is called with what is wrong with it: an earlier one
        ends in the same bits.
        """
        for path in reversed(self.checkpoints()):
            if not is_finished(path):
                continue
            try:
                return load_checkpoint(path)
            except (DscError, OSError) as error:
                say(f"{error}; going on from an earlier checkpoint")
        return None


def checkpoint_name(states: Sequence[State]) -> str:
    """What a checkpoint is called: by the pass, and inside one by the batch too (000001-000012)."""
    inside = [state for state in states if state.batch]
    if not inside:
        return f"{max(state.iteration for state in states):06d}"
    iteration, batch = (min(s.iteration for s in inside), max(s.batch for s in inside))
    return f"{iteration:06d}-{batch:06d}"


def _read_json(path: Path) -> dict[str, Any]:
    """The object in a file; empty if there is none."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, RecursionError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _is_inside(name: Any) -> bool:
    """Whether a name stays inside the folder that it is in."""
    return isinstance(name, str) and not Path(name).is_absolute() and ".." not in Path(name).parts


def _is_complete(path: Path) -> bool:
    """Whether a result is there: a finished store, or a record as it was written."""
    if path.is_file():
        return unseal(path.read_text(encoding="utf-8", errors="replace")) is not None
    return path.is_dir() and is_finished(path)


def check_identity(path: str, found: Identity, wanted: Identity) -> None:
    """Name every difference between the run at `path` and the one asked for."""
    same_types = json.loads(json.dumps(wanted))
    differences = [
        f"{part}: {text}"
        for part in sorted({*same_types, *found}, key=[*same_types, *found].index)
        if (text := fingerprint_difference(same_types.get(part, {}), found.get(part, {})))
    ]
    if differences:
        listed = "\n".join(f"  {line}" for line in differences)
        raise DscError(
            f"{path}: cannot resume, it was made with\n{listed}\n"
            "repeat its options (they are in run.toml), or choose another --out"
        )


def describe(path: str | PathLike[str]) -> dict[str, Any]:
    """What is at a path: a run folder, or any store of ours, in plain values."""
    run = None if "://" in str(path) else Run(Path(path))
    if run is not None and run.exists:
        passes = [event for event in run.events() if event["event"] == "iteration"]
        about = {"kind": "run", "finished": run.finished, "passes": len(passes)}
        if passes:
            about |= {name: passes[-1][name] for name in ("share", "mse") if name in passes[-1]}
        return {**about, **run.options()}
    store = open_store(path)
    attributes = {name.removeprefix("dsc_"): value for name, value in store.attributes.items()}
    arrays = {name: list(store.shape(name)) for name in store.variables}
    if store.kind == "codes" and (n_patches := store.shape("atom")[0]):
        attributes["bytes_per_patch"] = store.n_bytes / n_patches
    return {"kind": store.kind, **attributes, "arrays": arrays}
