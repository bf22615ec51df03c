"""`extract_patches`: from images to a patch set on disk.

Images are looked at first (hashes, filter), and nothing is written before all of them are known
to be good. What is kept of a look is a bit per window.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from itertools import accumulate
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsc.basis import SteerableBasis, make_basis
from dsc.counter import choose, uniform_bits
from dsc.errors import DscError, raise_listed
from dsc.images import DECODED, Image, Inputs, image_problem, scan_inputs
from dsc.patches.album import write_album
from dsc.patches.config import PatchConfig
from dsc.patches.scan import Indices, Scan, scan
from dsc.patches.stored import StoredPatches, materialize_span, of_store
from dsc.show import Meter, Stage, listener_of
from dsc.store import Store, basis_sizes, basis_variables, check_free, create

Columns = dict[str, NDArray[Any]]

CHUNK = 2**16  # patches in a chunk
CHUNK_BYTES = 8 * 2**20  # of coordinates in a chunk, at most


@dataclass(frozen=True, eq=False)
class _Choice:
    """Images, what was seen of each, and what was asked for."""

    images: list[Image]
    scans: list[Scan]
    config: PatchConfig

    @property
    def n_patches(self) -> int:
        return sum(seen.n_patches for seen in self.scans)

    @property
    def label_names(self) -> list[str]:
        return sorted({image.label for image in self.images if image.label is not None})

    @property
    def first_windows(self) -> list[int]:
        """The number of each image's first window among all: what random choices hang on."""
        return list(accumulate((seen.n_windows for seen in self.scans[:-1]), initial=0))


def extract_patches(
    inputs: Inputs,
    out: str | PathLike[str],
    config: PatchConfig | None = None,
    progress: Callable[[Any], None] | bool | None = None,
) -> StoredPatches:
    """Take patches from images and write a patch set.

    Parameters
    ----------
    inputs
        Images, as `open_images` takes or returns them. Those of Zarr arrays are referred to,
        not copied.
    out
        Path or URL of the new patch set.
    config
        Which patches, and what is done to them; the defaults of `PatchConfig` if it is None.
    progress
        As in `dsc.learn`.

    Returns
    -------
    The patch set, opened. A patch's number is its place in the order (image, y, x).
    """
    config = PatchConfig() if config is None else config
    check_free(out)
    if isinstance(progress, Meter):  # of an engine, which closes it
        return _extract(inputs, out, config, progress)
    meter = Meter(*listener_of(progress))
    try:
        return _extract(inputs, out, config, meter)
    finally:
        meter.close()


def patch_fingerprint(inputs: Inputs, config: PatchConfig) -> str:
    """The fingerprint of the patch set that `extract_patches` would make."""
    return _fingerprint(_subset(_look(inputs, config, Meter())))


def _extract(
    inputs: Inputs, out: str | PathLike[str], config: PatchConfig, meter: Meter
) -> StoredPatches:
    choice = _subset(_look(inputs, config, meter))
    n_patches = choice.n_patches
    if n_patches == 0:
        n_windows = sum(seen.n_windows for seen in choice.scans)
        raise DscError(
            f"found no patch with a standard deviation above {config.min_std} among {n_windows} "
            "windows: lower min_std"
        )
    basis = None if config.materialize is None else make_basis(config.materialize, config.diameter)
    store = _create(out, choice, basis)
    with store.writing():
        write_album(store, choice.images, choice.scans)
        DECODED.clear()
        _write_positions(store, choice)
        if basis is not None:
            for name, array in basis_variables(basis).items():
                store.write(name, 0, array)
            chunk = store.chunks("coords")[0]
            meter.begin(Stage("project the patches", n_patches))
            for start in range(0, n_patches, chunk):
                meter.show(start)
                materialize_span(store, start, min(start + chunk, n_patches))
        return of_store(store.finish())


