"""Arrays kept in the user's cache folder: read back with the same bits, or made again.

Nothing here is ever an error: a file that is not there, is damaged or cannot be read counts as
none, and one that cannot be written is left out.
"""

from __future__ import annotations

import json
import os
import sys
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any

import google_crc32c
import numpy as np
from numpy.typing import NDArray

from dsc.files import checksum, seal, unseal, write_whole

VARIABLE = "DSC_CACHE_DIR"  # names the folder itself

Arrays = dict[str, NDArray[Any]]


def cache_folder() -> Path | None:
    """`DSC_CACHE_DIR`, or "dsc" in the user's cache folder: that of XDG, or of Windows."""
    if named := os.environ.get(VARIABLE):
        return Path(named)
    variable = "LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME"
    found = Path(os.environ.get(variable, ""))
    if found.is_absolute():  # XDG says to ignore others
        return found / "dsc"
    with suppress(RuntimeError):  # a user without a home
        return Path.home() / ".cache" / "dsc"
    return None


def load(name: str, key: dict[str, Any]) -> Arrays | None:
    """The arrays stored under this name and key; None if they are not there as they were."""
    path = _path(name, key)
    try:
        if path is None or not path.is_file():
            return None
        header, _, content = path.read_bytes().partition(b"\n")
        record = unseal(header.decode())
        if record is None or record["key"] != json.loads(json.dumps(key)):
            return None
        return _unpacked(record, content)
    except (OSError, ValueError, KeyError, TypeError, MemoryError):
        return None


def save(name: str, key: dict[str, Any], arrays: Arrays) -> None:
    """Store arrays of numbers, where that is possible."""
    content = b"".join(np.ascontiguousarray(array).tobytes() for array in arrays.values())
    record = {
        "key": key,
        "arrays": {n: [array.dtype.str, list(array.shape)] for n, array in arrays.items()},
        "content": google_crc32c.value(content),
    }
    path = _path(name, key)
    with suppress(OSError, ValueError):  # such as a full disk, or a folder that is a file
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            aside = path.with_name(f"{path.name}.{uuid.uuid4().hex}")  # others may write it, too
            try:
                write_whole(aside, seal(record).encode() + b"\n" + content, durable=False)
                aside.replace(path)
            finally:
                aside.unlink(missing_ok=True)


def _path(name: str, key: dict[str, Any]) -> Path | None:
    folder = cache_folder()
    return None if folder is None else folder / f"{name}-{checksum(json.dumps(key))}.bin"


def _unpacked(record: dict[str, Any], content: bytes) -> Arrays | None:
    if google_crc32c.value(content) != record["content"]:
        return None
    arrays, begin = {}, 0
    for name, (dtype, shape) in record["arrays"].items():
        count = int(np.prod(shape))
        array = np.frombuffer(content, np.dtype(dtype), count, begin).reshape(shape)
        arrays[name] = array
        begin += array.nbytes
    return arrays
