"""Everything that reads or writes a picture: formats, inputs, conversion, tiles, cache."""

from dsc.images.cache import CACHE, CACHE_BYTES, DECODED
from dsc.images.convert import to_grey
from dsc.images.formats import NUMPY, SUFFIXES, probe_array, take_plane
from dsc.images.image import Inputs, Picture, open_pictures, picture_problem, scan_inputs
from dsc.images.inputs import is_zarr
from dsc.images.planes import Plane
from dsc.images.tiles import Tile, tiles_of
from dsc.images.write import check_new_file, write_picture

__all__ = [
    "CACHE",
    "CACHE_BYTES",
    "DECODED",
    "NUMPY",
    "SUFFIXES",
    "Inputs",
    "Picture",
    "Plane",
    "Tile",
    "check_new_file",
    "is_zarr",
    "open_pictures",
    "picture_problem",
    "probe_array",
    "scan_inputs",
    "take_plane",
    "tiles_of",
    "to_grey",
    "write_picture",
]
