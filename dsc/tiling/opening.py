"""One image of a path, a URL or an array: read as is wanted, or as a dictionary was learned."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dsc.errors import DscError, count_problem, counted
from dsc.images import (
    ALL,
    COLOR_NAMES,
    Channels,
    Image,
    Joined,
    Reading,
    join_channels,
    open_images,
    path_of,
)

N_COLORS = 3
CHANNELS = {2: ("grey", "alpha"), 3: ("red", "green", "blue"), 4: ("red", "green", "blue", "alpha")}


@dataclass(frozen=True)
class Pick:
    """What to read of what holds several images, channels or levels.

    Attributes
    ----------
    channel
        "all", or numbers or names with commas between: they are taken together. By default as the
        dictionary was learned, else all colors.
    level
        Of a pyramid, 0 being the full size. By default as the dictionary was learned.
    page
        Which image of a stack, from 0 on.
    missing_as_fill
        Whether chunks that a Zarr array does not have are its fill value.
    """

    channel: str | None = None
    level: int | None = None
    page: int | None = None
    missing_as_fill: bool = False

    def __post_init__(self) -> None:
        if self.channel is not None and not isinstance(self.channel, str):
            raise DscError(f"channel: found {self.channel!r}, need words, such as '0,2' or 'all'")
        if self.page is not None and (problem := count_problem("page", self.page, 0)):
            raise DscError(problem)

    @staticmethod
    def take(options: dict[str, Any]) -> Pick:
        """Taken out of some options."""
        return Pick(**{name: options.pop(name) for name in PICKED if name in options})


PICKED = tuple(one.name for one in fields(Pick))
ANY = Pick()


def as_image(image: Any, raw: bool = False, wanted: Pick | None = None) -> Image:
    """One image of a path, a URL, an `Image`, or an array (y, x), taken as it is.

    A Zarr array in a folder is as its path.

    A raw array keeps its type, and may have two to four channels, the last of two or four being
    alpha: (y, x, channel); others become grey. Raw planes of three channels are joined as colors.
    An error names what can be wanted, if anything can.
    """
    pick, image = wanted or ANY, path_of(image) or image
    if isinstance(image, Image):
        return _unpicked(image, pick)
    if isinstance(image, str | os.PathLike):
        read = pick
        if raw and pick.channel is None and pick.page is None:
            is_color = len(_planes(image, pick)) == N_COLORS
            read = replace(pick, channel=ALL) if is_color else pick
        planes = _one(_planes(image, read), image, read, wanted is not None)
    elif pick.channel is None:
        return _array_image(image, raw, pick)
    else:
        planes = _array_planes(image, pick.channel, 0, raw, pick)
    return (_whole_of(planes) if raw else None) or join_channels(planes)


def image_for(
    image: Any,
    reading: dict[str, Any],
    n_channels: int = 1,
    pick: Pick = ANY,
    raw: bool = False,
) -> Image:
    """One image, read as the images were that a dictionary was learned from, unless told otherwise.

    `reading` is that of the dictionary (channel, level, ranges). Arrays (y, x) or (y, x, channel)
    are taken as they are, but for the ranges. A raw one has the colors that it has, and no ranges.
    """
    image = path_of(image) or image
    channel = pick.channel or reading.get("channel") or (ALL if n_channels > 1 else None)
    if isinstance(image, Image):  # which was read already
        source = _unpicked(image, pick)
        if raw:
            return source
        planes = list(source.source.parts) if isinstance(source.source, Joined) else [source]
        found = [None if one.reading.range is None else list(one.reading.range) for one in planes]
        wanted = [list(one) for one in reading["ranges"]] if "ranges" in reading else None
        if wanted is not None and found != wanted:
            raise DscError(
                f"{image.name}: was opened with other ranges than the images of the dictionary: "
                "give its path"
            )
        reading = {}
    elif isinstance(image, str | os.PathLike):
        level = reading.get("level") if pick.level is None else pick.level
        read = replace(pick, channel=channel, level=level)
        if raw:
            return as_image(image, True, read)
        planes = _one(_planes(image, read), image, read)
    elif channel is None:
        planes = [_array_image(image, raw, pick)]
    else:
        planes = _array_planes(image, channel, 0 if pick.channel else n_channels, raw, pick)
    if raw:
        return _whole_of(planes) or join_channels(planes)
    if len(planes) != n_channels:
        raise DscError(
            f"{planes[0].name}: found {counted(len(planes), 'channel')}, need {n_channels}, as the "
            "dictionary has: say which (--channel), or learn from images like this one"
        )
    if "ranges" in reading:
        planes = [
            replace(plane, reading=plane.reading._replace(range=(one[0], one[1])))
            for plane, one in zip(planes, reading["ranges"], strict=True)
        ]
    return join_channels(planes)


def n_colors(n_channels: int) -> int:
    """How many channels are colors: without alpha."""
    return n_channels - (n_channels in (2, 4))


def channel_names(image: Image) -> tuple[str, ...]:
    """Names of what a pixel of a raw image has, alpha too."""
    if isinstance(image.source, Joined):
        names = [part.name.rpartition(" channel ")[2] for part in image.source.parts]
        if sorted(names) == [str(number) for number in range(N_COLORS)]:
            return tuple(COLOR_NAMES[int(name)] for name in names)
        return tuple(f"channel {name}" for name in names)
    found = image.n_colors
    return CHANNELS.get(found, ("grey",))


def has_alpha(image: Image) -> bool:
    """Whether the last channel of a raw image is no color."""
    return not isinstance(image.source, Joined) and image.n_colors in (2, 4)


def alpha_of(image: Image) -> Image | None:
    """The alpha of an image all of whose colors are joined."""
    if not isinstance(image.source, Joined):
        return None
    whole = _whole_of(list(image.source.parts))
    if whole is None or not has_alpha(whole):
        return None
    return replace(whole, reading=Reading(whole.n_colors - 1))


def _whole_of(planes: list[Image]) -> Image | None:
    """The image with alpha of which planes are all the colors, in any order."""
    first = planes[0]
    if first.reading.channel is None or first.n_channels != len(planes):
        return None
    name = first.name.rpartition(" channel ")[0] or first.name
    whole = replace(first, name=name, reading=Reading(), n_channels=1)
    found = whole.n_colors
    is_all = sorted(one.reading.channel or 0 for one in planes) == list(range(n_colors(found)))
    return whole if is_all and found in CHANNELS else None


def _unpicked(image: Image, pick: Pick) -> Image:
    """An image that is open already, of which nothing can be chosen."""
    if pick != ANY:
        raise DscError(
            f"{image.name}: found an open image beside {', '.join(PICKED)}, need its path with them"
        )
    return image


def _planes(image: Any, pick: Pick) -> list[Image]:
    how: dict[str, Any] = {"level": pick.level or 0, "missing_as_fill": pick.missing_as_fill}
    return open_images(image, channel=pick.channel, **how)


def _one(planes: list[Image], image: Any, pick: Pick, has_options: bool = True) -> list[Image]:
    """The channels of the one image that is meant."""
    n_channels = planes[0].n_channels
    n_images = len(planes) // n_channels
    if pick.page is not None and pick.page >= n_images:
        raise DscError(f"page: found {pick.page}, need at most {n_images - 1}: those of {image}")
    if pick.page is None and n_images > 1:
        remedy = "say which one (--page), or if they are channels, which channel (--channel)"
        if not has_options:
            remedy = "take one of them out"
        raise DscError(f"{image}: found {n_images} images, need one: {remedy}")
    first = (pick.page or 0) * n_channels
    return planes[first : first + n_channels]


def _array_planes(
    array: ArrayLike, channel: str, n_channels: int, raw: bool, pick: Pick
) -> list[Image]:
    """The channels of an array (y, x) or (y, x, channel), as it is: all, or those that are named.

    An array of as many channels as are needed has them already.
    """
    values = _values_of(array, pick)
    if values.ndim not in (2, 3) or not values.size or values.dtype.kind not in "biuf":
        raise DscError(f"image: found shape {values.shape}, need (y, x) or (y, x, channel)")
    shape = (values.shape[0], values.shape[1])
    numbers = values if raw else _as_floats(values)
    if values.ndim == 2:
        return [Image("image", None, shape, numbers)]
    n_found = values.shape[2]
    is_color = n_found in CHANNELS
    known = Channels(1, n_found, COLOR_NAMES) if is_color else Channels(n_found, 1)
    chosen = list(range(n_found)) if n_found == n_channels else known.chosen(channel)
    name, n = "image channel", len(chosen)
    return [Image(f"{name} {k}", None, shape, numbers, Reading(k), n) for k in chosen]


def _array_image(array: ArrayLike, raw: bool, pick: Pick) -> Image:
    values = _values_of(array, pick)
    is_color = values.ndim == 3 and values.shape[2] in CHANNELS
    if not (values.ndim == 2 or is_color) or not values.size:
        remedy = ": take one of its channels, or say which (--channel)" * (values.ndim == 3)
        raise DscError(
            f"image: found shape {values.shape}, need (y, x), or (y, x, color) with 2 to 4 "
            f"channels{remedy}"
        )
    if values.dtype.kind not in "biuf":
        raise DscError(f"image: found values of type {values.dtype}, need real numbers")
    shape = (values.shape[0], values.shape[1])
    return Image("image", None, shape, values if raw else _as_floats(values))


def _values_of(array: ArrayLike, pick: Pick) -> NDArray[Any]:
    if pick.level or pick.page is not None:
        raise DscError("image: found an array beside level or page, need the path of what has them")
    return np.asarray(array)


def _as_floats(values: NDArray[Any]) -> NDArray[np.float32]:
    with np.errstate(over="ignore"):
        return values.astype(np.float32, copy=False)
