"""Suites of labelled pictures, cut into training and test, in the layout of Outex.

::

    ROOT/images/000480.bmp ...
    ROOT/defs.txt                 a count, then lines "file lamp resolution angle"; may be missing
    ROOT/000/classes.txt          a count, then lines "name number cost"
    ROOT/000/train.txt, test.txt  a count, then lines "file number"
    ROOT/001/ ...                 further problems on the same pictures
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TypeVar

from dsc.errors import DscError, raise_listed, unknown_choice
from dsc.images import SUFFIXES

_IMAGES = "images"
_CLASSES, _TRAIN, _TEST, _DEFS = "classes.txt", "train.txt", "test.txt", "defs.txt"
_SHOWN = 20  # of a long list in an error

T = TypeVar("T")


@dataclass(frozen=True)
class Sample:
    """One picture of a suite."""

    path: Path  # its file
    label: str  # the name of its class
    angle: float | None  # its rotation in degrees, None if the suite does not say


@dataclass(frozen=True)
class Suite:
    """One problem of a suite."""

    name: str  # the folder's name
    problem: str  # "000" and so on
    label_names: tuple[str, ...]  # the classes, in the order of their numbers
    train: tuple[Sample, ...]  # the pictures, in the order of the split files
    test: tuple[Sample, ...]
    # names of the files in the folder of pictures that no problem of the suite uses, sorted
    extra: tuple[str, ...]


def is_suite(path: str | os.PathLike[str]) -> bool:
    """Whether a folder looks like a suite: it has at least one problem."""
    return bool(_problem_names(Path(path).expanduser()))


def read_suite(
    path: str | os.PathLike[str], problem: str = "000", classes: Sequence[str] = ()
) -> Suite:
    """Read the split files of a suite and find their pictures.

    Parameters
    ----------
    path
        The suite's folder.
    problem
        Which of its problems.
    classes
        Names of the classes to keep, all if empty. Pictures of the others may be missing.

    Returns
    -------
    The suite. A picture is found by its name without suffix: split files may say `.ras` where
    the file is a `.bmp`. All that is wrong is listed in one error.
    """
    root = Path(path).expanduser().absolute()
    known = _problem_names(root)
    if not known:
        raise DscError(
            f"{root}: found no problem of a suite, need folders {_IMAGES} and {problem} with "
            f"{_CLASSES}, {_TRAIN} and {_TEST}: give the folder that holds them"
        )
    if problem not in known:
        raise unknown_choice(f"{root}: problem", problem, known)
    wanted = (classes,) if isinstance(classes, str) else tuple(classes)
    problems: list[str] = []
    suite = _read(root, problem, wanted, problems)
    raise_listed(str(root), problems)
    return suite


def _read(root: Path, problem: str, wanted: tuple[str, ...], problems: list[str]) -> Suite:
    folder = root / problem
    names = _read_classes(folder / _CLASSES, problems)
    known = tuple(names[number] for number in sorted(names))
    if known:
        problems += [str(unknown_choice("classes", c, known)) for c in wanted if c not in known]
    kept = tuple(name for name in known if not wanted or name in wanted)

    files = _image_files(root / _IMAGES, problems)
    angles = _read_angles(root / _DEFS, problems)
    splits: list[tuple[Sample, ...]] = []
    for split in (_TRAIN, _TEST):
        rows = _read_split(folder / split, names, problems)
        rows = [row for row in rows if names.get(row[1]) in (*kept, None)]
        if split == _TRAIN and (folder / split).is_file():
            _check_trained(
                folder / split, kept, {names.get(number) for _, number in rows}, problems
            )
        splits.append(_samples(folder / split, rows, names, files, angles, problems))
    _check_overlap(folder, problems)
    used = {stem for other in _problem_names(root) for stem in _stems_of(root / other)}
    extra = sorted(path.name for stem, path in (files or {}).items() if stem not in used)
    return Suite(root.name, problem, kept, splits[0], splits[1], tuple(extra))


# --- the parts of a suite --------------------------------------------------------------------


def _problem_names(root: Path) -> list[str]:
    """The folders with any of the files of a problem: it may be one with something missing."""
    if not root.is_dir():
        return []
    return sorted(
        folder.name
        for folder in root.iterdir()
        if folder.name != _IMAGES
        and any((folder / name).is_file() for name in (_CLASSES, _TRAIN, _TEST))
    )


def _image_files(folder: Path, problems: list[str]) -> dict[str, Path] | None:
    """The picture of each stem, None if there is no such folder."""
    if not folder.is_dir():
        problems.append(f"{folder.name}: no such folder, need the one with the pictures")
        return None
    files: dict[str, Path] = {}
    double: list[str] = []
    for path in sorted(folder.iterdir()):
        if path.suffix.lower() not in SUFFIXES or path.name.startswith("."):
            continue
        first = files.setdefault(path.stem, path)
        if first is not path:
            double.append(f"{first.name} and {path.name}")
    if double:
        problems.append(
            f"{folder.name}: found files that differ only in their suffix: {_listed(double)}: "
            "keep one of each"
        )
    return files


def _read_classes(path: Path, problems: list[str]) -> dict[int, str]:
    """The name of each number."""
    rows = _read_table(path, "name number cost", lambda row: (row[0], _whole(row[1])), problems)
    if not rows and not problems:
        problems.append(f"{_short(path)}: found no class, need at least one")
    for what, values in (("name", [row[0] for row in rows]), ("number", [row[1] for row in rows])):
        if double := _repeated(values):
            problems.append(
                f"{_short(path)}: found a {what} of more than one class: {_listed(double)}"
            )
    return {number: name for name, number in rows}


def _read_angles(path: Path, problems: list[str]) -> dict[str, float] | None:
    """The angle of each stem in degrees, None if there is no such file."""
    if not path.exists():
        return None
    rows = _read_table(
        path, "file lamp resolution angle", lambda row: (_stem(row[0]), _degrees(row[3])), problems
    )
    if double := _repeated(stem for stem, _ in rows):
        problems.append(f"{path.name}: found a picture on more than one line: {_listed(double)}")
    return dict(rows)


def _read_split(path: Path, names: dict[int, str], problems: list[str]) -> list[tuple[str, int]]:
    """(file, number of its class) of each line."""
    rows = _read_table(path, "file number", lambda row: (row[0], _whole(row[1])), problems)
    if double := _repeated(_stem(file) for file, _ in rows):
        problems.append(f"{_short(path)}: found a picture on more than one line: {_listed(double)}")
    unknown = sorted({number for _, number in rows} - set(names))
    if names and unknown:
        problems.append(
            f"{_short(path)}: found numbers of classes that are not in {_CLASSES}: "
            f"{_listed(unknown)}"
        )
    return rows


def _samples(
    path: Path,
    rows: list[tuple[str, int]],
    names: dict[int, str],
    files: dict[str, Path] | None,
    angles: dict[str, float] | None,
    problems: list[str],
) -> tuple[Sample, ...]:
    """The pictures of a split, if there is nothing wrong with them."""
    missing = [file for file, _ in rows if files is not None and _stem(file) not in files]
    if missing:
        problems.append(
            f"{_short(path)}: found no file in {_IMAGES} for {_listed(missing)}: "
            "copy the suite again, or take these lines out"
        )
    unturned = [file for file, _ in rows if angles is not None and _stem(file) not in angles]
    if unturned:
        problems.append(f"{_DEFS}: found no line for {_listed(unturned)} of {_short(path)}")
    if problems or files is None:
        return ()
    return tuple(
        Sample(files[_stem(file)], names[number], None if angles is None else angles[_stem(file)])
        for file, number in rows
    )


def _check_trained(
    path: Path, kept: tuple[str, ...], trained: set[str | None], problems: list[str]
) -> None:
    untrained = [name for name in kept if name not in trained]
    if untrained:
        problems.append(
            f"{_short(path)}: found no training picture of {_listed(untrained)}: "
            "add some, or choose other classes"
        )


def _check_overlap(folder: Path, problems: list[str]) -> None:
    both = sorted(set(_stems(folder / _TRAIN)) & set(_stems(folder / _TEST)))
    if both:
        problems.append(
            f"{folder.name}: found pictures in both {_TRAIN} and {_TEST}: {_listed(both)}: "
            "take them out of one"
        )


# --- lines -----------------------------------------------------------------------------------


def _read_table(
    path: Path, layout: str, convert: Callable[[list[str]], T], problems: list[str]
) -> list[T]:
    """The converted lines of a file that begins with their count."""
    if not path.is_file():
        problems.append(f"{_short(path)}: no such file, need a count and lines {layout!r}")
        return []
    try:
        lines = _lines(path)
    except (OSError, UnicodeDecodeError) as error:
        problems.append(f"{_short(path)}: cannot be read: {error}")
        return []
    if not lines:
        problems.append(f"{_short(path)}: is empty, need a count and lines {layout!r}")
        return []
    rows: list[T] = []
    bad: list[str] = []
    for number, text in lines[1:]:
        words = text.split()
        try:
            if len(words) != len(layout.split()):
                raise ValueError
            rows.append(convert(words))
        except ValueError:
            bad.append(f"{text!r} (line {number})")
    if bad:
        problems.append(f"{_short(path)}: cannot read {_listed(bad)}, need {layout!r}")
    if lines[0][1] != str(len(lines) - 1):
        _check_count(path, lines[0][1], len(lines) - 1, problems)
    return rows


def _check_count(path: Path, first: str, n_lines: int, problems: list[str]) -> None:
    try:
        count = _whole(first)
    except ValueError:
        problems.append(
            f"{_short(path)}: the first line is {first!r}, need the number of lines after it"
        )
        return
    if count != n_lines:
        problems.append(
            f"{_short(path)}: the first line says {count}, found {n_lines} lines after it"
        )


def _lines(path: Path) -> list[tuple[int, str]]:
    """(number from 1, text) of the lines that are not empty."""
    lines = path.read_text(encoding="utf-8-sig").splitlines()
    return [(n, text.strip()) for n, text in enumerate(lines, 1) if text.strip()]


def _stems(path: Path) -> list[str]:
    """The pictures that a split file names, none if it cannot be read."""
    try:
        return [_stem(text.split()[0]) for _, text in _lines(path)[1:]]
    except (OSError, UnicodeDecodeError):
        return []


def _stems_of(folder: Path) -> list[str]:
    return _stems(folder / _TRAIN) + _stems(folder / _TEST)


def _stem(file: str) -> str:
    return PurePath(file).stem


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ValueError(text)
    return int(text)


def _degrees(text: str) -> float:
    angle = float(text)
    if not math.isfinite(angle):
        raise ValueError(text)
    return angle


def _repeated(values: Iterable[T]) -> list[T]:
    return [value for value, count in Counter(values).items() if count > 1]


def _listed(items: Sequence[object]) -> str:
    more = len(items) - _SHOWN
    return ", ".join(map(str, items[:_SHOWN])) + (f" and {more} more" if more > 0 else "")


def _short(path: Path) -> str:
    """The name of a file of a suite, with its problem."""
    return path.name if path.name == _DEFS else f"{path.parent.name}/{path.name}"
