"""Compiled loops for images."""

from __future__ import annotations

from numba import njit

_compile = njit(cache=True, nogil=True, error_model="numpy")


@_compile
def add_disks(pixels, known, top, stride, dy, dx, total, cover):
    """Add known patches (patch, pixel), `stride` apart from the left, to the image at row `top`."""
    for p in range(pixels.shape[0]):
        if not known[p]:
            continue
        left = p * stride
        for i in range(dy.size):
            total[top + dy[i], left + dx[i]] += pixels[p, i]
            cover[top + dy[i], left + dx[i]] += 1
