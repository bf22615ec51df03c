"""What stores hold: a table for each kind, registered by the room that owns it.

The tables feed creation, checks and the attributes of arrays.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass

from dsc.errors import DscError, unknown_choice

FORMAT = 3  # of the stores written here
NARROW = 4  # of those with shards or narrow types, which format 3 does not know
NEWEST = 5  # of texture models of several diameters, which format 4 does not know; newer: refused

_OWNERS = {  # imported when somebody asks for a kind before its room was needed
    "patches": "dsc.patches.schema",
    "model": "dsc.dictionary.schema",
    "codes": "dsc.dictionary.schema",
    "checkpoint": "dsc.dictionary.schema",
    "texture": "dsc.texture.schema",
    "maps": "dsc.tiling.schema",
}
_schemas: dict[str, dict[str, Variable]] = {}


@dataclass(frozen=True)
class Variable:
    """One array of a store, or a group of arrays that are alike."""

    name: str  # its name
    dims: tuple[str, ...]  # names of its dimensions
    dtype: str  # NumPy's name of what it holds
    description: str  # for people: both become attributes of the array
    units: str = ""
    required: bool = True  # whether every store of the kind has it
    compressed: bool = True  # whether zstd pays for its time
    any_type: bool = False  # whether a store may be made with another type than `dtype`
    types: tuple[str, ...] = ()  # others that a store may be made with, in the newest format
    # whether this is a group of any number of such arrays, each of its own size: they are added by
    # `add_group`, and checked when they are read
    group: bool = False


def register(kind: str, *variables: Variable) -> None:
    """Make a kind of store known, with what it holds; to do so again changes nothing."""
    table = {variable.name: variable for variable in variables}
    if _schemas.setdefault(kind, table) != table:
        raise DscError(f"kind: found another table of {kind!r}, need one owner of each kind")


def kinds() -> tuple[str, ...]:
    """All kinds of stores."""
    return tuple(dict.fromkeys((*_OWNERS, *_schemas)))


def schema_of(kind: str) -> dict[str, Variable]:
    """The variables of a kind of store by name."""
    if kind not in kinds():
        raise unknown_choice("kind", kind, kinds())
    if kind not in _schemas:
        importlib.import_module(_OWNERS[kind])
    return _schemas[kind]


def check_variable(kind: str, name: str) -> None:
    """Refuse the name of an array that a kind of store does not have."""
    schema = schema_of(kind)
    first, _, inside = name.partition("/")
    if first not in schema or schema[first].group != bool(inside):
        raise unknown_choice(f"variable of a store of {kind}", name, schema)
