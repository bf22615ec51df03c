"""Rotational sparse coding: orthogonal least squares and orthogonal matching pursuit."""

from dsc.pursuit.coder import (
    EMPTY,
    FINER,
    MOST_STILL,
    PURSUITS,
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
from dsc.pursuit.tables import Search, back_tables, packed_order, search_tables, table_bytes
