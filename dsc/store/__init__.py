"""Zarr v3 groups that are complete or absent: patches, models and codes."""

from dsc.store.bases import basis_sizes, basis_variables, read_basis
from dsc.store.create import add_pictures, check_free, create, remove_store
from dsc.store.dataset import open_dataset
from dsc.store.dataset import open_dataset as open  # noqa: A004
from dsc.store.objects import sha256
from dsc.store.schema import FORMAT, SCHEMAS, Variable
from dsc.store.store import Store, is_finished, open_store

__all__ = [
    "FORMAT",
    "SCHEMAS",
    "Store",
    "Variable",
    "add_pictures",
    "basis_sizes",
    "basis_variables",
    "check_free",
    "create",
    "is_finished",
    "open",
    "open_dataset",
    "open_store",
    "read_basis",
    "remove_store",
    "sha256",
]
