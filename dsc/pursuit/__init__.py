"""Rotational orthogonal matching pursuit."""

from dsc.pursuit.coder import (
    EMPTY,
    MOST_STILL,
    Coder,
    Codes,
    check_angles,
    check_atoms,
    decode,
    encode,
)
from dsc.pursuit.kernels import (
    ANGLES,
    BLOCK,
    NO_GAIN,
    correlate,
    scores,
    take_patch,
    to_columns,
)
from dsc.pursuit.tables import Search, back_tables, packed_order, search_tables

__all__ = [
    "ANGLES",
    "BLOCK",
    "EMPTY",
    "MOST_STILL",
    "NO_GAIN",
    "Coder",
    "Codes",
    "Search",
    "back_tables",
    "check_angles",
    "check_atoms",
    "correlate",
    "decode",
    "encode",
    "packed_order",
    "scores",
    "search_tables",
    "take_patch",
    "to_columns",
]
