"""Class maps: the class at every pixel of an image of any size, tile by tile."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from dsc.errors import DscError, count_problem
from dsc.images import Image
from dsc.store import open_dataset
from dsc.texture.colours import class_colours
from dsc.texture.labelling import NONE, Labeller, Labellers, most_voted
from dsc.texture.model import TextureModel
from dsc.tiling import KIND, VALUES, Output, TileJob, Window, as_image, check_size, map_tiles

if TYPE_CHECKING:
    import xarray

CELL = 64  # pixels across the smallest tile

Labels = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class MapStep:
    """What all tiles share."""

    labellers: Labellers
    half: int  # pixels on each side of one that vote with it

    @property
    def margin(self) -> int:
        """Pixels around a tile that its classes depend on."""
        return self.half + self.labellers.each[0].stride + self.labellers.diameter


def map_tile(window: Window, step: MapStep) -> Labels:
    """(1, y, x) of a tile: 1 + the class of each pixel, 0 for none."""
    found = [near_labels(window, step, labeller) for labeller in step.labellers.each]
    classes = most_voted(found, step.labellers, step.half) + 1
    return np.where(window.missing(), 0, classes)[None]


def near_labels(window: Window, step: MapStep, labeller: Labeller) -> Labels:
    """(y, x) the class of the patch around every pixel of a tile and `half` pixels around it.

    `NONE` where there is none, also beyond the edges of the image and of patches with a missing
    pixel. As `label_map`.
    """
    half = step.half
    side, stride = labeller.basis.diameter, labeller.stride
    places, inside, cut = [], [], []
    for part, size, n, first in zip(
        (window.y, window.x), window.shape, labeller.grid(window.shape), window.origin, strict=True
    ):
        pixels = np.arange(part.start - half, part.stop + half)
        place = (pixels - side // 2 + stride // 2) // stride  # of the patch that is nearest
        ok = (pixels >= 0) & (pixels < size) & (place >= 0) & (place < n)
        if not ok.any():
            return np.full([s.stop - s.start + 2 * half for s in (window.y, window.x)], NONE)
        low, high = int(place[ok].min()), int(place[ok].max())
        places.append(np.where(ok, place - low, 0))
        inside.append(ok)
        cut.append(slice(low * stride - first, high * stride + side - first))
    pixels = np.ascontiguousarray(window.pixels[tuple(cut)])
    missing = np.isnan(pixels)
    known = np.where(missing, np.float32(0), pixels)
    labels, _ = labeller.label_image(Image("tile", None, pixels.shape, known))
    if missing.any():
        patches = sliding_window_view(missing, (side, side))[::stride, ::stride]
        labels = np.where(patches[..., labeller.basis.mask].any(2), NONE, labels)
    return np.where(np.logical_and.outer(*inside), labels[np.ix_(*places)], NONE)


@dataclass(frozen=True)
class CountClasses:
    """(class, y, x) of a map: 1 where a pixel has the class."""

    n_labels: int

    def __call__(self, _: Window, maps: NDArray[Any]) -> NDArray[np.float32]:
        """The measure of a tile."""
        values = 1 + np.arange(self.n_labels)[:, None, None]
        return np.asarray(maps == values, np.float32)


def class_map(
    image: Any,
    model: TextureModel,
    out: str | PathLike[str] | None = None,
    window: int = 1,
    **options: Any,
) -> xarray.DataArray:
    """Which class every pixel of an image belongs to.

    A pixel has the class whose dictionary codes the patch around it best; with a window, the class
    that most pixels of a square around it have. Of several diameters each votes, with as many votes
    as it has pixels.

    Parameters
    ----------
    image
        (y, x) grey values, taken as they are, or the path of an image.
    model
        A fitted texture model, such as `TextureClassifier.model_`.
    out
        Path or URL of a new OME-Zarr, written tile by tile; None keeps the map in memory.
    window
        Pixels across the square that votes, an odd number; 1 is none.
    **options
        overwrite: whether a finished map that is at `out` is replaced; resume: whether the tiles
        of an unfinished one are kept. scheduler, n_workers, memory_limit, patience, tls and
        progress, as in `dsc.learn_many`.

    Returns
    -------
    (y, x) whole numbers: 0 where there is no class (at the rim, half a patch wide, where all is
    constant, and where a pixel of the patch is missing: NaN), else 1 + the place of the class in
    `label_names`. The attributes are `label_names`, their `colors` (hex) and `n_pixels`, how many
    each has. A store has them as the `image-label` of OME-Zarr.
    """
    problem = count_problem("window", window, 1)
    if problem or window % 2 == 0:
        raise DscError(problem or f"window: found {window}, need an odd number of pixels")
    source = as_image(image)
    labellers = model.labellers
    check_size(source, labellers.diameter)
    names = model.label_names
    colors = class_colours(len(names))
    step = MapStep(labellers, window // 2)
    job = TileJob(
        "map the classes",
        map_tile,
        step,
        margin=step.margin,
        channels=("class",),
        pixel_bytes=_pixel_bytes(labellers) + 8 * (len(names) + len(labellers.each)) + 40,
        measure=CountClasses(len(names)),
        missing=True,
        identity=f"{labellers.identity} {window} {names}",
        dtype="uint8" if len(names) < 256 else "uint16",
        ome={"image-label": _image_label(names, colors)},
    )
    done = map_tiles(source, job, Output.take(out, options), **options)
    attributes = {
        "label_names": list(names),
        "colors": ["#" + bytes(color.tolist()).hex() for color in colors],
        "n_pixels": [int(n) for n in done.sums[1:]],
    }
    return _array(done.values, done.store.url if done.store else None).assign_attrs(attributes)


def _array(values: NDArray[Any] | None, url: str | None) -> xarray.DataArray:
    """(y, x) of values in memory, or of a store, whose values are read when asked for."""
    import xarray

    if url is None:
        assert values is not None
        return xarray.DataArray(values[0], dims=("y", "x"))
    return open_dataset(url, KIND)[VALUES][0]


def _pixel_bytes(labellers: Labellers) -> int:
    """Memory for each pixel of a window: its patch, and in the smallest tile the tables, too."""
    tile = np.broadcast_to(np.float32(0), (CELL, CELL))
    grown = [n + labellers.diameter - 1 for n in tile.shape]
    image = Image("tile", None, (grown[0], grown[1]), tile)
    return -(-labellers.task_bytes([image]) // CELL**2)


def _image_label(names: tuple[str, ...], colors: NDArray[np.uint8]) -> dict[str, Any]:
    """The key of a map, as OME-Zarr 0.5 has it: names and colors of values."""
    return {
        "version": "0.5",
        "colors": [{"label-value": 0, "rgba": [0, 0, 0, 0]}]
        + [
            {"label-value": value, "rgba": [*color.tolist(), 255]}
            for value, color in enumerate(colors, 1)
        ],
        "properties": [
            {"label-value": value, "class": name} for value, name in enumerate(names, 1)
        ],
    }
