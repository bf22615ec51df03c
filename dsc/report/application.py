"""The page of a command with images in and images out: what came in, what went out, how much."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsc.dictionary import load_dictionary
from dsc.errors import DscError
from dsc.images import ALL, to_grey
from dsc.maps import CROSSING
from dsc.report.images import direction_wheel, grey, paint_directions, signed, strength_of
from dsc.report.render import Page, Place
from dsc.report.views import View, view_image, view_maps
from dsc.tiling import ANY, PICKED, Pick
from dsc.version import __version__

MOST_CHANNELS = 11  # feature maps that are shown
HOLE = (255, 0, 255)  # the color of a missing pixel

Floats = NDArray[np.floating]
Image = tuple[NDArray[np.uint8], str, str]  # pixels, what it is, caption
Figure = tuple[str, str, str]  # what it is, its place in the facts, and how it is written


@dataclass(frozen=True)
class Application:
    """What a command did: its name, its options by name, what it answered, and its words."""

    name: str
    options: dict[str, Any]
    summary: dict[str, Any]
    words: str


@dataclass(frozen=True, eq=False)
class _Content:
    """What a page says of an application."""

    title: str
    lesson: str  # what the reader sees in the images
    facts: dict[str, Any]
    key: list[Figure]  # the facts that come first
    images: list[Image]
    kind: str = ""  # of the row of images


def check_application(page: str, name: str, overwrite: bool) -> None:
    """Refuse, before any work, a page that could not be written, or is there already."""
    place = Place.page(page)
    place.check(_kind(name))
    if place.html.exists() and not overwrite:
        raise DscError(f"{page}: exists already: choose another --report, or give --overwrite")


def write_application(page: str, application: Application) -> dict[str, Any]:
    """Write the page of an application that is done, and its numbers beside it."""
    view = _view_of(application.options)
    content = _DESCRIBERS[application.name](view, application)
    facts = {
        "kind": _kind(application.name),
        **{name: _plain(value) for name, value in content.facts.items()},
        "size": {"y": view.shape[0], "x": view.shape[1], "step": view.step},
        "files_used": {
            name: str(application.options[name])
            for name in ("image", "model", "mask", "out")
            if application.options.get(name)
        },
        "command": application.words,
        "dsc": __version__,
    }
    shown = {
        "key": content.key,
        "entries": content.images,
        "lesson": content.lesson,
        "row": content.kind,
    }
    return Place.page(page).write(Page("application.html", content.title, facts, images=shown))


def _view_of(options: dict[str, Any]) -> View:
    """The image of a command, read as it was."""
    model = options.get("model")
    reading = load_dictionary(model).reading if model else {}
    picked = {name: options[name] for name in PICKED if name in options}
    return view_image(options["image"], Pick(**picked), reading)


def _kind(name: str) -> str:
    return f"dsc {name}"


def _plain(value: Any) -> Any:
    """A value for JSON, which has no infinity."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _restored(before: View, application: Application) -> tuple[Floats, Floats, tuple[float, float]]:
    """What came in, what went out, in the same shape and span, and the span that is drawn."""
    first = before.pixels
    after = view_image(application.options["out"], ANY if before.is_color else Pick(ALL))
    second = after.pixels
    if first.ndim != second.ndim:
        first, second = (to_grey(np.asarray(one, np.float32)) for one in (first, second))
    low, high = before.span
    if levels := application.summary.get("levels"):  # of a PNG of floats
        second = levels[0] + (levels[1] - levels[0]) * second
    if first.shape != second.shape:
        raise DscError(
            f"{application.options['out']}: found {second.shape}, need {first.shape}, as the image"
        )
    return first, second, (low, high)


def _describe_denoise(view: View, application: Application) -> _Content:
    before, after, span = _restored(view, application)
    given, summary = application.options.get("sigma"), application.summary
    sigma = summary.get("sigma", given)
    facts = {
        "share": summary["share"],
        "removed": summary["removed"],
        "sigma": sigma if sigma is not None else "estimated",
        "is_given": given is not None,
        "seconds": summary["seconds"],
    }
    return _Content(
        "Noise removed",
        "Patches are coded only down to the level of the noise: structure is like atoms, noise is "
        "not. What was removed should look like noise, and show no edges.",
        facts,
        [
            ("of the energy removed", "share", ".2%"),
            ("removed, standard deviation", "removed", ".4g"),
            ("σ of the noise" + (", given" if given is not None else ""), "sigma", ".4g"),
            ("seconds", "seconds", ".1f"),
        ],
        [
            (grey(before, *span), "the image with noise", "before"),
            (grey(after, *span), "the image without noise", "after"),
            (signed(before - after), "what was removed", "removed; zero is mid-grey"),
        ],
    )


