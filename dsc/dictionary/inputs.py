"""What is learned from: patches as they are, or images, out of which patches are cut first."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from dsc.dictionary.run import Run, RunTarget
from dsc.errors import DscError
from dsc.patches import PatchConfig, StoredPatches, extract_patches, open_patches
from dsc.store import is_finished, remove_store

PATCH_OPTIONS = tuple(one.name for one in fields(PatchConfig) if one.name != "seed")


@contextmanager
def patches_of(
    inputs: Any, options: dict[str, Any], target: RunTarget | None = None, progress: Any = False
) -> Iterator[Any]:
    """Patches to learn from.

    Without options the inputs are patches, and are given back. With options, those of
    `PatchConfig`, they are images, and a patch set is cut out of them: beside the run folder
    (RUN-patches.zarr), or where there is none, in a folder that goes with the context.
    """
    if not options:
        yield inputs
        return
    if options.get("diameter") is None:
        names = ", ".join(name for name in options if name in PATCH_OPTIONS)
        raise DscError(f"diameter: found none beside {names}, need that of the patches")
    config = PatchConfig.from_options(options)
    if target is None:
        with TemporaryDirectory(prefix="dsc-") as folder:
            yield extract_patches(inputs, f"{folder}/patches.zarr", config, progress)
        return
    Run(Path(target.path)).check(target)
    yield _beside(inputs, config, target, progress)


def _beside(inputs: Any, config: PatchConfig, target: RunTarget, progress: Any) -> StoredPatches:
    """The patch set beside a run folder: made, or that of the run that goes on."""
    path = Path(f"{Path(target.path)}-patches.zarr")
    if target.resume and is_finished(path):
        found = open_patches(path)
        if found.store.attributes["configuration"] != json.loads(json.dumps(asdict(config))):
            raise DscError(
                f"{path}: found other patches than asked for, need those of the run that goes on: "
                "give the options it had, or --overwrite"
            )
        return found
    if target.overwrite:
        remove_store(path)
    return extract_patches(inputs, path, config, progress)
