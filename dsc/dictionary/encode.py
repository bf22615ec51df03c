"""Coding whole patch sets: tasks read, code, and write whole chunks of a codes store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from os import PathLike

import numpy as np
from numpy.typing import NDArray

from dsc.dictionary.loop import Part
from dsc.engine import BLOCK, TASKS_PER_THREAD, Engine
from dsc.patches import PatchSource
from dsc.pursuit import Coder, Codes
from dsc.show import Card
from dsc.store import Store, as_written, create

CHUNK = 2**16  # patches in a chunk of a codes store, at most
CHUNKS = 32  # of a set that is smaller than so many of them

Piece = tuple[Codes, NDArray[np.float32]]  # codes of patches, and their energy outside the span


@dataclass(frozen=True, eq=False)
class Coded:
    """Codes of a patch set.

    Attributes
    ----------
    n_patches
        How many patches were coded.
    mse
        Mean squared error per pixel of the disk.
    seconds
        Time it took.
    url
        Where they were written; None if they are in memory.
    """

    n_patches: int
    mse: float
    seconds: float
    url: str | None
    _read: Callable[[], Piece] = field(repr=False)

    @cached_property
    def _piece(self) -> Piece:
        return self._read()

    def card(self) -> Card:
        """The key numbers; codes that are in a store are not read for it."""
        card = Card(f"codes of {self.n_patches:,} patches") if self.url else self.codes.card()
        about = {"error per pixel": f"{self.mse:.4g}", "time": f"{self.seconds:.1f} s"}
        place = {"store": self.url} if self.url else {}
        return replace(card, numbers={**card.numbers, **about, **place})

    def _repr_html_(self) -> str:
        return self.card().html()

    @property
    def codes(self) -> Codes:
        """The codes, read from the store if they are in one."""
        return self._piece[0]

    @property
    def rest(self) -> NDArray[np.float32]:
        """(patch,) energy of each patch outside the span of the basis."""
        return self._piece[1]


@dataclass(frozen=True, eq=False)
class EncodeStep:
    """What all tasks share."""

    coder: Coder
    store: Store | None  # that codes go to, if there is one
    tolerance: float  # residual energy at which the coding of a patch stops


def chunk_size(n_patches: int) -> int:
    """Patches in a chunk, which is also the least that a task codes: whole blocks.

    Examples
    --------
    >>> [chunk_size(n) for n in (100, 60_000, 400_000, 10**9)]
    [4096, 4096, 16384, 65536]
    """
    wanted = -(-n_patches // CHUNKS)
    return min(CHUNK, max(BLOCK, 1 << max(0, wanted - 1).bit_length()))


def encode_parts(source: PatchSource, engine: Engine) -> list[Part]:
    """Whole chunks for every task, some tasks per thread."""
    chunk = chunk_size(source.n_patches)
    n_chunks = -(-source.n_patches // chunk)
    n_tasks = min(n_chunks, TASKS_PER_THREAD * engine.resources.n_threads)
    step = -(-n_chunks // max(1, n_tasks)) * chunk
    spans = [(a, min(a + step, source.n_patches)) for a in range(0, source.n_patches, step)]
    return [Part(source.part(start, stop), start, stop, chunk) for start, stop in spans]


def create_codes(url: str | PathLike[str], coder: Coder, source: PatchSource) -> Store:
    """A store for the codes of all patches of a source."""
    return create(
        url,
        "codes",
        {"patch": source.n_patches, "slot": coder.sparsity},
        {"patch": chunk_size(source.n_patches), "slot": coder.sparsity},
        {
            "n_angles": coder.code_angles,
            "atoms_sha256": coder.sha256,
            "patches_fingerprint": source.fingerprint,
        },
    )


def encode_part(part: Part, step: EncodeStep) -> tuple[list[float], list[Piece]]:
    """Code a task's patches chunk by chunk: (pixel errors of blocks, the codes if not stored)."""
    coder, store = step.coder, step.store
    errors: list[float] = []
    kept: list[Piece] = []
    for start in range(part.start, part.stop, part.leaf_size):
        stop = min(start + part.leaf_size, part.stop)
        pieces, rests = [], []
        for begin in range(start, stop, BLOCK):
            end = min(begin + BLOCK, stop)
            coords, rest = part.source.read_with_rest(coder.basis, begin, end)
            codes = coder.encode(coords, step.tolerance)
            errors.append(coder.measure(coords, codes)[1] + float(rest.sum(dtype=np.float64)))
            pieces.append(codes)
            rests.append(rest)
        piece = (Codes.join(pieces), np.concatenate(rests))
        if store is None:
            kept.append(piece)
            continue
        for name in ("atom", "angle", "coef", "error"):
            store.write(name, start, getattr(piece[0], name))
        store.write("rest", start, piece[1])
    return errors, kept


def join_codes(pieces: Sequence[Piece], store: Store | None) -> Callable[[], Piece]:
    """What gives the codes of all patches: those of a store, or pieces in memory."""
    if store is not None:
        return partial(_read_codes, store)
    return partial(_join, pieces)


def _join(pieces: Sequence[Piece]) -> Piece:
    return Codes.join([codes for codes, _ in pieces]), np.concatenate([rest for _, rest in pieces])


def _read_codes(store: Store) -> Piece:
    arrays = {name: store.read(name) for name in ("atom", "angle", "coef", "error")}
    with as_written(store.url, "codes"):
        return Codes(**arrays, n_angles=int(store.attributes["n_angles"])), store.read("rest")
