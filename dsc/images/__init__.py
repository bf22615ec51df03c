"""Everything that reads or writes an image: formats, inputs, conversion, tiles, cache."""

from dsc.images.cache import CACHE, CACHE_BYTES, DECODED
from dsc.images.convert import as_whole, to_dtype, to_grey
from dsc.images.formats import NUMPY, SUFFIXES, probe_array, take_plane
from dsc.images.image import (
    Image,
    Inputs,
    Joined,
    image_problem,
    join_channels,
    open_images,
    scan_inputs,
)
from dsc.images.inputs import is_zarr
from dsc.images.planes import PixelSize, Plane, path_of
from dsc.images.reading import (
    ALL,
    COLOR_NAMES,
    Channels,
    Range,
    Reading,
    ReadOptions,
    check_range,
    said,
)
from dsc.images.tiles import Tile, tiles_of
from dsc.images.write import check_writable, new_file, png_span, write_pixels