def _describe_inpaint(view: View, application: Application) -> _Content:
    before, after, span = _restored(view, application)
    missing = np.isnan(before).reshape(*before.shape[:2], -1).any(axis=2)
    if mask := application.options.get("mask"):
        marked = view_image(mask).pixels
        missing |= (marked if marked.ndim == 2 else marked.max(axis=2)) != 0
    holes = np.atleast_3d(grey(before, *span))
    holes = np.array(np.broadcast_to(holes, (*before.shape[:2], 3)))
    holes[missing] = HOLE
    n_missing = application.summary["n_missing"]
    facts = {
        "share": application.summary["share"],
        "missing": n_missing / math.prod(view.shape),
        "n_missing": n_missing,
        "seconds": application.summary["seconds"],
    }
    return _Content(
        "Missing pixels filled",
        "Atoms are fitted to the pixels that are there, and say what is likely in the holes. "
        "Known pixels stay as they are.",
        facts,
        [
            ("energy left beside the holes", "share", ".2%"),
            ("of the pixels missing", "missing", ".2%"),
            ("pixels filled", "n_missing", ","),
            ("seconds", "seconds", ".1f"),
        ],
        [
            (holes, "the image with holes", "before; what is missing is magenta"),
            (grey(after, *span), "the image without holes", "after"),
        ],
    )


def _describe_reconstruct(view: View, application: Application) -> _Content:
    before, after, span = _restored(view, application)
    summary = application.summary
    return _Content(
        "An image rebuilt from its atoms",
        "Every patch is a sum of a few atoms at their angles, and overlapping patches are "
        "averaged. What is left is what the dictionary has no atoms for.",
        {name: summary[name] for name in ("share", "psnr", "mse")},
        [
            ("energy left", "share", ".2%"),
            ("PSNR, dB", "psnr", ".2f"),
            ("error per pixel (mse)", "mse", ".4g"),
        ],
        [
            (grey(before, *span), "the image", "the image"),
            (grey(after, *span), "the image rebuilt", "rebuilt"),
            (signed(before - after), "what is left", "what is left; zero is mid-grey"),
        ],
    )


def _describe_orientation(view: View, application: Application) -> _Content:
    names = application.summary["maps"]
    maps = dict(zip(names, view_maps(application.options["out"], range(len(names))), strict=True))
    known = ~np.isnan(maps["energy"])
    energy = maps["energy"].astype(np.float64)
    total = float(energy[known].sum())
    crossing = None
    if "energy2" in maps:
        crossing = float((maps["energy2"] > CROSSING * energy)[known].mean())
    coherent = float((maps["coherence"] * energy)[known].sum())
    facts = {
        "share": application.summary["share"],
        "coherence": coherent / total if total else 0.0,
        "crossing": crossing,
        "seconds": application.summary["seconds"],
    }
    key = [
        ("energy of patches left", "share", ".2%"),
        ("mean coherence, by energy", "coherence", ".2f"),
    ]
    images = [
        (grey(view.pixels, *view.span), "the image", "the image"),
        (
            paint_directions(maps["angle"], strength_of(maps)),
            "the direction of structures in color",
            "which way structures run",
        ),
    ]
    if crossing is not None:
        key.append(("of the pixels, two strong directions", "crossing", ".1%"))
        second = {"energy": maps["energy2"], "coherence": np.ones(energy.shape)}
        painted = paint_directions(maps["angle2"], strength_of(second))
        images.append((painted, "the second direction in color", "the second one, where two cross"))
    images.append((direction_wheel(), "key: the color of each direction", "key: a line this way"))
    return _Content(
        "Which way structures run",
        "A code says at which angle an atom was used, so the codes around a pixel say which way "
        "the structure there runs. Hue is the direction; dark is where there is none.",
        facts,
        [*key, ("seconds", "seconds", ".1f")],
        images,
        "keyed",
    )


def _describe_features(view: View, application: Application) -> _Content:
    names = application.summary["channels"]
    out = application.options["out"]
    some = [c for c, name in enumerate(names) if name.endswith("energy")] or range(len(names))
    means = {c: float(np.nanmean(one)) for c, one in zip(some, view_maps(out, some), strict=True)}
    order = sorted(means, key=lambda channel: -means[channel])[:MOST_CHANNELS]
    images = [(grey(view.pixels, *view.span), "the image", "the image")]
    for channel, one in zip(order, view_maps(out, order), strict=True):
        drawn = grey(one, 0.0, float(np.nanmax(one)) or 1.0)
        images.append((drawn, f"map of {names[channel]}", names[channel]))
    facts = {
        "share": application.summary["share"],
        "n_channels": len(names),
        "n_shown": len(order),
        "pooling": application.options["kind"],
        "seconds": application.summary["seconds"],
    }
    return _Content(
        "Which atoms are at work",
        "Each map says how much of one atom there is around a pixel, whichever way it is rotated. "
        "The strongest are shown, each in its own contrast, white being most.",
        facts,
        [
            ("energy of patches left", "share", ".2%"),
            ("channels", "n_channels", ","),
            ("shown, strongest first", "n_shown", ","),
            ("kind", "pooling", ""),
            ("seconds", "seconds", ".1f"),
        ],
        images,
    )


_DESCRIBERS: dict[str, Callable[[View, Application], _Content]] = {
    "denoise": _describe_denoise,
    "inpaint": _describe_inpaint,
    "orientation": _describe_orientation,
    "features": _describe_features,
    "reconstruct": _describe_reconstruct,
}
