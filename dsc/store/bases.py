"""The basis inside a store: kept whole, since its bits depend on where it was computed."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from dsc.basis import SteerableBasis
from dsc.basis.grid import disk_mask
from dsc.store.store import Store


def basis_variables(basis: SteerableBasis) -> dict[str, NDArray[Any]]:
    """The arrays of a store of patches or of a model that hold a basis."""
    return {
        "basis_matrix": basis.matrix,
        "basis_dual": basis.dual,
        "basis_frequency": basis.frequency,
        "basis_level": basis.level,
    }


def basis_sizes(basis: SteerableBasis) -> dict[str, int]:
    """The dimensions of these arrays."""
    return {"pixel": basis.n_pixels, "coord": basis.n_coords}


def read_basis(store: Store) -> SteerableBasis:
    """The basis of a store, whose attributes name it (`basis`, `diameter`)."""
    attributes = store.attributes
    diameter = int(attributes["diameter"])
    return SteerableBasis.restore(
        dual=store.read("basis_dual"),
        name=str(attributes["basis"]),
        diameter=diameter,
        mask=disk_mask(diameter),
        frequency=store.read("basis_frequency"),
        matrix=store.read("basis_matrix"),
        level=store.read("basis_level"),
    )
