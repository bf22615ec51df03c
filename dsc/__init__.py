"""Dictionaries of image atoms that may appear in any orientation."""

from dsc.basis import SteerableBasis, annular_basis, disk_basis, pixel_basis, rotation_matrix
from dsc.errors import DscError
from dsc.learning import accumulate, random_atoms, solve
from dsc.pursuit import EMPTY, Codes, decode, encode

__version__ = "0.1.0"

__all__ = [
    "EMPTY",
    "Codes",
    "DscError",
    "SteerableBasis",
    "accumulate",
    "annular_basis",
    "decode",
    "disk_basis",
    "encode",
    "pixel_basis",
    "random_atoms",
    "rotation_matrix",
    "solve",
]
