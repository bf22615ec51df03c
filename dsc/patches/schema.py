"""What a store of patches holds."""

from dsc.store import Variable, basis_schema, register

register(
    "patches",
    Variable("image", ("patch",), "int32", "number of the picture a patch comes from"),
    Variable("y", ("patch",), "int32", "first row of a patch's window", "pixel"),
    Variable("x", ("patch",), "int32", "first column of a patch's window", "pixel"),
    Variable(
        "label", ("patch",), "int32", "class of a patch, see the attribute label_names", "", False
    ),
    Variable(
        "turn",
        ("patch",),
        "float32",
        "counter-clockwise turn of the patch about its centre",
        "radian",
        False,
    ),
    Variable(
        "coords",
        ("patch", "coord"),
        "float32",
        "coordinates of a patch in the basis stored here",
        required=False,
        compressed=False,
    ),
    Variable(
        "rest",
        ("patch",),
        "float32",
        "energy of a patch outside the span of the basis",
        required=False,
        compressed=False,
    ),
    *basis_schema(required=False),
    Variable(
        "pictures",
        ("image", "y", "x"),
        "float32",
        "consecutive pictures of one size, grey values",
        group=True,
    ),
)
