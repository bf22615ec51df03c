"""Suites of labelled images, cut into training and test, in the layout of Outex.

::

    ROOT/images/000480.bmp ...
    ROOT/defs.txt                 a count, then lines "file lamp resolution angle"; may be missing
    ROOT/000/classes.txt          a count, then lines "name number cost"
    ROOT/000/train.txt, test.txt  a count, then lines "file number"
    ROOT/001/ ...                 further problems on the same images
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
from dsc.files import read_text
from dsc.images import SUFFIXES

_IMAGES = "images"
_CLASSES, _TRAIN, _TEST, _DEFS = "classes.txt", "train.txt", "test.txt", "defs.txt"
_SHOWN = 20  # of a long list in an error

T = TypeVar("T")


@dataclass(frozen=True)
class Sample:
    """One image of a suite."""

    path: Path  # its file
    label: str  # the name of its class
    angle: float | None  # its rotation in degrees, None if the suite does not say


@dataclass(frozen=True)
class Suite:
    """One problem of a suite."""

    name: str  # the folder's name
    problem: str  # "000" and so on
    label_names: tuple[str, ...]  # the classes, in the order of their numbers
    train: tuple[Sample, ...]  # the images, in the order of the split files
    test: tuple[Sample, ...]
    # names of the files in the folder of images that no problem of the suite uses, sorted
    extra: tuple[str, ...]


def is_suite(path: str | os.PathLike[str]) -> bool:
    """Whether a folder looks like a suite: it has at least one problem."""
    return bool(_problem_names(Path(path).expanduser()))


def read_suite(
    path: str | os.PathLike[str], problem: str = "000", classes: Sequence[str] = ()
) -> Suite:
    """Read the split files of a problem and find their images; all that is wrong is one error.

    An image is found by its name without suffix: split files may say `.ras` where the file is a
    `.bmp`. Of `classes` only those named are kept, all if none are; images of the others may be
    missing.
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
    problems = _Problems()
    names = _read_classes(root, f"{problem}/{_CLASSES}", problems)
    if names:
        unknown = [name for name in wanted if name not in names.values()]
        problems += [str(unknown_choice("classes", name, names.values())) for name in unknown]
    kept = {number: name for number, name in names.items() if not wanted or name in wanted}
    files = _find_images(root / _IMAGES, problems)
    angles = _read_angles(root, problems)
    splits = []
    for name in (f"{problem}/{_TRAIN}", f"{problem}/{_TEST}"):
        rows = _read_split(root, name, names, kept, problems)
        _check_found(name, [file for file, _ in rows], files, angles, problems)
        splits.append(rows)
    both = sorted(_stems(root / problem / _TRAIN) & _stems(root / problem / _TEST))
    found = f"{problem}: found images in both {_TRAIN} and {_TEST}:"
    problems.listed(found, both, ": take them out of one")
    raise_listed(str(root), problems)

    files, angles = files or {}, angles or {}
    used = {stem for one in known for part in (_TRAIN, _TEST) for stem in _stems(root / one / part)}
    train, test = (
        tuple(
            Sample(files[PurePath(file).stem], names[number], angles.get(PurePath(file).stem))
            for file, number in rows
        )
        for rows in splits
    )
    extra = tuple(sorted(path.name for stem, path in files.items() if stem not in used))
    return Suite(root.name, problem, tuple(kept.values()), train, test, extra)


class _Problems(list[str]):
    """What is wrong with a suite."""

    def listed(self, found: str, items: Sequence[object], hint: str = "") -> None:
        """Note what was found, with the first ones of it, if there are any."""
        if items:
            more = f" and {len(items) - _SHOWN} more" if len(items) > _SHOWN else ""
            self.append(f"{found} {', '.join(map(str, items[:_SHOWN]))}{more}{hint}")


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


def _find_images(folder: Path, problems: _Problems) -> dict[str, Path] | None:
    """The image of each stem, None if there is no such folder."""
    if not folder.is_dir():
        problems.append(f"{folder.name}: no such folder, need the one with the images")
        return None
    files: dict[str, Path] = {}
    double: list[str] = []
    for path in sorted(folder.iterdir()):
        if path.suffix.lower() not in SUFFIXES or path.name.startswith("."):
            continue
        first = files.setdefault(path.stem, path)
        if first is not path:
            double.append(f"{first.name} and {path.name}")
    found = f"{folder.name}: found files that differ only in their suffix:"
    problems.listed(found, double, ": keep one of each")
    return files


