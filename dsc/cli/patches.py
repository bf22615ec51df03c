"""`dsc patches`."""

from __future__ import annotations

import time
from typing import Any

import click

from dsc.cli.options import answer, config_option, json_option, options_of, out_option
from dsc.patches import PatchConfig, extract_patches
from dsc.show import Terminal


@click.command()
@click.argument("images", nargs=-1, required=True)
@out_option
@options_of(PatchConfig)
@config_option
@json_option
def patches(images: tuple[str, ...], out: str, as_json: bool, **options: Any) -> None:
    """Cut patches out of IMAGES (files, folders, globs) into a patch set."""
    begin = time.perf_counter()
    source = extract_patches(
        list(images), out, PatchConfig.from_options(options), progress=Terminal()
    )
    summary = {
        "n_patches": source.n_patches,
        "diameter": source.diameter,
        "fingerprint": source.fingerprint,
        "out": out,
        "seconds": time.perf_counter() - begin,
    }
    cut = f"{source.n_patches:,} patches of diameter {source.diameter} in {out}"
    answer(summary, as_json, cut, f"next: dsc learn {out} --out RUN")
