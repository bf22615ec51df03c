"""What stores of models, of codes and of checkpoints hold."""

from functools import partial

from dsc.store import Variable, basis_schema, register

_SLOTS = ("patch", "slot")
_raw = partial(Variable, compressed=False)

register(
    "model",
    Variable("atoms", ("atom", "coord"), "float32", "atoms as coordinates, unit norm"),
    Variable(
        "atoms_pixels", ("atom", "y", "x"), "float32", "atoms as images, NaN off the disk",
        required=False,
    ),
    Variable(
        "atoms_channels", ("atom", "y", "x", "channel"), "float32",
        "atoms of several channels as images, NaN off the disk", required=False,
    ),
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
    _raw("coef", _SLOTS, "float32", "coefficient of the rotated atom", types=("float16",)),
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
    Variable(
        "energy", ("problem",), "float64", "mean energy per pixel of the patches", required=False
    ),
    Variable(
        "variation", ("problem",), "float64", "the same about the mean of each", required=False
    ),
    Variable(
        "batch", ("problem",), "int64", "batches of this pass that are done", required=False
    ),
    Variable(
        "sums", ("sum",), "float64",
        "n_patches, pixel_sse, rest, energy and variation of these batches, of each dictionary",
        required=False,
    ),
    Variable(
        "running", ("problem",), "bool", "whether a dictionary is updated online", required=False
    ),
    Variable(
        "normal", ("normal_value",), "float64",
        "running normal matrices of the online dictionaries, real and imaginary parts",
        required=False,
    ),
    Variable("right", ("right_value",), "float64", "their right-hand sides", required=False),
    Variable(
        "idle", ("idle_atom",), "int64", "patches since each atom was last used", required=False
    ),
    Variable("finished", ("problem",), "bool", "whether the final pass has been made"),
    Variable("basis", ("problem",), "int64", "which of the bases a dictionary has"),
    Variable("basis_matrix", ("basis_value",), "float64", "sampled basis functions of all bases"),
    Variable("basis_dual", ("basis_value",), "float64", "dual functions of all bases"),
    Variable("basis_frequency", ("coord",), "int64", "angular frequency of each coordinate"),
    Variable("basis_level", ("coord",), "float64", "fraction of the cut-off of each coordinate"),
)  # fmt: skip
