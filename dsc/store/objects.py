"""The objects below a path or URL, as bytes: the same verbs on a disk and on an object store.

An object is written whole or not at all. Options of a file system (endpoints,
credentials) come from the configuration and the environment of fsspec and of its back ends.
"""

from __future__ import annotations

import errno
import hashlib
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path

import fsspec.core
from zarr.abc.store import Store as ZarrStore
from zarr.storage import FsspecStore, LocalStore

from dsc.errors import DscError
from dsc.files import write_whole
from dsc.store.folder import Folder

_UNNAMED = re.compile(r"\.[0-9a-f]{32}\.partial$")
_ABSENT = (FileNotFoundError, IsADirectoryError, NotADirectoryError)


def normalize(url: str | PathLike[str]) -> str:
    """A URL without a slash at its end, or an absolute local path."""
    text = str(url).removeprefix("file://")
    if not text:
        raise DscError("path: found an empty one, need a local path or a URL such as s3://bucket/a")
    if "://" in text:
        return text.rstrip("/")
    return str(Path(text).expanduser().absolute())


def zarr_store(url: str, read_only: bool) -> ZarrStore:
    """Zarr's own view of the objects below `url`."""
    if "://" not in url:
        return LocalStore(url, read_only=True) if read_only else Folder(url)
    return FsspecStore.from_url(url, read_only=read_only)


@contextmanager
def reported(url: str, what: str) -> Iterator[None]:
    """Turn what file systems raise (connections, rights, credentials) into an error with a name."""
    try:
        yield
    except DscError:
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise  # a full disk: the command says how much is free there
        text = " ".join(str(error).split()) or type(error).__name__
        raise DscError(f"{url}: cannot be {what}: {text}") from error


@contextmanager
def as_written(url: str, kind: str) -> Iterator[None]:
    """Turn whatever the content of a store leads to into an error with its name.

    Checksums say that a store is as somebody wrote it, not that dsc was that somebody.
    """
    try:
        yield
    except DscError as error:
        named = str(error).startswith(url)
        raise error if named else DscError(f"{url}: {error}") from error
    except (OSError, KeyboardInterrupt):
        raise
    except Exception as error:
        text = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        raise DscError(
            f"{url}: is not as dsc writes {kind} ({text}): copy it again, or make it again"
        ) from error


def read_object(url: str, key: str) -> bytes | None:
    """The bytes of an object, None if there is none."""
    with reported(url, "read"):
        fs, root = fsspec.core.url_to_fs(url)
        try:
            return bytes(fs.cat_file(f"{root}/{key}"))
        except _ABSENT:
            return None


def read_part(url: str, key: str, start: int, stop: int | None = None) -> bytes | None:
    """Some bytes of an object, None if there is none; a negative `start` counts from its end."""
    with reported(url, "read"):
        fs, root = fsspec.core.url_to_fs(url)
        try:
            return bytes(fs.cat_file(f"{root}/{key}", start=start, end=stop))
        except _ABSENT:
            return None


def write_object(url: str, key: str, value: bytes) -> None:
    """Write an object, over what may be there."""
    with reported(url, "written"):
        if "://" not in url:
            write_whole(Path(url) / key, value)
            return
        fs, root = fsspec.core.url_to_fs(url)
        fs.pipe_file(f"{root}/{key}", value)  # one put: there whole, or not


def read_tails(url: str, keys: Sequence[str], size: int) -> list[bytes]:
    """The last bytes of objects."""
    with reported(url, "read"):
        fs, root = fsspec.core.url_to_fs(url)
        paths = [f"{root}/{key}" for key in keys]
        return [bytes(tail) for tail in fs.cat_ranges(paths, [-size] * len(paths), None)]


def read_ranges(
    url: str, keys: Sequence[str], starts: Sequence[int], stops: Sequence[int]
) -> list[bytes]:
    """Some bytes of each of some objects, which may be named more than once."""
    with reported(url, "read"):
        fs, root = fsspec.core.url_to_fs(url)
        paths = [f"{root}/{key}" for key in keys]
        return [bytes(part) for part in fs.cat_ranges(paths, list(starts), list(stops))]


def list_objects(url: str) -> set[str]:
    """The keys of all objects below `url`."""
    with reported(url, "listed"):
        fs, root = fsspec.core.url_to_fs(url)
        fs.invalidate_cache()
        root = root.rstrip("/")
        return {path[len(root) + 1 :] for path in fs.find(root)}


def chunk_bytes(url: str) -> int:
    """The bytes of all chunks below `url`, as they are stored: without metadata."""
    with reported(url, "listed"):
        fs, root = fsspec.core.url_to_fs(url)
        fs.invalidate_cache()
        found = fs.find(root, detail=True)
        return sum(
            int(about["size"]) for path, about in found.items() if "/c/" in path[len(root) :]
        )


def is_occupied(url: str) -> bool:
    """Whether there is a file, or a folder with some in it.

    What was being written on a disk when the process died, and has no name of its own yet, is
    nothing.
    """
    if "://" in url or not Path(url).is_dir():
        return bool(_children(url))
    paths = (path for path in Path(url).rglob("*") if path.is_symlink() or not path.is_dir())
    return any(not _UNNAMED.search(path.name) for path in paths)


def remove_objects(url: str, keep: str = "") -> None:
    """Remove everything below `url` but the object `keep`; without one, the folder too."""
    children = _children(url)
    with reported(url, "removed"):
        fs, _ = fsspec.core.url_to_fs(url)
        for path in children:
            if path.rstrip("/").rsplit("/", 1)[-1] != keep:
                fs.rm(path, recursive=True)
        if not keep and "://" not in url:
            Path(url).rmdir()


def _children(url: str) -> list[str]:
    with reported(url, "listed"):
        fs, root = fsspec.core.url_to_fs(url)
        fs.invalidate_cache()
        try:
            return list(fs.ls(root, detail=False))
        except _ABSENT:
            return []


def sha256(value: bytes) -> str:
    """The SHA-256 in hexadecimal digits."""
    return hashlib.sha256(value).hexdigest()
