"""What a store of maps holds: an OME-Zarr of one level."""

from dsc.store import Variable, register

KIND = "maps"
VALUES = "0"  # the name of the full size in an OME-Zarr
MEASURES = "measures"  # of maps that are finished after they were measured: see `TileJob.finish`
MEANS = "image_mean"

register(
    KIND,
    Variable(
        MEASURES,
        ("measure", "row", "column"),
        "float64",
        "sums, least and largest values of the measures of each tile",
        required=False,
    ),
    Variable(MEANS, ("c",), "float64", "mean of each map over the whole image", required=False),
    Variable(  # the last to be made: a store that has it has all it needs
        VALUES, ("c", "y", "x"), "float32", "maps of an image, one per channel", any_type=True
    ),
)
