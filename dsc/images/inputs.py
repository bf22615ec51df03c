"""Which images are meant: files, folders, folders of classes, globs, Zarr and arrays."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeGuard

from numpy.typing import NDArray

from dsc.errors import DscError
from dsc.images.formats import SUFFIXES

_ZARR_FILES = ("zarr.json", ".zarray", ".zgroup", ".zattrs")

Input = str | os.PathLike[str] | NDArray[Any]  # or an array of Dask, xarray or Zarr


@dataclass(frozen=True, eq=False)
class Source:
    """A file, a Zarr or an array that holds images."""

    place: Path | str | Any  # path of a file, URL or path of a Zarr, or an array of any kind
    label: str | None = None  # its class, if it comes from a folder of one
    folder: Path | None = None  # the folder it was found in, if that was given and not the file


def find(inputs: Input | Iterable[Input]) -> tuple[list[Source], list[str]]:
    """Everything that holds images, sorted by path, and what is wrong with the inputs.

    A folder stands for the images in it. If it has none but its subfolders have, each of them is
    a class. If several folders are given, each of them is a class. Classes count only if every
    image has one, and not all the same.
    """
    if hasattr(inputs, "data_vars"):
        raise DscError("images: found an xarray dataset, need one array (y, x) of it")
    single = isinstance(inputs, str | os.PathLike) or is_array(inputs)
    given = [inputs] if single else list(inputs)  # type: ignore[arg-type]
    found: list[Source] = []
    problems: list[str] = []
    for item in given:
        if is_array(item):
            found.append(Source(item))
        elif "://" in (text := str(item)):
            found.append(Source(text))
        else:
            found += _expand(Path(text).expanduser(), problems)
    if not found and not problems:
        problems.append("found no input, need images: files, folders, globs or Zarr arrays")
    return _with_classes(_sorted(found)), problems


def names_of(found: list[Source]) -> list[str]:
    """A short unique name for each: its path below the folder that all are in."""
    paths = [item.place for item in found if isinstance(item.place, Path)]
    parent = os.path.commonpath([path.parent for path in paths]) if paths else ""
    names = []
    for number, item in enumerate(found):
        if isinstance(item.place, Path):
            names.append(item.place.relative_to(parent).as_posix())
        else:
            names.append(item.place if isinstance(item.place, str) else f"array {number}")
    return names


def is_array(item: Any) -> TypeGuard[NDArray[Any]]:
    """Whether something is an array: of NumPy, Dask, xarray, Zarr or alike."""
    return hasattr(item, "shape") and hasattr(item, "dtype")


def is_zarr(path: Path) -> bool:
    """Whether a folder is a Zarr array or group."""
    return path.is_dir() and any((path / name).exists() for name in _ZARR_FILES)


def _expand(path: Path, problems: list[str]) -> Iterator[Source]:
    if _is_image(path):
        yield Source(path.absolute())
    elif path.is_file():
        problems.append(f"{path}: unknown type of file, need one of {', '.join(SUFFIXES)}")
    elif path.is_dir():
        yield from _expand_folder(path.absolute(), problems)
    elif any(sign in str(path) for sign in "*?["):
        matches = sorted(glob.glob(str(path), recursive=True))  # noqa: PTH207 (skips hidden files)
        if not matches:
            problems.append(f"{path}: nothing matches")
        for match in matches:
            yield from _expand(Path(match), problems)
    else:
        problems.append(f"{path}: does not exist")


def _expand_folder(folder: Path, problems: list[str]) -> Iterator[Source]:
    direct = _images_in(folder)
    folders = [p for p in folder.iterdir() if p.is_dir() and p.name[0] != "." and not is_zarr(p)]
    classes = {sub.name: inside for sub in sorted(folders) if (inside := _images_in(sub))}
    if direct and classes:
        problems.append(
            f"{folder}: found images in it and in its folders {', '.join(classes)}: say which, "
            f"for example '{folder}/*{direct[0].suffix}'"
        )
    elif direct:
        yield from (Source(path, None, folder) for path in direct)
    elif classes:
        yield from (Source(path, name) for name, inside in classes.items() for path in inside)
    else:
        problems.append(f"{folder}: found no images in it, nor in folders directly below it")


def _images_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.name[0] != "." and _is_image(path))


def _is_image(path: Path) -> bool:
    return is_zarr(path) or (path.is_file() and path.suffix.lower() in SUFFIXES)


def _sorted(found: list[Source]) -> list[Source]:
    """Without repetitions: paths in their order, then URLs, then arrays as they were given."""
    unique: dict[Any, Source] = {}
    for number, item in enumerate(found):
        if isinstance(item.place, Path):
            unique.setdefault((0, item.place.parts), item)
        else:
            unique.setdefault((2, number) if is_array(item.place) else (1, item.place), item)
    return [unique[key] for key in sorted(unique)]


def _with_classes(found: list[Source]) -> list[Source]:
    if len({item.folder for item in found if item.folder}) > 1:
        found = [replace(one, label=one.folder.name) if one.folder else one for one in found]
    classes = {item.label for item in found}
    if len(classes) > 1 and None not in classes:
        return found
    return [replace(item, label=None) for item in found]
