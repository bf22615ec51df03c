"""`dsc patches`."""

from __future__ import annotations

import time
from typing import Any

import click

from dsc.cli.options import (
    ENGINE,
    answer,
    config_option,
    engine_options,
    json_option,
    options_of,
    out_option,
    say,
    take,
)
from dsc.dictionary import image_notes
from dsc.errors import counted
from dsc.patches import PatchConfig, extract_patches
from dsc.show import Terminal


@click.command()
@click.argument("images", nargs=-1, required=True)
@out_option
@options_of(PatchConfig)
@engine_options
@config_option
@json_option
def patches(images: tuple[str, ...], out: str, as_json: bool, **options: Any) -> None:
    """Cut patches out of IMAGES (files, folders, globs) into a patch set."""
    begin = time.perf_counter()
    how = {**take(options, ENGINE), "progress": Terminal()}
    source = extract_patches(list(images), out, PatchConfig.from_options(options), **how)
    notes = image_notes([source])
    for note in notes:
        say(f"note: {note}", as_json=True)
    summary = {
        "n_patches": source.n_patches,
        "diameter": source.diameter,
        "n_channels": source.n_channels,
        "read_as": source.read_as,
        "fingerprint": source.fingerprint,
        "notes": notes,
        "out": out,
        "seconds": time.perf_counter() - begin,
    }
    cut = f"{counted(source.n_patches, 'patch', 'patches')} of diameter {source.diameter} in {out}"
    read = f"images read as {source.read_as}"
    answer(summary, as_json, cut, read, f"next: dsc learn {out} --out RUN")
