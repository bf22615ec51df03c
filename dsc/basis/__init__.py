"""Disks of pixels, steerable bases on them, and the interpolations they are compared with."""

from dsc.basis.build import (
    BASES,
    annular_basis,
    bessel_basis,
    disk_basis,
    make_basis,
    optimal_basis,
    pixel_basis,
)
from dsc.basis.grid import check_diameter, disk_mask
from dsc.basis.interpolation import rotation_matrix
from dsc.basis.optimal import Options as OptimalOptions
from dsc.basis.optimal import Spectrum, field_of
from dsc.basis.rows import as_rows, bad_values, check_values, row_chunks
from dsc.basis.steerable import SteerableBasis
