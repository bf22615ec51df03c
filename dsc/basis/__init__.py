"""Disks of pixels, steerable bases on them, and the interpolations they are compared with."""

from dsc.basis.build import BASES, annular_basis, disk_basis, make_basis, pixel_basis
from dsc.basis.interpolation import rotation_matrix
from dsc.basis.steerable import SteerableBasis

__all__ = [
    "BASES",
    "SteerableBasis",
    "annular_basis",
    "disk_basis",
    "make_basis",
    "pixel_basis",
    "rotation_matrix",
]
