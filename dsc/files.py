"""Files that are whole or absent, logs of JSON lines that a kill can cut but not spoil, TOML."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import google_crc32c

from dsc.errors import DscError

CHECKSUM = "crc32c"  # the last entry of a record


def partial_path(path: Path) -> Path:
    """Where a file is written before it gets its name."""
    return path.with_name(f".{path.name}.partial")


def write_whole(path: Path, content: str | bytes, durable: bool = True) -> None:
    """Write a file whole or not at all; a durable one is there after a power cut, too."""
    partial = partial_path(path)
    try:
        with partial.open("wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        partial.replace(path)
    except OSError:  # such as a full disk: the half of a file takes room
        partial.unlink(missing_ok=True)
        raise
    if durable:
        _sync_folder(path.parent)


def append_records(path: Path, records: Iterable[dict[str, Any]]) -> None:
    """Add JSON objects, one a line, each with its checksum; a line that a kill has cut ends first.

    They are there after a power cut, too.
    """
    lines = "".join(seal(record) + "\n" for record in records)
    with path.open("a+b") as file:
        if file.tell() > 0:
            file.seek(-1, 2)
            lines = lines if file.read() == b"\n" else "\n" + lines
        file.write(lines.encode())
        file.flush()
        os.fsync(file.fileno())


def read_records(path: Path) -> list[dict[str, Any]]:
    """The JSON objects of a log whose checksums fit; a line that a kill has cut does not count."""
    return [record for record in each_record(path) if record is not None]


def n_damaged(path: Path) -> int:
    """How many whole lines of a log are not as they were written."""
    return sum(record is None for record in each_record(path))


def each_record(path: Path) -> Iterator[dict[str, Any] | None]:
    """The objects one after the other, None for one that is not as it was written."""
    if not path.is_file():
        return
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            text = line.rstrip("\n")
            if not text or not text.endswith("}"):
                continue  # cut by a kill
            yield unseal(text)


def seal(record: dict[str, Any], indent: int | None = None) -> str:
    """A record as text, its checksum last."""
    return json.dumps({**record, CHECKSUM: checksum(json.dumps(record))}, indent=indent)


def unseal(text: str) -> dict[str, Any] | None:
    """The record that was sealed; None if it is not as it was."""
    try:
        record = json.loads(text)
        found = record.pop(CHECKSUM)
        return record if found == checksum(json.dumps(record)) else None
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return None


def checksum(text: str) -> str:
    """The CRC-32C of a text, in hexadecimal digits."""
    return f"{google_crc32c.value(text.encode()):08x}"


def _sync_folder(folder: Path) -> None:
    """Let the names in a folder outlive a power cut, where the file system can."""
    with suppress(OSError):
        place = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(place)
        finally:
            os.close(place)


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
    text = read_text(path)
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # of bad syntax, deep nesting, huge numbers
        raise DscError(f"{path}: cannot be read as TOML: {error}") from error


def local_path(path: str | os.PathLike[str]) -> Path:
    """A path; refuses a URL, since runs and pages are in folders of a file system."""
    if "://" in str(path):
        raise DscError(f"{path}: found a URL, need a path on a file system: choose one")
    return Path(path)


def read_text(path: Path) -> str:
    """The text of a file; refuses what is none, such as a pipe, which would never end."""
    if path.exists() and not path.is_file():
        raise DscError(f"{path}: is no file: need a text file")
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise DscError(f"{path}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise DscError(f"{path}: is no text in UTF-8 ({error.reason})") from error
