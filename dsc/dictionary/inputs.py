"""What is learned from: patches as they are, or images, out of which patches are cut first."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from dsc.basis import make_basis
from dsc.dictionary.config import LearnConfig
from dsc.dictionary.run import Run, RunTarget
from dsc.errors import DscError
from dsc.patches import (
    PatchConfig,
    StoredPatches,
    extract_patches,
    is_set_of,
    open_patches,
)
from dsc.store import is_finished, remove_store

PATCH_OPTIONS = tuple(one.name for one in fields(PatchConfig) if one.name != "seed")


@contextmanager
def patches_of(
    inputs: Any,
    cut: dict[str, Any],
    config: LearnConfig,
    target: RunTarget | None = None,
    progress: Any = False,
    **engine_options: Any,
) -> Iterator[Any]:
    """Patches to learn from.

    Without `cut`, options of `PatchConfig`, the inputs are patches, and are given back. With them
    they are images, and a patch set is cut out of them: beside the run folder (RUN-patches.zarr),
    or where there is none, in a folder that goes with the context.
    """
    if not cut:
        yield inputs
        return
    if cut.get("diameter") is None:
        raise DscError(f"diameter: found none beside {', '.join(cut)}, need that of the patches")
    wanted = PatchConfig.from_options({**cut, "seed": config.seed})
    config.resolve(make_basis(config.basis, wanted.diameter))  # refuses before patches are cut
    if target is None:
        with TemporaryDirectory(prefix="dsc-") as folder:
            out = f"{folder}/patches.zarr"
            yield extract_patches(inputs, out, wanted, progress, **engine_options)
        return
    run = Run(Path(target.path))
    with run.locked():
        run.check(target)
        how = {"progress": progress, **engine_options}
        yield _beside(run, inputs, wanted, target.overwrite, how)


def _beside(
    run: Run, inputs: Any, config: PatchConfig, overwrite: bool, how: dict[str, Any]
) -> StoredPatches:
    """The patch set beside a run folder: the one that is there if it is the same, or a new one.

    Another one is removed only if it is that of the run which starts over.
    """
    place = run.path.resolve()
    path = place.with_name(f"{place.name}-patches.zarr")
    if is_finished(path):
        found = open_patches(path)
        if is_set_of(found, inputs, config):
            return found
        if not (overwrite and run.exists and run.options().get("patches") == found.store.url):
            raise DscError(
                f"{path}: found other patches than asked for, need none, or those of these images "
                "and options: choose another --out"
            )
        remove_store(path)
    return extract_patches(inputs, path, config, **how)
