"""The basis inside a store: kept whole, since its bits depend on where it was computed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from dsc.basis import SteerableBasis, check_diameter, disk_mask
from dsc.store.objects import as_written
from dsc.store.schema import Variable
from dsc.store.store import Store

_VARIABLES = (
    Variable("basis_matrix", ("pixel", "coord"), "float64", "sampled basis functions"),
    Variable(
        "basis_dual", ("pixel", "coord"), "float64",
        "dual functions: coordinates are inner products with these",
    ),
    Variable(
        "basis_frequency", ("coord",), "int64", "angular frequency of each coordinate", "turns"
    ),
    Variable(
        "basis_level", ("coord",), "float64",
        "fraction of the cut-off at which a coordinate comes in",
    ),
)  # fmt: skip


def basis_schema(required: bool) -> tuple[Variable, ...]:
    """The variables that a basis is made of, for the table of a kind of store."""
    return tuple(replace(variable, required=required) for variable in _VARIABLES)


def basis_variables(basis: SteerableBasis) -> dict[str, NDArray[Any]]:
    """The arrays of a store of patches or of a model that hold a basis, with all channels."""
    return {v.name: basis.array(v.name.removeprefix("basis_")) for v in _VARIABLES}


def basis_sizes(basis: SteerableBasis) -> dict[str, int]:
    """The dimensions of these arrays."""
    return {"pixel": basis.n_pixels, "coord": basis.n_coords}


def read_basis(
    store: Store, diameter: int | None = None, place: Callable[[str], str] = str
) -> SteerableBasis:
    """The basis of a store, whose attributes name it (`basis`, `diameter`).

    Of several the one of a diameter; `place` says where an array of it is.
    """
    with as_written(store.url, "a basis"):
        name = str(store.attributes["basis"])
        diameter = check_diameter(store.attributes["diameter"] if diameter is None else diameter)
        arrays = {v.name.removeprefix("basis_"): store.read(place(v.name)) for v in _VARIABLES}
        mask = disk_mask(diameter)
        return SteerableBasis.restore(**arrays, name=name, diameter=diameter, mask=mask)
