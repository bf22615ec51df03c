"""Zarr v3 groups that are complete or absent; what is in them is registered by other rooms."""

from dsc.store.bases import basis_schema, basis_sizes, basis_variables, read_basis
from dsc.store.checking import Checkup, check_store
from dsc.store.creation import Layout, add_group, check_free, create, remove_store, reopen
from dsc.store.objects import (
    as_written,
    normalize,
    read_object,
    read_part,
    reported,
    sha256,
    zarr_store,
)
from dsc.store.schema import FORMAT, NARROW, NEWEST, Variable, kinds, register, schema_of
from dsc.store.shards import shard_rows
from dsc.store.store import Store, is_finished, open_dataset, open_store
from dsc.store.store import open_lazily as open  # noqa: A004
from dsc.store.strict import CheckedStore
