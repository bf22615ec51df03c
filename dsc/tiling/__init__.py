"""Image in, maps out: one function applied tile by tile, in memory or into an OME-Zarr."""

from dsc.tiling import schema as _schema
from dsc.tiling.machine import Tiled, TileJob, map_tiles
from dsc.tiling.opening import (
    ANY,
    PICKED,
    Pick,
    alpha_of,
    as_image,
    channel_names,
    has_alpha,
    image_for,
)
from dsc.tiling.output import Output
from dsc.tiling.schema import KIND, VALUES
from dsc.tiling.windows import Window, check_size, cut_window
