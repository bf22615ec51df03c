"""Compiled loops for restored images. A patch's bits depend on the patch alone."""

from __future__ import annotations

import numpy as np
from numba import njit

_compile = njit(cache=True, nogil=True, error_model="numpy")
# sums over the coordinates of one patch may be split over lanes, the same way for every patch
_compile_sums = njit(
    cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"}
)
DEPENDENT = np.float32(1e-6)  # energy of what is left of an atom that depends on the others


@_compile_sums
def _dot(a, b):
    total = np.float32(0)
    for c in range(a.size):
        total += a[c] * b[c]
    return total


@_compile_sums
def _add(factor, a, out):
    for c in range(a.size):
        out[c] += factor * a[c]


@_compile
def filter_patches(noisy, guide, atom, angle, rotated, out, degrees):
    """out_p = Σ_j g_j ⟨y_p, q_j⟩ q_j with g_j = b_j² / (b_j² + 1) and b_j = ⟨x_p, q_j⟩.

    y are noisy coordinates (patch, coord) with noise of variance one, x those of the guide, q the
    chosen atoms made orthonormal one after the other; `rotated` is (atom, angle, coord). Degrees
    of freedom (patch,): Σ g_j².
    """
    n_patches, n_coords = noisy.shape
    q = np.empty((atom.shape[1], n_coords), np.float32)
    for p in range(n_patches):
        out[p, :] = 0
        degrees[p] = 0
        found = 0
        for j in range(atom.shape[1]):
            if atom[p, j] >= rotated.shape[0]:  # an empty slot
                break
            new = q[found]
            new[:] = rotated[atom[p, j], angle[p, j]]
            for _ in range(2):  # twice is enough
                for i in range(found):
                    _add(-_dot(new, q[i]), q[i], new)
            energy = _dot(new, new)
            if energy < DEPENDENT:
                continue
            new *= np.float32(1) / np.sqrt(energy)
            b = _dot(guide[p], new)
            gain = b * b / (b * b + np.float32(1))
            _add(gain * _dot(noisy[p], new), new, out[p])
            degrees[p] += gain * gain
            found += 1


@_compile
def add_disks(pixels, weight, first, offsets, total, cover):
    """Add weighted disks (patch, pixel) to an image at rows `first`, one disk at every column.

    Each pixel gets its disks in the order of their rows and columns, whatever the image's size.
    """
    n_columns = total.shape[1] - offsets[:, 1].max()
    for p in range(pixels.shape[0]):
        top, left = first + p // n_columns, p % n_columns
        for i in range(offsets.shape[0]):
            y, x = top + offsets[i, 0], left + offsets[i, 1]
            total[y, x] += weight[p] * pixels[p, i]
            cover[y, x] += weight[p]
