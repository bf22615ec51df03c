"""Writing into a folder that may be removed meanwhile: it is never made again by accident.

Zarr makes every folder that a chunk needs. Of a store that somebody removes while it is written,
that would leave chunks without the mark that says whose they are, which nobody may remove then.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from pathlib import Path
from typing import NoReturn
from uuid import uuid4

from zarr.core.buffer import Buffer
from zarr.core.common import AccessModeLiteral
from zarr.storage import LocalStore

from dsc.errors import DscError

METADATA = "zarr.json"  # of the group: written first, it says that the folder is ours

Written = dict[str, tuple[int, int]]  # inode and time of what this process wrote, by key
_written: dict[str, Written] = {}  # of every store that this process makes


class Folder(LocalStore):
    """A folder that is there, to be written into."""

    def __init__(self, root: Path | str, *, read_only: bool = False) -> None:
        super().__init__(root, read_only=read_only)
        self._is_open = True  # which would make the folder

    async def _open(self, *, mode: AccessModeLiteral | None = None) -> None:  # noqa: ARG002
        self._is_open = True

    def _ensure_open_sync(self) -> None:
        pass

    async def delete_dir(self, prefix: str) -> None:
        """Remove a folder; of the whole, whoever makes a store has removed all but the mark."""
        if prefix:
            await super().delete_dir(prefix)

    def set_sync(self, key: str, value: Buffer) -> None:
        """Write an object, whole or not at all."""
        self._check_writable()
        self._put(key, value)

    async def _set(self, key: str, value: Buffer, exclusive: bool = False) -> None:
        self._check_writable()
        if exclusive and (self.root / key).exists():
            raise FileExistsError(key)
        await asyncio.to_thread(self._put, key, value)

    def _put(self, key: str, value: Buffer) -> None:
        path = self.root / key
        if key != METADATA:
            check_there(str(self.root))
        partial = path.with_suffix(f".{uuid4().hex}.partial")
        try:
            try:
                file = partial.open("wb")
            except FileNotFoundError:
                self._make_folders(key)
                file = partial.open("wb")
            with file:
                file.write(value.as_buffer_like())
            found = partial.stat()
            partial.replace(path)
        except OSError as error:
            partial.unlink(missing_ok=True)
            if isinstance(error, FileNotFoundError):  # of a folder that was there: all of it goes
                self._give_up(key)
            raise
        if (ours := _written.get(str(self.root))) is not None:
            ours[key] = (found.st_ino, found.st_mtime_ns)
        if key != METADATA and not is_marked(str(self.root)):  # removed just now
            path.unlink(missing_ok=True)
            self._give_up(key)

    def _give_up(self, key: str) -> NoReturn:
        """Refuse to go on in a folder that is removed; those made for a key meanwhile go, too."""
        _await_removal(str(self.root))
        for folder in Path(key).parents:
            with suppress(OSError):  # of those that hold something
                (self.root / folder).rmdir()
        raise _removed(str(self.root))

    def _make_folders(self, key: str) -> None:
        """The folders that a key needs, below one that must be there."""
        for folder in reversed(Path(key).parents[:-1]):
            (self.root / folder).mkdir(exist_ok=True)


def is_marked(url: str) -> bool:
    """Whether the folder of a store that is being written is still there, with its mark."""
    return (Path(url) / METADATA).exists()


def check_there(url: str, missing: bool = False) -> None:
    """Refuse to go on with a store that somebody has removed; or removes, if a part is missing."""
    if missing:
        _await_removal(url)
    if not is_marked(url):
        raise _removed(url)


def _await_removal(url: str) -> None:
    """Give whoever is removing a store the time to come to its mark, after the chunks."""
    end = time.monotonic() + 1
    while is_marked(url) and time.monotonic() < end:
        time.sleep(0.01)


def _removed(url: str) -> DscError:
    return DscError(f"{url}: was removed while it was written: repeat the command")


def remember(url: str) -> None:
    """Keep in mind what this process writes there, until it is finished."""
    _written[str(Path(url))] = {}


def forget(url: str) -> None:
    """What was written there is finished."""
    _written.pop(str(Path(url)), None)


def remove_partial(url: str) -> None:
    """Remove files that a killed process had begun to write into a store."""
    for path in Path(url).rglob("*.partial"):
        path.unlink(missing_ok=True)


def remove_rest(url: str) -> None:
    """Of a store whose mark was removed, remove what this process wrote afterwards, nothing else.

    A file that somebody else has put in the place of one of ours has another inode or time.
    """
    root = Path(url)
    folders = {root}
    for key, ours in _written.pop(str(root), {}).items():
        path = root / key
        with suppress(OSError):
            found = path.stat()
            if (found.st_ino, found.st_mtime_ns) == ours:
                path.unlink()
        folders |= {root / folder for folder in Path(key).parents}
    for folder in sorted(folders, key=lambda one: -len(one.parts)):
        with suppress(OSError):  # of those that are gone, or hold something of others
            folder.rmdir()
