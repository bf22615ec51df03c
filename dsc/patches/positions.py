"""Where patches are: from the bits of a look to columns of a store, in tasks."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dsc.counter import uniform_bits
from dsc.patches.config import PatchConfig
from dsc.patches.looking import Choice
from dsc.patches.scan import Grid
from dsc.store import Store

Columns = dict[str, NDArray[Any]]


class Piece(NamedTuple):
    """The windows of one row of tiles, and which of them are patches."""

    image: int
    grid: Grid
    before: int  # windows of the images before it: what random choices hang on
    first: int  # the number of its first window, and how many it has
    n_windows: int
    bits: NDArray[np.uint8]

    def columns(self, config: PatchConfig) -> Columns:
        """Where its patches are."""
        index = np.flatnonzero(np.unpackbits(self.bits, count=self.n_windows)) + self.first
        y, x = self.grid.positions(index)
        columns: Columns = {"image": np.full(len(index), self.image, np.int32), "y": y, "x": x}
        if config.rotate:
            angles = np.deg2rad(np.array(config.rotate, np.float64)).astype(np.float32)
            bits = uniform_bits(config.seed, "rotate", index + self.before)
            columns["rotation"] = angles[(bits % np.uint64(len(angles))).astype(np.int64)]
        return columns


class Span(NamedTuple):
    """The patches of a task: numbers, and the pieces that they are in."""

    start: int
    stop: int
    offset: int  # the number of the first patch of the first piece
    pieces: list[Piece]
    labels: NDArray[np.int32] | None  # the class of each image
    config: PatchConfig


def pieces_of(choice: Choice) -> Iterator[Piece]:
    """The rows of tiles of all images, in the order of the patches."""
    firsts = choice.first_windows
    for image, (seen, before) in enumerate(zip(choice.scans, firsts, strict=True)):
        for first, count, bits in seen.kept:
            yield Piece(image, seen.grid, before, first, count, bits)


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
        end += int(np.bitwise_count(piece.bits).sum())
        while end - start >= n_rows:
            stop = start + n_rows
            yield Span(start, stop, held[0][0], [one for _, one in held], labels, config)
            held, start = [held[-1]] if end > stop else [], stop
    if end > start:
        yield Span(start, end, held[0][0], [one for _, one in held], labels, config)


def write_span(span: Span, store: Store) -> None:
    """One task: write where some patches are."""
    parts = [piece.columns(span.config) for piece in span.pieces]
    inside = slice(span.start - span.offset, span.stop - span.offset)
    columns = {name: np.concatenate([part[name] for part in parts])[inside] for name in parts[0]}
    if span.labels is not None:
        columns["label"] = span.labels[columns["image"]]
    for name, column in columns.items():
        store.write(name, span.start, column)


def fingerprint_of(choice: Choice) -> str:
    """SHA-256 of what defines the patches: images, positions, normalisation."""
    config, hashed = choice.config, [seen.sha256 for seen in choice.scans]
    header: list[Any] = [config.diameter, config.center, config.unit, hashed]
    header += [choice.n_channels] * (choice.n_channels > 1)
    hashes = {name: hashlib.sha256() for name in ("image", "y", "x", "rotation")}
    for piece in pieces_of(choice):
        for name, column in piece.columns(config).items():
            hashes[name].update(column.astype(column.dtype.newbyteorder("<"), copy=False).data)
    text = repr((header, [total.hexdigest() for total in hashes.values()]))
    return hashlib.sha256(text.encode()).hexdigest()
