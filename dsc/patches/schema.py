"""What a store of patches holds."""

from functools import partial

from dsc.store import Variable, basis_schema, register

_PATCH = ("patch",)
_optional = partial(Variable, required=False)

register(
    "patches",
    Variable("image", _PATCH, "int32", "number of the image a patch comes from"),
    Variable("y", _PATCH, "int32", "first row of a patch's window", "pixel"),
    Variable("x", _PATCH, "int32", "first column of a patch's window", "pixel"),
    _optional("label", _PATCH, "int32", "class of a patch, see the attribute label_names"),
    _optional(
        "rotation", _PATCH, "float32", "counter-clockwise, about the centre of the patch", "radian"
    ),
    _optional(
        "coords", (*_PATCH, "coord"), "float32", "coordinates of a patch in the basis stored here",
        compressed=False,
    ),
    _optional(
        "rest", _PATCH, "float32", "energy of a patch outside the span of the basis",
        compressed=False,
    ),
    *basis_schema(required=False),
    Variable(
        "images", ("image", "y", "x"), "float32", "consecutive images of one size, grey values",
        group=True,
    ),
)  # fmt: skip
