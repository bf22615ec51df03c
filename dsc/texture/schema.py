"""What a store of a texture model holds."""

from dataclasses import replace

from dsc.store import Variable, basis_schema, register

MORE = "more_"  # before the names of groups: arrays of all diameters but the first, by diameter

_OF_A_SCALE = (
    Variable("atoms", ("label", "atom", "coord"), "float32", "atoms of each class, unit norm"),
    Variable(
        "atoms_pixels", ("label", "atom", "y", "x"), "float32",
        "atoms of each class as images, NaN off the disk",
    ),
    Variable(
        "history", ("label", "iteration"), "float64",
        "mean squared error per pixel of the disk before each iteration, and at the end",
    ),
    Variable("atom_count", ("label", "atom"), "int64", "uses of each atom in the last pass"),
    *basis_schema(required=True),
    Variable("mask", ("y", "x"), "bool", "True inside the disk"),
)  # fmt: skip
_COUNT = Variable(
    "image_count", ("image", "label", "atom"), "int32",
    "patches of each training image that an atom of a class codes best",
)  # fmt: skip

register(
    "texture",
    *_OF_A_SCALE,
    *(replace(v, name=MORE + v.name, required=False, group=True) for v in (*_OF_A_SCALE, _COUNT)),
    _COUNT,
    Variable("image_label", ("image",), "int32", "class of each training image"),
)
