"""Files that are whole or absent, logs of JSON lines that a kill can cut but not spoil, TOML."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from dsc.errors import DscError


def partial_path(path: Path) -> Path:
    """Where a file is written before it gets its name."""
    return path.with_name(f".{path.name}.partial")


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file whole or not at all."""
    partial = partial_path(path)
    partial.write_bytes(content.encode() if isinstance(content, str) else content)
    partial.replace(path)


def append_records(path: Path, records: Iterable[dict[str, Any]]) -> None:
    """Add JSON objects, one a line; a line that a kill has cut ends first."""
    lines = "".join(json.dumps(record) + "\n" for record in records)
    with path.open("a+b") as file:
        if file.tell() > 0:
            file.seek(-1, 2)
            lines = lines if file.read() == b"\n" else "\n" + lines
        file.write(lines.encode())


def read_records(path: Path) -> list[dict[str, Any]]:
    """The JSON objects of a log; a line that a kill has cut does not count."""
    return list(each_record(path))


def each_record(path: Path) -> Iterator[dict[str, Any]]:
    """The same, one after the other."""
    if not path.is_file():
        return
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            try:
                record = json.loads(line)
            except json.JSONDecodeError:
                continue
            if isinstance(record, dict):
                yield record


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
