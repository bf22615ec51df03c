"""What a store of maps holds: an OME-Zarr of one level."""

from dsc.store import Variable, register

KIND = "maps"
VALUES = "0"  # the name of the full size in an OME-Zarr

register(
    KIND,
    Variable(
        VALUES, ("c", "y", "x"), "float32", "maps of an image, one per channel", any_type=True
    ),
)
