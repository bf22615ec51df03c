"""`dsc denoise`, `inpaint`, `orientation`, `features` and `reconstruct`: images in, images out."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

import click
import numpy as np

import dsc
from dsc.cli.options import (
    answer,
    engine_options,
    json_option,
    options_of,
    out_option,
    stacked,
)
from dsc.dictionary import load_dictionary
from dsc.errors import DscError
from dsc.images import check_new_file, check_writable, to_dtype, write_pixels
from dsc.restore import RestoreConfig
from dsc.show import Terminal
from dsc.tiling import as_image

MAP_SUFFIX = ".zarr"

model_option = click.option(
    "--model", metavar="RUN_OR_MODEL", help="A dictionary to use; else one is learned from IMAGE."
)
map_options = stacked(
    click.option("--out", "-o", required=True, metavar="PATH", help="The OME-Zarr to write."),
    click.option("--overwrite", is_flag=True, help="Replace finished maps that are at PATH."),
    click.option("--resume", is_flag=True, help="Keep the tiles of unfinished maps at PATH."),
    click.option(
        "--sigma", type=float, help="Width of the pool in pixels; by default diameter / 4."
    ),
)


@click.command()
@click.argument("image")
@out_option
@click.option("--sigma", type=float, help="Noise in units of IMAGE; by default estimated.")
@model_option
@options_of(RestoreConfig)
@engine_options
@json_option
def denoise(image: str, out: str, model: str | None, as_json: bool, **options: Any) -> None:
    """Remove white noise from IMAGE; writes .npy, .png or .tif of the same type."""
    path, begin = check_new_file(out), time.perf_counter()
    pixels = as_image(image).pixels()
    check_writable(path, pixels)
    dictionary = None if model is None else load_dictionary(model)
    clean = dsc.denoise(pixels, model=dictionary, progress=Terminal(), **options)
    write_pixels(path, clean, pixels)
    colors = np.s_[..., :3] if pixels.ndim == 3 else np.s_[:]
    removed = float(np.std(clean[colors].astype(np.float64) - pixels[colors]))
    seconds = time.perf_counter() - begin
    summary = {"removed": removed, "dtype": clean.dtype.name, "seconds": seconds, "out": out}
    answer(summary, as_json, f"{out}: {removed:.4g} (standard deviation) removed from {image}")


@click.command()
@click.argument("image")
@out_option
@click.option("--mask", metavar="IMAGE", help="An image that is not zero where pixels are missing.")
@model_option
@options_of(RestoreConfig)
@engine_options
@json_option
def inpaint(
    image: str, out: str, mask: str | None, model: str | None, as_json: bool, **options: Any
) -> None:
    """Fill the missing pixels of IMAGE: those of a mask, and NaN."""
    path, begin = check_new_file(out), time.perf_counter()
    pixels = as_image(image).pixels()
    check_writable(path, pixels)
    missing = None if mask is None else as_image(mask).whole() != 0
    has_nan = pixels.dtype.kind == "f" and np.isnan(pixels).any()
    if not has_nan and (missing is None or not missing.any()):
        raise DscError(f"{image}: found no missing pixel: say which ones with --mask")
    dictionary = None if model is None else load_dictionary(model)
    filled = dsc.inpaint(pixels, missing, dictionary, progress=Terminal(), **options)
    write_pixels(path, filled, pixels)
    gone = np.zeros(pixels.shape[:2], bool) if missing is None else missing
    if has_nan:
        gone = gone | np.isnan(pixels).reshape(*gone.shape, -1).any(axis=2)
    summary = {
        "n_missing": int(gone.sum()),
        "dtype": filled.dtype.name,
        "seconds": time.perf_counter() - begin,
        "out": out,
    }
    answer(summary, as_json, f"{out}: {summary['n_missing']:,} pixels of {image} filled")


@click.command()
@click.argument("image")
@click.argument("model", metavar="RUN_OR_MODEL")
@map_options
@engine_options
@json_option
def orientation(image: str, model: str, out: str, as_json: bool, **options: Any) -> None:
    """Map which way structures run at each pixel of IMAGE, and where two of them cross."""
    begin = time.perf_counter()
    _check_maps(out)
    maps = dsc.orientation(image, load_dictionary(model), out, progress=Terminal(), **options)
    names = [str(name) for name in maps.data_vars]
    summary = {"maps": names, "seconds": time.perf_counter() - begin, "out": out}
    answer(summary, as_json, f"{out}: {', '.join(names)} of {image}")


@click.command()
@click.argument("image")
@click.argument("model", metavar="RUN_OR_MODEL")
@click.option(
    "--kind",
    type=click.Choice(["invariant", "covariant"]),
    default="invariant",
    show_default=True,
    help="Pooled over all angles, or by angle relative to the local orientation.",
)
@map_options
@engine_options
@json_option
def features(image: str, model: str, out: str, as_json: bool, **options: Any) -> None:
    """Map which atoms are at work around each pixel of IMAGE, whichever way it is rotated."""
    begin, kind = time.perf_counter(), options.pop("kind")
    _check_maps(out)
    maps = dsc.features(image, load_dictionary(model), kind, out, progress=Terminal(), **options)
    names = [str(name) for name in maps["channel"].values]
    summary = {"channels": names, "seconds": time.perf_counter() - begin, "out": out}
    answer(summary, as_json, f"{out}: {len(names)} channels, {names[0]} to {names[-1]}, of {image}")


@click.command()
@click.argument("image")
@click.argument("model", metavar="RUN_OR_MODEL")
@out_option
@click.option("--stride", default=1, show_default=True, help="Pixels between patches.")
@engine_options
@json_option
def reconstruct(
    image: str, model: str, out: str, stride: int, as_json: bool, **options: Any
) -> None:
    """Rebuild IMAGE from its coded patches, in grey; writes .npy, .png, .tif or an OME-Zarr."""
    dictionary, source = load_dictionary(model), as_image(image)
    how = {**options, "progress": Terminal()}
    if Path(out).suffix == MAP_SUFFIX or "://" in out:
        rebuilt = dictionary.rebuild(source, stride, out, **how)
    else:
        path = check_new_file(out)
        rebuilt = dictionary.rebuild(source, stride, **how)
        pixels = source.pixels()
        write_pixels(path, to_dtype(rebuilt.image, pixels.dtype), pixels)
    psnr = rebuilt.psnr if math.isfinite(rebuilt.psnr) else None  # JSON has no infinity
    summary = {"share": rebuilt.share, "psnr": psnr, "mse": rebuilt.mse, "out": out}
    answer(summary, as_json, f"{out}: {rebuilt.line()}, mse {rebuilt.mse:.6g} per pixel")


def _check_maps(out: str) -> None:
    """Refuse a name that looks like another kind of file."""
    if Path(out).suffix != MAP_SUFFIX:
        raise DscError(f"out: found {out!r}, need a name that ends in {MAP_SUFFIX}: an OME-Zarr")
