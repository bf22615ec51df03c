"""Rotational sparse coding: orthogonal least squares and orthogonal matching pursuit."""

from dsc.pursuit.coder import (
    EMPTY,
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
from dsc.pursuit.tables import (
    MOST_STILL,
    Search,
    back_tables,
    coder_bytes,
    packed_order,
    search_tables,
)
