"""What stores of models and of codes hold."""

from dsc.store import Variable, basis_schema, register

register(
    "model",
    Variable("atoms", ("atom", "coord"), "float32", "atoms as coordinates, unit norm"),
    Variable("atoms_pixels", ("atom", "y", "x"), "float32", "atoms as pictures, NaN off the disk"),
    Variable(
        "history",
        ("iteration",),
        "float64",
        "mean squared error per pixel of the disk before each iteration, and at the end",
    ),
    Variable("count", ("atom",), "int64", "uses of each atom in the last pass"),
    *basis_schema(required=True),
    Variable("mask", ("y", "x"), "bool", "True inside the disk"),
)

register(
    "codes",
    Variable("atom", ("patch", "slot"), "uint16", "atom in a slot; 65535 is an empty slot"),
    Variable("angle", ("patch", "slot"), "uint16", "angle of the atom, in steps of the angle grid"),
    Variable(
        "coef", ("patch", "slot"), "float32", "coefficient of the turned atom", compressed=False
    ),
    Variable(
        "error", ("patch",), "float32", "energy of the residual in coordinates", compressed=False
    ),
    Variable(
        "rest",
        ("patch",),
        "float32",
        "energy of the patch outside the span of the basis",
        compressed=False,
    ),
)