def _look(inputs: Inputs, config: PatchConfig, meter: Meter) -> _Choice:
    images, problems = scan_inputs(inputs, config.missing_as_fill)
    scans = []
    n_windows = sum(math.prod(image.shape) // config.stride**2 for image in images)  # about
    meter.begin(Stage(f"look at {len(images):,} images", n_windows))
    n_done = 0

    def tick(count: int) -> None:
        nonlocal n_done
        n_done += count
        meter.show(n_done)

    for image in images:
        try:
            scans.append(scan(image, config, tick))
        except Exception as error:  # whatever a decoder raises is the file's fault
            problems.append(image_problem(image, error))
    if config.per_class is not None and any(image.label is None for image in images):
        problems.append("per_class: found images without a class, need one folder per class")
    raise_listed("images", problems)
    return _Choice(images, scans, config)


def _subset(choice: _Choice) -> _Choice:
    """Thin the patches of every image or class to a random choice."""
    config, scans, firsts = choice.config, choice.scans, choice.first_windows
    if config.per_image is None and config.per_class is None:
        return choice
    chosen: dict[object, Indices] = {}
    by_image = config.per_image is not None
    groups = [number if by_image else one.label for number, one in enumerate(choice.images)]
    size = config.per_image or config.per_class or 0
    for group, seen, first in zip(groups, scans, firsts, strict=True):
        for index in seen.patches():
            candidates = np.concatenate([chosen.get(group, index[:0]), index + first])
            chosen[group] = choose(config.seed, "subset", candidates, size)
    thinned = [
        seen.only(chosen[group] - first)
        for group, seen, first in zip(groups, scans, firsts, strict=True)
    ]
    return replace(choice, scans=thinned)


def _positions(choice: _Choice) -> Iterator[Columns]:
    """Where the patches are, `CHUNK` at a time, in the order of their numbers."""
    config, firsts = choice.config, choice.first_windows
    angles = np.deg2rad(np.array(config.rotate, np.float64)).astype(np.float32)
    waiting: list[Columns] = []
    n_waiting = 0
    for image, (seen, first) in enumerate(zip(choice.scans, firsts, strict=True)):
        for index in seen.patches():
            y, x = seen.grid.positions(index)
            columns: Columns = {"image": np.full(len(index), image, np.int32), "y": y, "x": x}
            if config.rotate:
                bits = uniform_bits(config.seed, "rotate", index + first)
                columns["rotation"] = angles[(bits % np.uint64(len(angles))).astype(np.int64)]
            waiting.append(columns)
            n_waiting += len(index)
            if n_waiting >= CHUNK:
                *full, last = _chunks(waiting)
                yield from full
                waiting, n_waiting = [last], len(last["image"])
    if n_waiting:
        yield from _chunks(waiting)


def _chunks(parts: list[Columns]) -> list[Columns]:
    """Columns joined, and cut into whole chunks and the rest."""
    joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return [
        {name: column[begin : begin + CHUNK] for name, column in joined.items()}
        for begin in range(0, len(joined["image"]), CHUNK)
    ]


def _create(out: str | PathLike[str], choice: _Choice, basis: SteerableBasis | None) -> Store:
    config, labels = choice.config, choice.label_names
    attributes: dict[str, Any] = {
        "n_patches": choice.n_patches,
        **{name: getattr(config, name) for name in ("diameter", "center", "unit")},
        "rotated": bool(config.rotate),
        "fingerprint": _fingerprint(choice),
        "configuration": asdict(config),
        "image_names": [image.name for image in choice.images],
    }
    variables = ["label"] * bool(labels) + ["rotation"] * bool(config.rotate)
    sizes, chunk = {"patch": choice.n_patches}, CHUNK
    if labels:
        attributes["label_names"] = labels
    if basis is not None:
        attributes["basis"] = basis.name
        variables += ["coords", "rest", *basis_variables(basis)]
        sizes |= basis_sizes(basis)
        while chunk * basis.n_coords * 4 > CHUNK_BYTES:
            chunk //= 2
    return create(out, "patches", sizes, {"patch": chunk}, attributes, variables)


def _fingerprint(choice: _Choice) -> str:
    """SHA-256 of what defines the patches: images, positions, normalisation."""
    config, hashed = choice.config, [seen.sha256 for seen in choice.scans]
    header = [config.diameter, config.center, config.unit, hashed]
    hashes = {name: hashlib.sha256() for name in ("image", "y", "x", "rotation")}
    for columns in _positions(choice):
        for name, column in columns.items():
            hashes[name].update(column.astype(column.dtype.newbyteorder("<")).data)
    text = repr((header, [total.hexdigest() for total in hashes.values()]))
    return hashlib.sha256(text.encode()).hexdigest()


def _write_positions(store: Store, choice: _Choice) -> None:
    names = choice.label_names
    label_of = np.array([names.index(p.label) if p.label else 0 for p in choice.images], np.int32)
    for number, columns in enumerate(_positions(choice)):
        if names:
            columns["label"] = label_of[columns["image"]]
        for name, column in columns.items():
            store.write(name, number * CHUNK, column)