def _read_classes(root: Path, name: str, problems: _Problems) -> dict[int, str]:
    """The name of each number, in the order of the numbers."""
    rows = _read_table(root, name, "name number cost", _named_number, problems)
    if not rows and not problems:
        problems.append(f"{name}: found no class, need at least one")
    for place, what in enumerate(("name", "number")):
        double = _repeated(row[place] for row in rows)
        problems.listed(f"{name}: found a {what} of more than one class:", double)
    return {number: label for label, number in sorted(rows, key=lambda row: row[1])}


def _read_angles(root: Path, problems: _Problems) -> dict[str, float] | None:
    """The angle of each stem in degrees, None if there is no such file."""
    if not (root / _DEFS).exists():
        return None
    rows = _read_table(root, _DEFS, "file lamp resolution angle", _rotated_stem, problems)
    double = _repeated(stem for stem, _ in rows)
    problems.listed(f"{_DEFS}: found an image on more than one line:", double)
    return dict(rows)


def _read_split(
    root: Path, name: str, names: dict[int, str], kept: dict[int, str], problems: _Problems
) -> list[tuple[str, int]]:
    """(file, number of its class) of each line, without classes that are not kept."""
    rows = _read_table(root, name, "file number", _named_number, problems)
    double = _repeated(PurePath(file).stem for file, _ in rows)
    problems.listed(f"{name}: found an image on more than one line:", double)
    if names:
        unknown = sorted({number for _, number in rows} - set(names))
        problems.listed(f"{name}: found numbers of classes that are not in {_CLASSES}:", unknown)
    rows = [row for row in rows if row[1] in kept or row[1] not in names]
    if name.endswith(_TRAIN) and (root / name).is_file():
        trained = {number for _, number in rows}
        untrained = [label for number, label in kept.items() if number not in trained]
        hint = ": add some, or choose other classes"
        problems.listed(f"{name}: found no training image of", untrained, hint)
    return rows


def _check_found(
    name: str,
    named: list[str],
    files: dict[str, Path] | None,
    angles: dict[str, float] | None,
    problems: _Problems,
) -> None:
    """Note the images of a split without a file or, where angles are known, without one."""
    if files is not None:
        missing = [file for file in named if PurePath(file).stem not in files]
        hint = ": copy the suite again, or take these lines out"
        problems.listed(f"{name}: found no file in {_IMAGES} for", missing, hint)
    if angles is not None:
        unrotated = [file for file in named if PurePath(file).stem not in angles]
        problems.listed(f"{_DEFS}: found no line for", unrotated, f" of {name}")


def _read_table(
    root: Path, name: str, layout: str, convert: Callable[[list[str]], T], problems: _Problems
) -> list[T]:
    """The converted lines of a file that begins with their count."""
    path, wanted = root / name, f"need a count and lines {layout!r}"
    try:
        lines = _lines(path)
    except DscError as error:
        found = str(error).removeprefix(f"{path}: ") if path.exists() else f"no such file, {wanted}"
        problems.append(f"{name}: {found}")
        return []
    if not lines:
        problems.append(f"{name}: is empty, {wanted}")
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
    problems.listed(f"{name}: cannot read", bad, f", need {layout!r}")
    first, n_lines = lines[0][1], len(lines) - 1
    if not (first.isascii() and first.isdigit()):
        problems.append(f"{name}: the first line is {first!r}, need the number of lines after it")
    elif int(first) != n_lines:
        problems.append(f"{name}: the first line says {first}, found {n_lines} lines after it")
    return rows


def _lines(path: Path) -> list[tuple[int, str]]:
    """(number from 1, text) of the lines that are not empty."""
    lines = read_text(path).removeprefix("\ufeff").splitlines()
    return [(n, text.strip()) for n, text in enumerate(lines, 1) if text.strip()]


def _stems(path: Path) -> set[str]:
    """The images that a split file names, none if it cannot be read."""
    try:
        return {PurePath(text.split()[0]).stem for _, text in _lines(path)[1:]}
    except DscError:
        return set()


def _named_number(row: list[str]) -> tuple[str, int]:
    if not (row[1].isascii() and row[1].isdigit()):
        raise ValueError(row)
    return row[0], int(row[1])


def _rotated_stem(row: list[str]) -> tuple[str, float]:
    if not math.isfinite(float(row[3])):
        raise ValueError(row)
    return PurePath(row[0]).stem, float(row[3])


def _repeated(values: Iterable[object]) -> list[object]:
    return [value for value, count in Counter(values).items() if count > 1]
