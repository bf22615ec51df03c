"""`PatchSource`: the one way in which patches are read, wherever they come from."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from dsc.basis import SteerableBasis
from dsc.errors import DscError

ROWS = 4096  # patches cut and projected at a time

Floats = NDArray[np.float32]
Fill = Callable[[int, int, Floats], None]  # first patch, last one, (patch, pixel) to be written

_local = threading.local()


class PatchSource(Protocol):
    """Patches with numbers from 0 on.

    A patch has the same bits whichever span it is read with, and in whichever part.
    """

    @property
    def n_patches(self) -> int:
        """Patches of the whole set."""

    @property
    def diameter(self) -> int:
        """Pixels across a patch."""

    @property
    def center(self) -> bool:
        """Whether the mean of the disk's pixels is subtracted."""

    @property
    def unit(self) -> bool:
        """Whether patches are divided by their norms."""

    @property
    def fingerprint(self) -> str:
        """SHA-256 of all that defines the patches."""

    @property
    def label_names(self) -> tuple[str, ...]:
        """Names of the classes, empty if there are none."""

    def labels(self, start: int, stop: int) -> NDArray[np.int32] | None:
        """(patch,) class of each patch, None if there are no classes."""

    def part(self, start: int, stop: int) -> Self:
        """What a task needs to read these patches: small to send, with the same numbers."""

    def pixels(self, start: int, stop: int) -> Floats:
        """(patch, pixel) the disks, centered and scaled."""

    def read(self, basis: SteerableBasis, start: int, stop: int) -> Floats:
        """(patch, coord) coordinates."""

    def read_with_rest(self, basis: SteerableBasis, start: int, stop: int) -> tuple[Floats, Floats]:
        """Coordinates, and the energy outside the span of the basis: (patch, coord), (patch,)."""


def check_span(start: int, stop: int, first: int, last: int) -> None:
    """Refuse to read patches that a source or a part of it does not have."""
    if not first <= start <= stop <= last:
        raise DscError(f"patches: found {start} to {stop}, need a part of {first} to {last}")


def check_basis(basis: SteerableBasis, diameter: int) -> None:
    """Refuse a basis of another diameter."""
    if basis.diameter != diameter:
        raise DscError(
            f"basis: found diameter {basis.diameter}, need {diameter}, that of the patches"
        )


def project(
    fill: Fill, basis: SteerableBasis, start: int, stop: int, with_rest: bool
) -> tuple[Floats, Floats]:
    """Coordinates (and rest) of patches from their pixels, a few rows at a time."""
    if stop - start <= ROWS:
        return _project_rows(fill, basis, start, stop, with_rest)
    coords = np.empty((stop - start, basis.n_coords), np.float32)
    rest = np.empty(stop - start if with_rest else 0, np.float32)
    for begin in range(start, stop, ROWS):
        end = min(begin + ROWS, stop)
        rows = slice(begin - start, end - start)
        coords[rows], part = _project_rows(fill, basis, begin, end, with_rest)
        if with_rest:
            rest[rows] = part
    return coords, rest


def _project_rows(
    fill: Fill, basis: SteerableBasis, start: int, stop: int, with_rest: bool
) -> tuple[Floats, Floats]:
    pixels = _scratch(stop - start, basis.n_pixels)
    fill(start, stop, pixels)
    if with_rest:
        return basis.project_with_rest(pixels)
    return basis.project(pixels), np.empty(0, np.float32)


def _scratch(n_rows: int, n_pixels: int) -> Floats:
    """Rows to be written over, one set per thread: fresh memory costs as much as cutting."""
    buffer: Floats | None = getattr(_local, "buffer", None)
    if buffer is None or buffer.size < n_rows * n_pixels:
        buffer = _local.buffer = np.empty(ROWS * n_pixels, np.float32)
    return buffer[: n_rows * n_pixels].reshape(n_rows, n_pixels)
