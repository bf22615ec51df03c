"""`dsc learn`, `encode` and `info`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

import dsc
from dsc.cli.options import (
    answer,
    config_option,
    engine_options,
    json_option,
    options_of,
    out_option,
    resumable,
    run_options,
    take,
)
from dsc.dictionary import COEF_TYPES, PATCH_OPTIONS, LearnConfig, Run, describe, load_dictionary
from dsc.errors import DscError, counted
from dsc.images import said
from dsc.patches import PatchConfig
from dsc.show import Terminal, percent

MOST_ENTRIES = 12  # of a list that `dsc info` shows


@click.command()
@click.argument("patches", nargs=-1, required=True)
@run_options
@options_of(LearnConfig)
@options_of(PatchConfig, skip=("seed",), given=True)
@click.option("--plan", is_flag=True, help="Print the plan and the estimated time; run nothing.")
@engine_options
@config_option
@json_option
def learn(patches: tuple[str, ...], out: str, plan: bool, as_json: bool, **options: Any) -> None:
    """Learn a dictionary from PATCHES into the run folder RUN.

    PATCHES are a patch set; with --diameter they are images (files, folders, globs), whose patches
    are cut first, into RUN-patches.zarr.
    """
    absent = [name for name in PATCH_OPTIONS if options[name] in (None, ())]
    take(options, tuple(absent))
    inputs: Any = list(patches)
    from_images = len(absent) < len(PATCH_OPTIONS)
    if not from_images:
        if len(patches) > 1:
            raise DscError(
                f"PATCHES: found {len(patches)}, need one patch set; to learn from images, say "
                "--diameter"
            )
        inputs = patches[0]
    if plan:
        take(options, ("resume", "overwrite"))
        planned = dsc.plan(inputs, **options)
        answer(planned.to_dict(), as_json, str(planned))
        return
    begin = time.perf_counter()
    with resumable(out):
        model = dsc.learn(inputs, run=out, progress=Terminal(), **options)
    summary = {
        "n_patches": model.patches["n_patches"],
        "share": model.share,
        "mse": model.mse,
        "history": model.history.tolist(),
        "n_unused": model.n_unused,
        "notes": Run(Path(out)).notes,
        "atoms_sha256": model.sha256,
        "n_tasks": Run(Path(out)).n_tasks,
        "seconds": time.perf_counter() - begin,
        "out": out,
    }
    from dsc.report import write_report

    write_report(out)
    answer(
        summary,
        as_json,
        f"{percent(model.share)} of the energy left, mse {model.mse:.6g} per pixel; "
        f"dictionary in {out}, see {out}/report/index.html",
        *([f"images read as {said(model.reading, model.n_channels)}"] if from_images else []),
        f"next: dsc encode {Run(Path(out)).options()['patches']} {out} --out CODES.zarr",
    )


@click.command()
@click.argument("patches")
@click.argument("model", metavar="RUN_OR_MODEL")
@out_option
@click.option(
    "--coef-type",
    type=click.Choice(COEF_TYPES),
    default=COEF_TYPES[0],
    show_default=True,
    help="Type of the coefficients; float16 rounds them to 11 binary digits.",
)
@engine_options
@json_option
def encode(patches: str, model: str, out: str, as_json: bool, **options: Any) -> None:
    """Code the patch set PATCHES with a learned dictionary."""
    coded = load_dictionary(model).encode(patches, out, progress=Terminal(), **options)
    summary = {
        "n_patches": coded.n_patches,
        "share": coded.share,
        "mse": coded.mse,
        "bytes_per_patch": coded.bytes_per_patch,
        "seconds": coded.seconds,
        "out": out,
    }
    text = (
        f"{counted(coded.n_patches, 'patch', 'patches')} coded in {out}: "
        f"{percent(coded.share)} of the energy left, mse {coded.mse:.6g} per pixel, "
        f"{coded.bytes_per_patch:.1f} bytes per patch"
    )
    answer(summary, as_json, text)


@click.command()
@click.argument("path")
@json_option
def info(path: str, as_json: bool) -> None:
    """Say what is in a patch set, a model, codes, or a run folder."""
    described = describe(path)
    arrays = described.get("arrays", {})
    lines = {name: _short(value) for name, value in described.items() if name != "arrays"}
    lines |= {name: " × ".join(f"{size:,}" for size in shape) for name, shape in arrays.items()}
    answer(described, as_json, *(f"{name:<20} {text}" for name, text in lines.items()))


def _short(value: Any) -> str:
    """A value in one line: of many entries the first and their number."""
    if isinstance(value, dict):
        value = [f"{name}: {_short(one)}" for name, one in value.items()]
    if not isinstance(value, list):
        return str(value)
    more = f", … ({len(value):,} in all)" if len(value) > MOST_ENTRIES else ""
    return ", ".join(map(str, value[:MOST_ENTRIES])) + more
