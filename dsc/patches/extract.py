"""`extract_patches`: from images to a patch set on disk.

Images are looked at first (hashes, filter), and nothing is written before all of them are known
to be good. What is kept of a look is a bit per window. Looking, writing images and positions, and
projecting are tasks on an engine; patches have the same numbers for any tasks.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from os import PathLike
from typing import Any

import numpy as np

from dsc.basis import SteerableBasis, make_basis
from dsc.counter import choose
from dsc.engine import Engine, open_engine, part_tasks
from dsc.errors import DscError
from dsc.images import DECODED, Inputs
from dsc.patches.album import pixels_of, write_pixels, write_table
from dsc.patches.config import PatchConfig
from dsc.patches.looking import Choice, look
from dsc.patches.positions import fingerprints_of, spans_of, write_span
from dsc.patches.reading import name_of, reading_of, sliver_note
from dsc.patches.scan import Indices
from dsc.patches.schema import patch_layout
from dsc.patches.stored import StoredPatches, materialize_span, of_store
from dsc.show import Stage
from dsc.store import Store, basis_sizes, basis_variables, check_free, create

CHUNK = 2**16  # patches in a chunk
CHUNK_BYTES = 8 * 2**20  # of coordinates in a chunk, at most
TASK_CHUNKS = 4  # of positions that a task writes


def extract_patches(
    inputs: Inputs,
    out: str | PathLike[str],
    config: PatchConfig | None = None,
    progress: Callable[[Any], None] | bool | None = None,
    **engine_options: Any,
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
    **engine_options
        scheduler, n_workers, memory_limit, patience and tls, as in `dsc.learn_many`. Images that
        are arrays in memory are looked at by threads of this process.

    Returns
    -------
    The patch set, opened. A patch's number is its place in the order (image, y, x).
    """
    config = PatchConfig() if config is None else config
    check_free(out)  # before an engine is opened
    with open_engine(**engine_options, progress=progress) as engine:
        return extract_many([(inputs, out, config)], engine)[0]


def extract_many(
    jobs: Sequence[tuple[Inputs, str | PathLike[str], PatchConfig]], engine: Engine
) -> list[StoredPatches]:
    """Several patch sets (inputs, out, config), each step of all of them in one graph."""
    for _, out, _ in jobs:
        check_free(out)
    with ExitStack() as stack:
        looked = [(inputs, config) for inputs, _, config in jobs]
        choices = [_subset(choice) for choice in look(looked, engine)]
        for choice in choices:
            if choice.n_patches == 0:
                raise DscError(_why_none(choice))
        stores = []
        fingerprints = fingerprints_of(choices, engine)
        for choice, fingerprint, (_, out, _) in zip(choices, fingerprints, jobs, strict=True):
            store = _create(out, choice, fingerprint)
            stack.enter_context(store.writing())
            stores.append(store)
        _write(choices, stores, engine)
        return [of_store(store.finish()) for store in stores]


def is_set_of(found: StoredPatches, inputs: Inputs, config: PatchConfig) -> bool:
    """Whether a patch set is the one that `extract_patches` would make."""
    with open_engine("threads", progress=False) as engine:
        choice = _subset(look([(inputs, config)], engine)[0])
        (fingerprint,) = fingerprints_of([choice], engine)
    reading = json.loads(json.dumps(reading_of(choice.images, config)))  # as it is stored
    return (found.fingerprint, found.reading) == (fingerprint, reading)


def _write(choices: list[Choice], stores: list[Store], engine: Engine) -> None:
    """Write images and positions, then coordinates where they are asked for."""
    n_patches = sum(choice.n_patches for choice in choices)
    tasks, in_memory = [], False
    for choice, store in zip(choices, stores, strict=True):
        images = [one for image in choice.images for one in image]
        in_memory = in_memory or any(image.in_memory for image in images)
        table = write_table(store, images, choice.scans)
        parts = list(pixels_of(table, images, choice.scans))
        tasks += part_tasks(write_pixels, parts, store)
        n_rows = max(TASK_CHUNKS * CHUNK, store.shards("image")[0])  # powers of two: whole shards
        tasks += part_tasks(write_span, list(spans_of(choice, n_rows)), store)
    stage = Stage("write the patch sets" if len(stores) > 1 else "write the patch set", n_patches)
    engine.near(in_memory).compute(tasks, stage)
    DECODED.clear()
    tasks = []
    for choice, store in zip(choices, stores, strict=True):
        basis = _basis(choice)
        if basis is not None:
            for name, array in basis_variables(basis).items():
                store.write(name, 0, array)
            step, count = store.shards("coords")[0], choice.n_patches
            spans = [(start, min(start + step, count)) for start in range(0, count, step)]
            tasks += part_tasks(materialize, spans, store)
    if tasks:
        engine.compute(tasks, Stage("project the patches", n_patches))


def materialize(span: tuple[int, int], store: Store) -> None:
    """One task: the coordinates of a chunk of patches."""
    materialize_span(store, *span)


def _why_none(choice: Choice) -> str:
    """What to do if there is no patch."""
    config, sliver = choice.config, sliver_note(choice.images, choice.scans)
    n_windows = sum(seen.n_windows for seen in choice.scans)
    inside = " inside the mask" if config.masks else ""
    if config.min_std > 0:
        varied = f" with a standard deviation above {config.min_std}"
        remedy = sliver or "lower min_std"
    else:
        varied, remedy = "", "look at the mask" if inside else "too many pixels are missing (NaN)"
    return f"found no patch{varied}{inside} among {n_windows} windows: {remedy}"


def _subset(choice: Choice) -> Choice:
    """Thin the patches of every image or class to a random choice."""
    config, scans, firsts = choice.config, choice.scans, choice.first_windows
    if config.per_image is None and config.per_class is None:
        return choice
    chosen: dict[object, Indices] = {}
    by_image = config.per_image is not None
    groups = [number if by_image else label for number, label in enumerate(choice.labels)]
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


def _basis(choice: Choice) -> SteerableBasis | None:
    """The basis of coordinates that are stored."""
    config = choice.config
    if config.materialize is None:
        return None
    return make_basis(config.materialize, config.diameter).for_channels(choice.n_channels)


def _create(out: str | PathLike[str], choice: Choice, fingerprint: str) -> Store:
    config, labels, basis = choice.config, choice.label_names, _basis(choice)
    attributes: dict[str, Any] = {
        "n_patches": choice.n_patches,
        **{name: getattr(config, name) for name in ("diameter", "center", "unit")},
        "rotated": bool(config.rotate),
        "fingerprint": fingerprint,
        "n_channels": choice.n_channels,
        "configuration": config.to_dict(),
        "image_names": [name_of(channels) for channels in choice.images],
        "reading": reading_of(choice.images, config),
        "notes": [note] if (note := sliver_note(choice.images, choice.scans)) else [],
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
    n_values = basis.n_coords + basis.n_pixels if basis is not None else 0
    layout = patch_layout(choice.n_patches, chunk, variables, n_values)
    return create(out, "patches", sizes, layout, attributes, variables)
