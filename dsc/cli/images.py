"""`dsc denoise`, `inpaint`, `orientation`, `features` and `reconstruct`: images in, images out."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

import dsc
from dsc.cli.options import (
    answer,
    engine_options,
    json_option,
    options_of,
    page_option,
    say,
    stacked,
)
from dsc.dictionary import Dictionary, image_to_rebuild, load_dictionary
from dsc.errors import DscError
from dsc.images import Image, check_writable, new_file, png_span, said, write_pixels
from dsc.restore import RestoreConfig, denoise_image, inpaint_image
from dsc.show import Terminal, percent
from dsc.tiling import Output, Pick, as_image, channel_names, image_for

MAP_SUFFIX = ".zarr"
KNOWN_SPANS = ((0.0, 1.0), (0.0, 255.0))  # of floats that a PNG keeps as they are meant

Summary = dict[str, Any]  # what a command answers, and its page shows

model_option = click.option(
    "--model", metavar="RUN_OR_MODEL", help="A dictionary to use; else one is learned from IMAGE."
)
read_options = stacked(
    click.option(
        "--channel",
        help="Channels to take together: 'all', or numbers or names with commas between; by "
        "default as the model was learned, else all colors.",
    ),
    click.option(
        "--level",
        type=click.IntRange(0),
        help="Level of a pyramid; by default as the model was learned, else the full size.",
    ),
    click.option("--page", type=click.IntRange(0), help="The image to take of a stack, from 0 on."),
    click.option(
        "--missing-as-fill",
        is_flag=True,
        help="Read chunks that a Zarr array does not have as its fill value.",
    ),
)
again_options = stacked(
    click.option("--overwrite", is_flag=True, help="Replace a finished one that is at PATH."),
    click.option(
        "--resume", is_flag=True, help="Keep the tiles of an unfinished OME-Zarr at PATH."
    ),
)
image_options = stacked(
    click.option(
        "--out",
        "-o",
        required=True,
        metavar="PATH",
        help="A .npy, .png or .tif to write, or an OME-Zarr (.zarr, a URL), tile by tile.",
    ),
    again_options,
)
map_options = stacked(
    click.option("--out", "-o", required=True, metavar="PATH", help="The OME-Zarr to write."),
    again_options,
    click.option(
        "--sigma", type=float, help="Width of the pool in pixels; by default diameter / 4."
    ),
)


def _read(
    image: str, options: dict[str, Any], model: str | None
) -> tuple[Image, Pick, Dictionary | None]:
    """An image by the options of `read_options`, which are taken out of others, and its model."""
    pick = Pick.take(options)
    if model is None:
        return as_image(image, True, pick), pick, None
    dictionary = load_dictionary(model)
    _say_reading(image, dictionary, pick)
    return image_for(image, dictionary.reading, dictionary.n_channels, pick, True), pick, dictionary


def _say_reading(image: str, dictionary: Dictionary, pick: Pick) -> None:
    """Say how an image is read if that is not by its type, but as others were."""
    found = {
        name: value
        for name, value in dictionary.reading.items()
        if name == "ranges" or getattr(pick, name) is None
    }
    if found.keys() & {"channel", "level"}:
        as_learned = said(found, dictionary.n_channels)
        say(f"note: {image} is read as the model was learned: {as_learned}", True)


@contextmanager
def image_output(image: Image, source: str, options: dict[str, Any]) -> Iterator[ImageOutput]:
    """Where an image goes, by the options of `image_options`, which are taken out of others."""
    out, overwrite, resume = (options.pop(name) for name in ("out", "overwrite", "resume"))
    if Path(out).suffix == MAP_SUFFIX or "://" in out:
        yield ImageOutput(None, Output(out, overwrite, resume))
        return
    if resume:
        raise DscError(f"resume: found {out!r}, need an OME-Zarr (.zarr), which has tiles to keep")
    with new_file(out, overwrite, source) as path:
        names = channel_names(image)
        is_color = not any(name.startswith("channel ") for name in names)
        check_writable(path, image.crop(0, 1, 0, 1), is_color)
        yield ImageOutput(path, Output(), is_color)


@dataclass(frozen=True)
class ImageOutput:
    """A file, or a store."""

    path: Path | None
    store: Output
    is_color: bool = True  # whether channels are colors

    def write(self, pixels: NDArray[Any], like: Image) -> Summary:
        """Write a file; a store is written already. The `levels` of a PNG of floats are given."""
        if self.path is None:
            return {}
        values, facts = like.pixels(), {}
        if self.path.suffix.lower() == ".png" and pixels.dtype.kind == "f":
            low, high = png_span(values)
            facts = {"levels": [low, high]}
            if (low, high) not in KNOWN_SPANS:
                span = f"{low:g} and {high:g} are black and white in {self.path}"
                say(f"note: the values {span}: .tif and .npy keep them", True)
            if n_missing := int(np.isnan(pixels).sum()):
                say(f"note: {n_missing:,} missing values (NaN) are black in {self.path}", True)
        write_pixels(self.path, pixels, values, self.is_color)
        return facts


@click.command()
@click.argument("image")
@image_options
@click.option("--sigma", type=float, help="Noise in units of IMAGE; by default estimated.")
@read_options
@model_option
@options_of(RestoreConfig)
@engine_options
@json_option
@page_option
def denoise(
    image: str, sigma: float | None, model: str | None, as_json: bool, **options: Any
) -> Summary:
    """Remove white noise from IMAGE; what is written has the same type."""
    begin, out = time.perf_counter(), options["out"]
    source, _, dictionary = _read(image, options, model)
    with image_output(source, image, options) as place:
        options["progress"] = Terminal(is_brief=True)
        done = denoise_image(source, sigma, dictionary, place.store, options)
        facts = place.write(done.array, source)
    share, removed, levels = (done.facts[name] for name in ("share", "removed", "sigma"))
    summary = {
        "share": share,
        "removed": removed,
        "sigma": levels[0] if sigma is not None or len(levels) == 1 else levels,
        "dtype": done.dtype.name,
        **facts,
        "seconds": time.perf_counter() - begin,
        "out": out,
    }
    found = "given" if sigma is not None else "estimated"
    noise = ", ".join(f"{level:.4g}" for level in (levels if len(set(levels)) > 1 else levels[:1]))
    answer(
        summary,
        as_json,
        f"{out}: {percent(share)} of the energy removed from {image}, "
        f"{removed:.4g} (standard deviation); σ {noise} ({found})",
    )
    return summary


@click.command()
@click.argument("image")
@image_options
@click.option("--mask", metavar="IMAGE", help="An image that is not zero where pixels are missing.")
@read_options
@model_option
@options_of(RestoreConfig)
@engine_options
@json_option
@page_option
def inpaint(
    image: str, mask: str | None, model: str | None, as_json: bool, **options: Any
) -> Summary:
    """Fill the missing pixels of IMAGE: those of a mask, and NaN."""
    begin, out = time.perf_counter(), options["out"]
    source, pick, dictionary = _read(image, options, model)
    with image_output(source, image, options) as place:
        options["progress"] = Terminal(is_brief=True)
        fill = Pick(missing_as_fill=True) if pick.missing_as_fill else None
        holes = None if mask is None else as_image(mask, True, fill)
        done = inpaint_image(source, holes, dictionary, place.store, options)
        n_missing = done.facts["n_missing"]
        if not n_missing:
            raise DscError(f"{image}: found no missing pixel: say which ones with --mask")
        facts = place.write(done.array, source)
    share = done.facts["share"]
    summary = {
        "share": share,
        "n_missing": n_missing,
        "dtype": done.dtype.name,
        **facts,
        "seconds": time.perf_counter() - begin,
        "out": out,
    }
    left = f"{percent(share)} of the energy left of known pixels beside them"
    answer(summary, as_json, f"{out}: {n_missing:,} pixels of {image} filled; {left}")
    return summary


@click.command()
@click.argument("image")
@click.argument("model", metavar="RUN_OR_MODEL")
@map_options
@read_options
@engine_options
@json_option
@page_option
def orientation(image: str, model: str, out: str, as_json: bool, **options: Any) -> Summary:
    """Map which way structures run at each pixel of IMAGE, and where two of them cross."""
    begin = time.perf_counter()
    _check_maps(out)
    dictionary = load_dictionary(model)
    _say_reading(image, dictionary, Pick(options["channel"], options["level"]))
    maps = dsc.orientation(image, dictionary, out, progress=Terminal(is_brief=True), **options)
    names, share = [str(name) for name in maps.data_vars], maps.attrs["share"]
    seconds = time.perf_counter() - begin
    summary = {"share": share, "maps": names, "seconds": seconds, "out": out}
    left = f"{percent(share)} of the energy of patches left"
    answer(summary, as_json, f"{out}: {left}; {', '.join(names)} of {image}")
    return summary


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
@read_options
@engine_options
@json_option
@page_option
def features(image: str, model: str, out: str, as_json: bool, **options: Any) -> Summary:
    """Map which atoms are at work around each pixel of IMAGE, whichever way it is rotated."""
    begin, kind = time.perf_counter(), options.pop("kind")
    _check_maps(out)
    dictionary = load_dictionary(model)
    _say_reading(image, dictionary, Pick(options["channel"], options["level"]))
    maps = dsc.features(image, dictionary, kind, out, progress=Terminal(is_brief=True), **options)
    names, share = [str(name) for name in maps["channel"].values], maps.attrs["share"]
    seconds = time.perf_counter() - begin
    summary = {"share": share, "channels": names, "seconds": seconds, "out": out}
    left = f"{percent(share)} of the energy of patches left"
    channels = f"{len(names)} channels, {names[0]} to {names[-1]}"
    answer(summary, as_json, f"{out}: {left}; {channels}, of {image}")
    return summary


@click.command()
@click.argument("image")
@click.argument("model", metavar="RUN_OR_MODEL")
@image_options
@click.option("--stride", default=1, show_default=True, help="Pixels between patches.")
@read_options
@engine_options
@json_option
@page_option
def reconstruct(image: str, model: str, stride: int, as_json: bool, **options: Any) -> Summary:
    """Rebuild IMAGE from its coded patches; what is written has the same type."""
    dictionary, out = load_dictionary(model), options["out"]
    pick = Pick.take(options)
    _say_reading(image, dictionary, pick)
    source = image_to_rebuild(image, dictionary.reading, dictionary.n_channels, pick)
    with image_output(source, image, options) as place:
        how = {**vars(place.store), **options, "progress": Terminal(is_brief=True)}
        rebuilt = dictionary.rebuild(source, stride, how.pop("url"), **how)
        facts = {}
        if place.path is not None:
            facts = place.write(rebuilt.pixels(source.dtype), source)
    psnr = rebuilt.psnr if math.isfinite(rebuilt.psnr) else None  # JSON has no infinity
    summary = {"share": rebuilt.share, "psnr": psnr, "mse": rebuilt.mse, **facts, "out": out}
    answer(summary, as_json, f"{out}: {rebuilt.line()}, mse {rebuilt.mse:.6g} per pixel")
    return summary


def _check_maps(out: str) -> None:
    """Refuse a name that looks like another kind of file."""
    if Path(out).suffix != MAP_SUFFIX:
        raise DscError(f"out: found {out!r}, need a name that ends in {MAP_SUFFIX}: an OME-Zarr")
