"""Looking at a whole run: its records, checkpoints and results."""

from __future__ import annotations

from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path

from dsc.dictionary.run import LOG, MARK, OPTIONS, Run
from dsc.errors import DscError
from dsc.files import each_record, unseal
from dsc.store import Checkup, check_store, is_finished

TRACES = (OPTIONS, LOG, "checkpoints")  # by which a folder is known whose mark is gone


def check(path: str | PathLike[str]) -> Checkup:
    """Read everything of a store or a run folder, and list all that is missing or damaged.

    Parameters
    ----------
    path
        A run folder, or the path or URL of a patch set, a model, codes or a checkpoint.
    """
    run = None if "://" in str(path) else Run(Path(path))
    if run is None or not run.path.is_dir():
        return check_store(path)
    if (run.path / MARK).exists() or any((run.path / name).exists() for name in TRACES):
        return _RunCheck(run).everything()
    return check_store(path)


@dataclass
class _RunCheck:
    run: Run
    n_checked: int = 0
    bad: list[str] = field(default_factory=list)
    saved: list[str] = field(default_factory=list)

    def everything(self) -> Checkup:
        is_marked = self.mark()
        self.options()
        for log in sorted(self.run.path.glob("*.jsonl")):
            self.records(log)
        last = self.checkpoints()
        if is_marked:
            self.results(last)
        else:
            self.models([*self.run.path.glob("model.zarr"), *self.run.path.glob("models/*.zarr")])
        path = str(self.run.path)
        return Checkup(path, "run", self.n_checked, tuple(self.bad), tuple(self.saved))

    def mark(self) -> bool:
        self.n_checked += 1
        try:
            if self.run.exists:
                return True
            self.bad.append(f"{self.run.path}: its {MARK} is missing, or is no mark of a run")
        except DscError as error:
            self.bad.append(str(error))
        self.saved.append(f"without {MARK} the run cannot go on: start another --out")
        return False

    def options(self) -> None:
        self.n_checked += 1
        try:
            self.run.options()
        except DscError as error:
            self.bad.append(str(error))
            self.saved.append(f"--resume with the options of the run writes {OPTIONS} anew")

    def records(self, log: Path) -> None:
        found = list(each_record(log))
        self.n_checked += len(found)
        wrong = [number for number, record in enumerate(found, 1) if record is None]
        self.bad += [f"{log}: record {number} is damaged" for number in wrong]
        if not wrong:
            return
        if log.name == LOG:
            self.saved.append(f"{len(found) - len(wrong)} records of {LOG}; --resume drops others")
        elif wrong[0] == 1:
            self.saved.append(f"nothing of {log.name}, whose first record is damaged: remove it")
        else:
            self.saved.append(
                f"{len(found) - len(wrong) - 1} images of {log.name}; --resume counts "
                f"{len(wrong)} again"
            )

    def store(self, path: Path) -> bool:
        found = check_store(path)
        self.n_checked += found.n_checked
        self.bad += found.bad
        return found.good

    def checkpoints(self) -> str | None:
        """The last whole one; those that a kill has left unfinished are nothing bad."""
        good = []
        for path in self.run.checkpoints():
            if not (path / "manifest.json").exists():
                self.saved.append(f"checkpoint {_number(path)} was never finished: it is ignored")
            elif self.store(path):
                good.append(_number(path))
        return good[-1] if good else None

    def results(self, last: str | None) -> None:
        run, n_bad = self.run, len(self.bad)
        present = [name for name in run.results if (run.path / name).exists()]
        for name in present:
            path = run.path / name
            if path.is_file():
                self.file(path)
            elif is_finished(path) or (path / "manifest.json").exists():
                self.store(path)
        begin = "the beginning" if last is None else f"checkpoint {last}"
        if len(self.bad) > n_bad:
            self.saved.append(
                f"remove the damaged results; --resume then makes them again from {begin}"
            )
        elif not run.finished:
            self.saved.append(f"not finished: --resume goes on from {begin}")

    def file(self, path: Path) -> None:
        self.n_checked += 1
        try:
            if unseal(path.read_text(encoding="utf-8", errors="replace")) is None:
                self.bad.append(f"{path}: is damaged (its checksum does not match)")
        except OSError as error:
            self.bad.append(f"{path}: cannot be read: {error}")

    def models(self, paths: list[Path]) -> None:
        for path in paths:
            if self.store(path):
                self.saved.append(f"{path} is whole")


def _number(path: Path) -> str:
    """The number of a checkpoint, and of its batch where it has one: 3, 3-12."""
    return "-".join(str(int(part)) for part in path.stem.split("-"))
