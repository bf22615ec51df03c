"""Where patches are: from the bits of a look to columns of a store, in tasks."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dsc.counter import uniform_bits
from dsc.engine import Engine, part_tasks
from dsc.patches import kernels
from dsc.patches.config import PatchConfig
from dsc.patches.looking import Choice
from dsc.patches.scan import PIECE, Grid
from dsc.show import Stage
from dsc.store import Store

COLUMNS = ("image", "y", "x", "rotation")


class Piece(NamedTuple):
    """The windows of one row of tiles, and which of them are patches."""

    image: int
    grid: Grid
    before: int  # windows of the images before it: what random choices hang on
    first: int  # the number of its first window, and how many it has
    n_windows: int
    bits: NDArray[np.uint8]

    @property
    def n_patches(self) -> int:
        """How many of its windows are patches."""
        return int(np.bitwise_count(self.bits).sum())

    def column(self, name: str, config: PatchConfig) -> NDArray[Any]:
        """One thing that is known of each of its patches: image, y, x or rotation."""
        if name == "image":
            return np.full(self.n_patches, self.image, np.int32)
        if name == "rotation":
            index = np.flatnonzero(np.unpackbits(self.bits, count=self.n_windows)) + self.first
            angles = np.deg2rad(np.array(config.rotate, np.float64)).astype(np.float32)
            bits = uniform_bits(config.seed, "rotate", index + self.before)
            return np.asarray(angles[(bits % np.uint64(len(angles))).astype(np.int64)])
        y, x = np.empty((2, self.n_patches), np.int32)
        grid = self.grid
        kernels.locate(self.bits, self.first, grid.n_x, grid.margin, grid.stride, y, x)
        return y if name == "y" else x


class Span(NamedTuple):
    """The patches of a task: numbers, and the pieces that they are in."""

    start: int
    stop: int
    offset: int  # the number of the first patch of the first piece
    pieces: list[Piece]
    labels: NDArray[np.int32] | None  # the class of each image
    config: PatchConfig


def names_of(config: PatchConfig) -> tuple[str, ...]:
    """The columns that patches have: they are only rotated if that was asked for."""
    return COLUMNS if config.rotate else COLUMNS[:-1]


def pieces_of(choice: Choice) -> Iterator[Piece]:
    """The windows of all images, in the order of the patches: at most `PIECE` of an image each."""
    firsts = choice.first_windows
    for image, (seen, before) in enumerate(zip(choice.scans, firsts, strict=True)):
        for first, count, bits in seen.kept:
            for begin in range(0, count, PIECE):
                n = min(PIECE, count - begin)
                some = bits[begin // 8 : (begin + n + 7) // 8]
                yield Piece(image, seen.grid, before, first + begin, n, some)


def spans_of(choice: Choice, n_rows: int) -> Iterator[Span]:
    """Tasks of so many patches each."""
    names = choice.label_names
    labels = None
    if names:
        labels = np.array([names.index(p) if p else 0 for p in choice.labels], np.int32)
    config = replace(choice.config, mask=())
    held: list[tuple[int, Piece]] = []  # pieces, and the numbers of their first patches
    end = start = 0
    for piece in pieces_of(choice):
        held.append((end, piece))
        end += piece.n_patches
        while end - start >= n_rows:
            stop = start + n_rows
            yield Span(start, stop, held[0][0], [one for _, one in held], labels, config)
            held, start = [held[-1]] if end > stop else [], stop
    if end > start:
        yield Span(start, end, held[0][0], [one for _, one in held], labels, config)


def write_span(span: Span, store: Store) -> None:
    """One task: write where some patches are."""
    inside = slice(span.start - span.offset, span.stop - span.offset)
    for name in names_of(span.config):
        parts = [piece.column(name, span.config) for piece in span.pieces]
        column = np.concatenate(parts)[inside]
        store.write(name, span.start, column)
        if name == "image" and span.labels is not None:
            store.write("label", span.start, span.labels[column])


def fingerprints_of(choices: Sequence[Choice], engine: Engine) -> list[str]:
    """SHA-256 of what defines the patches of each set: images, positions, normalisation."""
    tasks = [task for choice in choices for task in part_tasks(hash_column, COLUMNS, choice)]
    stage = Stage("number the patches", sum(choice.n_patches for choice in choices))
    hashes = engine.near().compute(tasks, stage)
    fingerprints = []
    for number, choice in enumerate(choices):
        config, own = choice.config, hashes[number * len(COLUMNS) :][: len(COLUMNS)]
        images = [seen.sha256 for seen in choice.scans]
        header: list[Any] = [config.diameter, config.center, config.unit, images]
        header += [choice.n_channels] * (choice.n_channels > 1)
        fingerprints.append(hashlib.sha256(repr((header, own)).encode()).hexdigest())
    return fingerprints


def hash_column(name: str, choice: Choice) -> str:
    """One task: SHA-256 of one column of all patches, of nothing if they do not have it."""
    total = hashlib.sha256()
    if name in names_of(choice.config):
        for piece in pieces_of(choice):
            column = piece.column(name, choice.config)
            total.update(column.astype(column.dtype.newbyteorder("<"), copy=False).data)
    return total.hexdigest()
