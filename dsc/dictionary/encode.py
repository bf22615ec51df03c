"""Coding whole patch sets: tasks read, code, and write whole chunks or shards of a codes store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from os import PathLike

import numpy as np
from numpy.typing import NDArray

from dsc.dictionary.loop import Part
from dsc.engine import BLOCK, TASKS_PER_THREAD, Engine
from dsc.errors import DscError, unknown_choice
from dsc.patches import PatchSource
from dsc.pursuit import Coder, Codes
from dsc.show import Card, percent
from dsc.store import Layout, Store, as_written, create, shard_rows
from dsc.update import patch_energy

CHUNK = 2**16  # patches in a chunk of a codes store, at most
CHUNKS = 32  # of a set that is smaller than so many of them
COEF_TYPES = ("float32", "float16")
ARRAYS = ("atom", "angle", "coef", "error", "rest")  # of a codes store

Piece = tuple[Codes, NDArray[np.float32]]  # codes of patches, and their energy outside the span


@dataclass(frozen=True, eq=False)
class Coded:
    """Codes of a patch set.

    Attributes
    ----------
    n_patches
        How many patches were coded.
    share
        Share of their energy, as they are prepared, that is left.
    mse
        Mean squared error per pixel of the disk, as `share` that of the codes as they are kept.
    seconds
        Time it took.
    url
        Where they were written; None if they are in memory.
    bytes_per_patch
        Bytes of the arrays in the store, per patch; None if they are in memory.
    """

    n_patches: int
    share: float
    mse: float
    seconds: float
    url: str | None
    bytes_per_patch: float | None
    _read: Callable[[], Piece] = field(repr=False)

    @cached_property
    def _piece(self) -> Piece:
        return self._read()

    def card(self) -> Card:
        """The key numbers; codes that are in a store are not read for it."""
        card = Card(f"codes of {self.n_patches:,} patches") if self.url else self.codes.card()
        about = {"energy left": percent(self.share), "error per pixel": f"{self.mse:.4g}"}
        others = {"time": f"{self.seconds:.1f} s"}
        if self.url:
            others |= {"bytes per patch": f"{self.bytes_per_patch:.1f}", "store": self.url}
        return replace(card, numbers={**about, **card.numbers, **others})

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
    coef_type: str = "float32"  # what coefficients are rounded to


def chunk_size(n_patches: int) -> int:
    """Patches in a chunk, which is also the least that a task codes: whole blocks.

    Examples
    --------
    >>> [chunk_size(n) for n in (100, 60_000, 400_000, 10**9)]
    [4096, 4096, 16384, 65536]
    """
    wanted = -(-n_patches // CHUNKS)
    return min(CHUNK, max(BLOCK, 1 << max(0, wanted - 1).bit_length()))


def encode_parts(source: PatchSource, engine: Engine, store: Store | None = None) -> list[Part]:
    """Whole chunks, or shards of a store, for every task, some tasks per thread."""
    size = chunk_size(source.n_patches)
    if store is not None:
        size = max(size, store.shards("coef")[0])
    n_pieces = -(-source.n_patches // size)
    n_tasks = min(n_pieces, TASKS_PER_THREAD * engine.resources.n_threads)
    step = -(-n_pieces // max(1, n_tasks)) * size
    spans = [(a, min(a + step, source.n_patches)) for a in range(0, source.n_patches, step)]
    return [Part(source.part(start, stop), start, stop, size) for start, stop in spans]


def create_codes(
    url: str | PathLike[str],
    coder: Coder,
    source: PatchSource,
    engine: Engine,
    coef_type: str = "float32",
) -> Store:
    """A store for the codes of all patches of a source, in shards if there are many."""
    chunk, n_slots = chunk_size(source.n_patches), coder.sparsity
    row_bytes = n_slots * (4 + np.dtype(coef_type).itemsize) + 8
    memory = engine.resources.memory_per_thread
    rows = shard_rows(source.n_patches, chunk, row_bytes, memory)
    return create(
        url,
        "codes",
        {"patch": source.n_patches, "slot": n_slots},
        Layout({"patch": chunk, "slot": n_slots}, dict.fromkeys(ARRAYS, rows)),
        {
            "n_angles": coder.code_angles,
            "atoms_sha256": coder.sha256,
            "patches_fingerprint": source.fingerprint,
        },
        {"coef": coef_type},
    )


def check_coef_type(coef_type: str) -> None:
    """Refuse other types of coefficients than those that there are."""
    if coef_type not in COEF_TYPES:
        raise unknown_choice("coef_type", coef_type, COEF_TYPES)


def round_codes(
    codes: Codes, coords: NDArray[np.float32], coder: Coder, coef_type: str, start: int
) -> Codes:
    """Codes with coefficients that a narrower type holds, and the error that they then have."""
    if coef_type == "float32":
        return codes
    most = np.finfo(coef_type).max
    beyond = np.abs(codes.coef).max(axis=1, initial=0) > most
    if beyond.any():
        patch = start + int(beyond.argmax())
        raise DscError(
            f"coef_type: found a coefficient of {np.abs(codes.coef).max():.6g} (patch {patch}), "
            f"need at most {most:.0f} for {coef_type}: use float32"
        )
    rounded = replace(codes, coef=codes.coef.astype(coef_type).astype(np.float32))
    residual, _ = coder.measure(coords, rounded)
    return replace(rounded, error=np.einsum("pc,pc->p", residual, residual))


def encode_part(part: Part, step: EncodeStep) -> tuple[list[tuple[float, float]], list[Piece]]:
    """Code a task's patches chunk by chunk, or shard by shard.

    At most two copies of the codes of one chunk or shard are held at a time. Returns (pixel error,
    energy) of each block, and the codes if they are not stored.
    """
    coder, store = step.coder, step.store
    measures: list[tuple[float, float]] = []
    kept: list[Piece] = []
    for start in range(part.start, part.stop, part.leaf_size):
        stop = min(start + part.leaf_size, part.stop)
        pieces, rests = [], []
        for begin in range(start, stop, BLOCK):
            end = min(begin + BLOCK, stop)
            coords, rest = part.source.read_with_rest(coder.basis, begin, end)
            codes = coder.encode(coords, step.tolerance)
            codes = round_codes(codes, coords, coder, step.coef_type, begin)
            outside = float(rest.sum(dtype=np.float64))
            energy, _ = patch_energy(coords, outside, coder.basis)
            measures.append((coder.measure(coords, codes)[1] + outside, energy))
            pieces.append(codes)
            rests.append(rest)
        piece = (Codes.join(pieces), np.concatenate(rests))
        del pieces, rests
        if store is None:
            kept.append(piece)
            continue
        for name in ("atom", "angle", "coef", "error"):
            store.write(name, start, getattr(piece[0], name))
        store.write("rest", start, piece[1])
    return measures, kept


def join_codes(pieces: Sequence[Piece], store: Store | None) -> Callable[[], Piece]:
    """What gives the codes of all patches: those of a store, or pieces in memory."""
    if store is not None:
        return partial(_read_codes, store)
    return partial(_join, pieces)


def _join(pieces: Sequence[Piece]) -> Piece:
    return Codes.join([codes for codes, _ in pieces]), np.concatenate([rest for _, rest in pieces])


def _read_codes(store: Store) -> Piece:
    arrays = {name: store.read(name) for name in ("atom", "angle", "coef", "error")}
    arrays["coef"] = arrays["coef"].astype(np.float32, copy=False)
    with as_written(store.url, "codes"):
        return Codes(**arrays, n_angles=int(store.attributes["n_angles"])), store.read("rest")
