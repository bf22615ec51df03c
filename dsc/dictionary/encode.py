"""Coding whole patch sets: tasks read, code, and write whole chunks of a codes store."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dsc.basis import SteerableBasis
from dsc.dictionary.loop import Part
from dsc.engine import BLOCK, Engine, open_engine, part_tasks
from dsc.engine.plan import TASKS_PER_THREAD
from dsc.errors import DscError
from dsc.patches import as_source
from dsc.pursuit import Codes, encode
from dsc.store import Store, create
from dsc.update.statistics import measure

if TYPE_CHECKING:
    from dsc.dictionary.model import Dictionary

CHUNK = 2**16  # patches in a chunk of a codes store


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
    codes
        The codes, if they were kept in memory.
    rest
        (patch,) energy of each patch outside the span of the basis, with `codes`.
    url
        Where they were written, otherwise.
    """

    n_patches: int
    mse: float
    seconds: float
    codes: Codes | None = None
    rest: NDArray[np.float32] | None = None
    url: str | None = None


def encode_source(
    dictionary: Dictionary,
    patches: Any,
    out: str | None,
    scheduler: Any,
    n_workers: int | None,
    memory_limit: str | int | None,
) -> Coded:
    """Code all patches of a source, in memory or into a store; see `Dictionary.encode`."""
    begin = time.perf_counter()
    source = as_source(patches)
    basis = dictionary.basis
    if source.diameter != basis.diameter:
        raise DscError(
            f"patches: found diameter {source.diameter}, need {basis.diameter}, that of the "
            "dictionary"
        )
    with open_engine(scheduler, n_workers, memory_limit) as engine:
        parts = _parts(source, engine)
        store = None if out is None else _create(out, dictionary, source)
        shared = {
            "atoms": dictionary.atoms,
            "basis": basis,
            "sparsity": dictionary.config.sparsity,
            "n_angles": dictionary.n_angles,
            "store": store,
        }
        results = engine.compute(part_tasks(encode_part, parts, **shared))
    total = sum(result[0] for result in results)
    mse = total / (source.n_patches * basis.n_pixels)
    seconds = time.perf_counter() - begin
    if store is not None:
        store.finish()
        return Coded(source.n_patches, mse, seconds, url=out)
    pieces = [piece for result in results for piece in result[1]]
    codes = Codes.join([piece[0] for piece in pieces])
    rest = np.concatenate([piece[1] for piece in pieces])
    return Coded(source.n_patches, mse, seconds, codes, rest)


def _parts(source: Any, engine: Engine) -> list[Part]:
    """Whole chunks for every task, some tasks per thread."""
    n_chunks = -(-source.n_patches // CHUNK)
    n_tasks = min(n_chunks, TASKS_PER_THREAD * engine.resources.n_threads)
    step = -(-n_chunks // max(1, n_tasks)) * CHUNK
    return [
        Part(source.part(start, min(start + step, source.n_patches)), start,
             min(start + step, source.n_patches), CHUNK)
        for start in range(0, source.n_patches, step)
    ]  # fmt: skip


def _create(url: str, dictionary: Dictionary, source: Any) -> Store:
    return create(
        url,
        "codes",
        {"patch": source.n_patches, "slot": dictionary.config.sparsity},
        {"patch": CHUNK, "slot": dictionary.config.sparsity},
        {
            "n_angles": dictionary.n_angles,
            "atoms_sha256": dictionary.sha256,
            "patches_fingerprint": source.fingerprint,
        },
    )


def encode_part(
    part: Part,
    *,
    atoms: NDArray[np.float32],
    basis: SteerableBasis,
    sparsity: int,
    n_angles: int,
    store: Store | None,
) -> tuple[float, list[tuple[Codes, NDArray[np.float32]]]]:
    """Code a task's patches chunk by chunk: (sum of pixel errors, the codes if not stored)."""
    total = 0.0
    kept = []
    for start in range(part.start, part.stop, CHUNK):
        stop = min(start + CHUNK, part.stop)
        error, codes, rest = _encode_chunk(part, start, stop, atoms, basis, sparsity, n_angles)
        total += error
        if store is None:
            kept.append((codes, rest))
            continue
        for name in ("atom", "angle", "coef", "error"):
            store.write(name, start, getattr(codes, name))
        store.write("rest", start, rest)
    return total, kept


def _encode_chunk(
    part: Part,
    start: int,
    stop: int,
    atoms: NDArray[np.float32],
    basis: SteerableBasis,
    sparsity: int,
    n_angles: int,
) -> tuple[float, Codes, NDArray[np.float32]]:
    pieces, rests, total = [], [], 0.0
    for begin in range(start, stop, BLOCK):
        end = min(begin + BLOCK, stop)
        assert part.source is not None
        coords, rest = part.source.read_with_rest(basis, begin, end)
        codes = encode(coords, atoms, basis, sparsity, n_angles)
        usage, _ = measure(coords, codes, atoms, basis, begin)
        total += usage.pixel_sse + float(rest.sum(dtype=np.float64))
        pieces.append(codes)
        rests.append(rest)
    return total, Codes.join(pieces), np.concatenate(rests)
