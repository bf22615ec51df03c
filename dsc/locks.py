"""One process at a time in a folder: a lock with an owner and a heartbeat.

A lock is a file that says who made it: process, host and when. While its owner lives, the file is
touched every few seconds; a lock that nobody has touched for a while, or whose process is gone from
this host, is stale and goes. A process may lock a folder again that it has locked already.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import psutil

from dsc.errors import DscError

BEAT = 5.0  # seconds between two heartbeats
STALE = 60.0  # without one, a lock is left over
SAME = 5.0  # seconds by which the start of one process may seem to differ
INSIDE = ".dsc.lock"

_held: dict[Path, int] = {}  # how often this process has locked each
_token = uuid4().hex  # of this process, in the locks that it holds
_process = os.getpid()
_change = threading.Lock()
_beating: threading.Thread | None = None


def lock_path(place: str | Path) -> Path:
    """Where the lock of a folder is: beside it, since it may not be there yet.

    It is inside where nothing can be written beside it.
    """
    folder = Path(os.path.realpath(place))
    if not folder.name or (folder.is_dir() and not os.access(folder.parent, os.W_OK)):
        return folder / INSIDE
    return folder.with_name(f".{folder.name}.lock")


def last_beat(path: Path) -> float:
    """When the owner of a lock last said that it lives; long ago if there is none."""
    owner = _owner(path) if path.is_file() else None
    try:
        return -float("inf") if owner is None or _is_stale(path, owner) else path.stat().st_mtime
    except FileNotFoundError:
        return -float("inf")


def lock(path: Path, what: str) -> None:
    """Make the lock file `path`, or refuse because another process works on `what`."""
    with _change:
        _forget_those_of_a_parent()
        if path not in _held or not _is_ours(path):
            _take(path, what)
        _held[path] = _held.get(path, 0) + 1
    _start_beating()


def unlock(path: Path) -> None:
    """Remove the lock file, once for every time that it was locked; others' locks stay."""
    with _change:
        _forget_those_of_a_parent()
        if path not in _held:
            return
        _held[path] -= 1
        if _held[path] <= 0:
            del _held[path]
            if _is_ours(path):
                path.unlink(missing_ok=True)


def check_held(path: Path, what: str) -> None:
    """Refuse to go on if a lock that this process has made is no longer its own.

    That is so after it was suspended for long: another host cannot tell it from one that is gone.
    """
    with _change:
        _forget_those_of_a_parent()
        if path not in _held or _is_ours(path):
            return
    owner = _owner(path) if path.is_file() else None
    who = f"process {owner['pid']} on {owner['host']}" if owner else "somebody else"
    raise DscError(
        f"{what}: {who} has taken it over, since this process gave no sign of life (was it "
        "suspended?): this one ends here and leaves everything to the other; if that is gone, "
        "repeat the command, with --resume if it has it"
    )


def _forget_those_of_a_parent() -> None:
    """Of a process that was forked: what it inherits is not its own."""
    global _token, _process
    if _process != os.getpid():
        _held.clear()
        _token, _process = uuid4().hex, os.getpid()


def _is_ours(path: Path) -> bool:
    owner = _owner(path) if path.is_file() else None
    return owner is not None and owner.get("token") == _token


@contextmanager
def locked(path: Path, what: str) -> Iterator[None]:
    """Hold a lock for a while."""
    lock(path, what)
    try:
        yield
    finally:
        unlock(path)


def _take(path: Path, what: str) -> None:
    about = {"pid": os.getpid(), "host": socket.gethostname(), "since": time.time()}
    about |= {"started": psutil.Process().create_time(), "token": _token}
    while True:
        try:
            place = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
        except FileExistsError:
            owner = _owner(path)
            if owner is not None and not _is_stale(path, owner):
                since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(owner["since"]))
                raise DscError(
                    f"{what}: process {owner['pid']} on {owner['host']} works on it since {since}: "
                    f"wait for it, or end it (if it is gone for good, remove {path})"
                ) from None
            with suppress(FileNotFoundError):
                aside = path.with_name(f"{path.name}.{uuid4().hex}")
                path.rename(aside)
                if owner is not None and _owner(aside) != owner:  # somebody was faster: put it back
                    with suppress(FileExistsError):
                        os.link(aside, path)
                aside.unlink()
            continue
        with os.fdopen(place, "w") as file:
            json.dump(about, file)
        return


def _owner(path: Path) -> dict[str, Any] | None:
    """Who made a lock; None if it is gone, or if what is in it is none of ours."""
    for _ in range(20):  # it may be written just now
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            return {**found, "pid": int(found["pid"]), "since": float(found["since"])}
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError):
            time.sleep(0.05)
    return None


def _is_stale(path: Path, owner: dict[str, Any]) -> bool:
    if owner["host"] == socket.gethostname():
        try:
            started = psutil.Process(owner["pid"]).create_time()
            if abs(started - owner["started"]) < SAME:  # the clock may have been set meanwhile
                return False
        except (psutil.Error, KeyError, TypeError, ValueError):
            return True
    with suppress(FileNotFoundError):
        return time.time() - path.stat().st_mtime > STALE
    return True


def _start_beating() -> None:
    global _beating
    with _change:
        if _beating is None or not _beating.is_alive():
            _beating = threading.Thread(target=_beat, name="dsc-heartbeat", daemon=True)
            _beating.start()


def _beat() -> None:
    while True:
        time.sleep(BEAT)
        with _change:
            for path in _held:
                with suppress(OSError):
                    if _is_ours(path):
                        os.utime(path)
