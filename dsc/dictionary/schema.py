"""What stores of models and of codes hold."""

from functools import partial

from dsc.store import Variable, basis_schema, register

_SLOTS = ("patch", "slot")
_raw = partial(Variable, compressed=False)

register(
    "model",
    Variable("atoms", ("atom", "coord"), "float32", "atoms as coordinates, unit norm"),
    Variable("atoms_pixels", ("atom", "y", "x"), "float32", "atoms as pictures, NaN off the disk"),
    Variable(
        "history", ("iteration",), "float64",
        "mean squared error per pixel of the disk before each iteration, and at the end",
    ),
    Variable("count", ("atom",), "int64", "uses of each atom in the last pass"),
    *basis_schema(required=True),
    Variable("mask", ("y", "x"), "bool", "True inside the disk"),
)  # fmt: skip

register(
    "codes",
    Variable("atom", _SLOTS, "uint16", "atom in a slot; 65535 is an empty slot"),
    Variable("angle", _SLOTS, "uint16", "angle of the atom, in steps of the angle grid"),
    _raw("coef", _SLOTS, "float32", "coefficient of the turned atom"),
    _raw("error", ("patch",), "float32", "energy of the residual in coordinates"),
    _raw("rest", ("patch",), "float32", "energy of the patch outside the span of the basis"),
)
