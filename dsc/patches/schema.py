"""What a store of patches holds."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

from dsc.store import Layout, Variable, basis_schema, register, shard_rows

_PATCH = ("patch",)
_optional = partial(Variable, required=False)
_POSITION = ("image", "y", "x", "label", "rotation")  # 4 bytes a patch each

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


def patch_layout(n_patches: int, chunk: int, variables: Collection[str], n_values: int) -> Layout:
    """How the arrays of a patch set are cut: those of positions together, coordinates with `rest`.

    `variables` are the optional ones that there are; `n_values` counts the coordinates and pixels
    of a patch, which whoever writes a shard of coordinates holds.
    """
    columns = [name for name in _POSITION if name in (*_POSITION[:3], *variables)]
    shards = dict.fromkeys(columns, shard_rows(n_patches, chunk, 4 * len(columns)))
    rows = shard_rows(n_patches, chunk, 4 * (n_values + 1))
    return Layout({"patch": chunk}, {**shards, "coords": rows, "rest": rows})
