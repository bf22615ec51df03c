"""What stores of models, of codes and of checkpoints hold."""

from functools import partial

from dsc.store import Variable, basis_schema, register

_SLOTS = ("patch", "slot")
_raw = partial(Variable, compressed=False)

register(
    "model",
    Variable("atoms", ("atom", "coord"), "float32", "atoms as coordinates, unit norm"),
    Variable("atoms_pixels", ("atom", "y", "x"), "float32", "atoms as images, NaN off the disk"),
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
    _raw("coef", _SLOTS, "float32", "coefficient of the rotated atom"),
    _raw("error", ("patch",), "float32", "energy of the residual in coordinates"),
    _raw("rest", ("patch",), "float32", "energy of the patch outside the span of the basis"),
)

register(
    "checkpoint",
    Variable("atoms", ("value",), "float32", "atoms of all dictionaries, one after the other"),
    Variable("count", ("atom",), "int64", "uses of each atom in the last pass"),
    Variable("history", ("entry",), "float64", "mean squared error per pixel of each pass"),
    Variable("n_atoms", ("problem",), "int64", "atoms of each dictionary"),
    Variable("n_entries", ("problem",), "int64", "passes of each dictionary"),
    Variable("iteration", ("problem",), "int64", "updates done"),
    Variable("rest", ("problem",), "float64", "energy of all patches outside the span"),
    Variable("finished", ("problem",), "bool", "whether the final pass has been made"),
    Variable("basis", ("problem",), "int64", "which of the bases a dictionary has"),
    Variable("basis_matrix", ("basis_value",), "float64", "sampled basis functions of all bases"),
    Variable("basis_dual", ("basis_value",), "float64", "dual functions of all bases"),
    Variable("basis_frequency", ("coord",), "int64", "angular frequency of each coordinate"),
    Variable("basis_level", ("coord",), "float64", "fraction of the cut-off of each coordinate"),
)
