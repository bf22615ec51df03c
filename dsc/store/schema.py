"""What a store holds: one table that feeds creation, checks and the attributes of arrays."""

from __future__ import annotations

from dataclasses import dataclass

from dsc.errors import unknown_choice

FORMAT = 1  # of the stores written here; newer ones are refused


@dataclass(frozen=True)
class Variable:
    """One array of a store.

    Attributes
    ----------
    name
        Its name; pictures are numbered below theirs.
    dims
        Names of its dimensions.
    dtype
        NumPy's name of what it holds.
    description, units
        For people: both become attributes of the array.
    required
        Whether every store of the kind has it.
    compressed
        Whether zstd is worth its time.
    """

    name: str
    dims: tuple[str, ...]
    dtype: str
    description: str
    units: str = ""
    required: bool = True
    compressed: bool = True


def _basis(required: bool) -> tuple[Variable, ...]:
    """The arrays that a basis is made of, so that its bits need not be computed again."""
    return (
        Variable(
            "basis_matrix",
            ("pixel", "coord"),
            "float64",
            "sampled basis functions",
            required=required,
        ),
        Variable(
            "basis_dual",
            ("pixel", "coord"),
            "float64",
            "dual functions: coordinates are inner products with these",
            required=required,
        ),
        Variable(
            "basis_frequency",
            ("coord",),
            "int64",
            "angular frequency of each coordinate",
            "turns",
            required,
        ),
        Variable(
            "basis_level",
            ("coord",),
            "float64",
            "fraction of the cut-off at which a coordinate comes in",
            required=required,
        ),
    )


_PATCHES = (
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
    *_basis(required=False),
)

_MODEL = (
    Variable("atoms", ("atom", "coord"), "float32", "atoms as coordinates, unit norm"),
    Variable("atoms_pixels", ("atom", "y", "x"), "float32", "atoms as pictures, NaN off the disk"),
    Variable(
        "history",
        ("iteration",),
        "float64",
        "mean squared error per pixel of the disk before each iteration, and at the end",
    ),
    Variable("count", ("atom",), "int64", "uses of each atom in the last pass"),
    *_basis(required=True),
    Variable("mask", ("y", "x"), "bool", "True inside the disk"),
)

_CODES = (
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

_TEXTURE = (
    Variable("atoms", ("label", "atom", "coord"), "float32", "atoms of each class, unit norm"),
    Variable(
        "atoms_pixels",
        ("label", "atom", "y", "x"),
        "float32",
        "atoms of each class as pictures, NaN off the disk",
    ),
    Variable(
        "history",
        ("label", "iteration"),
        "float64",
        "mean squared error per pixel of the disk before each iteration, and at the end",
    ),
    Variable("atom_count", ("label", "atom"), "int64", "uses of each atom in the last pass"),
    *_basis(required=True),
    Variable("mask", ("y", "x"), "bool", "True inside the disk"),
    Variable(
        "image_count",
        ("image", "label", "atom"),
        "int32",
        "patches of each training picture that an atom of a class codes best",
    ),
    Variable("image_label", ("image",), "int32", "class of each training picture"),
)

_CHECKPOINT = (
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

PICTURES = Variable(
    "pictures", ("image", "y", "x"), "float32", "consecutive pictures of one size, grey values"
)

SCHEMAS: dict[str, dict[str, Variable]] = {
    kind: {variable.name: variable for variable in variables}
    for kind, variables in (
        ("patches", _PATCHES),
        ("model", _MODEL),
        ("codes", _CODES),
        ("checkpoint", _CHECKPOINT),
        ("texture", _TEXTURE),
    )
}


def schema_of(kind: str) -> dict[str, Variable]:
    """The variables of a kind of store by name."""
    if kind not in SCHEMAS:
        raise unknown_choice("kind", kind, SCHEMAS)
    return SCHEMAS[kind]


def variable_of(kind: str, name: str) -> Variable:
    """The table's entry for an array; the numbered arrays below `pictures` share one."""
    schema = schema_of(kind)
    if kind == "patches" and name.startswith(f"{PICTURES.name}/"):
        return PICTURES
    if name not in schema:
        raise unknown_choice(f"variable of a store of {kind}", name, schema)
    return schema[name]
