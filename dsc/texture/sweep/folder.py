"""The folder of a sweep, in which it can be continued.

FOLDER/sweep.jsonl   what was asked for, then a line for every finished setting
FOLDER/patches/…     training patches, while settings need them
FOLDER/table.md      accuracies, as in the paper's appendix
FOLDER/sweep.json    everything; a sweep that has it is finished
FOLDER/index.html    the page
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dsc.engine.numerics import fingerprint_difference
from dsc.errors import DscError
from dsc.files import append_records, partial_path, read_records, write_whole
from dsc.texture.config import TextureConfig
from dsc.texture.sweep.results import KIND, SettingResult

LOG, TABLE, NUMBERS, PAGE = "sweep.jsonl", "table.md", "sweep.json", "index.html"
PATCHES = "patches"


@dataclass(frozen=True)
class SweepFolder:
    """The files of one sweep."""

    path: Path

    @property
    def finished(self) -> bool:
        """Whether sweep.json is there."""
        return (self.path / NUMBERS).is_file()

    def look(
        self, identity: dict[str, dict[str, Any]], resume: bool
    ) -> dict[TextureConfig, SettingResult]:
        """The finished settings to go on from; refuses what must not be touched, writes nothing."""
        with _reported(self.path, "read"):
            names = self._names()
            records = read_records(self.path / LOG)
        ours = names <= _files() and (bool(records) or names <= _partials())
        if not ours or (records and records[0].get("kind") != KIND):
            raise DscError(f"{self.path}: exists and is no sweep of dsc: choose another folder")
        if not resume:
            if self.finished:
                raise DscError(
                    f"{self.path}: holds a finished sweep: choose another folder, or remove it "
                    "first"
                )
            return {}
        if not records:
            return {}
        self._check_identity(records[0]["identity"], identity)
        try:
            results = [SettingResult.from_dict(record) for record in records[1:]]
        except (KeyError, TypeError) as error:
            raise DscError(
                f"{self.path / LOG}: found a line that is no setting ({error!r}): remove it, or "
                "choose another folder"
            ) from error
        return {result.config: result for result in results}

    def make(self, identity: dict[str, dict[str, Any]], resume: bool) -> None:
        """Make the folder and the head of the log; without `resume`, what was there goes."""
        with _reported(self.path, "written"):
            self.path.mkdir(parents=True, exist_ok=True)
            self.drop_patches()
            for name in sorted(self._names() - {LOG}):
                if not resume or name in _partials():
                    (self.path / name).unlink()
        if not resume or not (self.path / LOG).exists():
            self.write(LOG, json.dumps({"kind": KIND, "identity": identity}) + "\n")

    def append(self, result: SettingResult) -> None:
        """Add a finished setting to the log."""
        with _reported(self.path / LOG, "written"):
            append_records(self.path / LOG, [result.to_dict()])

    def write(self, name: str, text: str) -> None:
        """Write a file, whole or not at all."""
        with _reported(self.path / name, "written"):
            write_whole(self.path / name, text)

    def drop_patches(self) -> None:
        """Remove all training patches."""
        with _reported(self.path / PATCHES, "removed"):
            if (self.path / PATCHES).exists():
                shutil.rmtree(self.path / PATCHES)

    def _names(self) -> set[str]:
        return {entry.name for entry in self.path.iterdir()} if self.path.exists() else set()

    def _check_identity(self, found: dict[str, Any], wanted: dict[str, Any]) -> None:
        differences = [
            f"{part}: {text}"
            for part in wanted
            if (text := fingerprint_difference(wanted[part], found.get(part, {})))
        ]
        if differences:
            listed = "\n".join(f"  {line}" for line in differences)
            raise DscError(
                f"{self.path}: cannot resume, the sweep there was made with\n{listed}\n"
                "repeat what it was made with, or choose another folder"
            )


def _partials() -> set[str]:
    return {partial_path(Path(name)).name for name in (LOG, TABLE, NUMBERS, PAGE)}


def _files() -> set[str]:
    return {LOG, TABLE, NUMBERS, PAGE, PATCHES} | _partials()


@contextmanager
def _reported(path: Path, what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DscError(f"{path}: cannot be {what}: {error}") from error
