"""`PatchSource`: the one way in which patches are read, wherever they come from."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from dsc.basis import SteerableBasis, pixel_basis
from dsc.errors import DscError
from dsc.patches.cut import Cutter
from dsc.patches.disks import disk_pixels
from dsc.show import Card, mosaic, shades

ROWS = 4096  # patches cut and projected at a time
EXAMPLES = 20  # patches on a card

Floats = NDArray[np.float32]

_local = threading.local()


class PatchSource(Protocol):
    """Patches with numbers from 0 on: what learning and coding ask for, and all they know.

    `StoredPatches` and `ArrayPatches` are such sources, and so is anything else with these methods;
    `as_source` takes them all. A patch has the same bits whichever span it is read with, and in
    whichever part.
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
    def n_channels(self) -> int:
        """Channels of a patch."""

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


class PatchReader(ABC):
    """What the sources of this room share: patches are cut and projected a few at a time."""

    @property
    @abstractmethod
    def _cutter(self) -> Cutter:
        """How patches are cut."""

    @abstractmethod
    def _span(self) -> tuple[int, int]:
        """The first patch that may be read, and the one after the last."""

    @abstractmethod
    def _cut(self, start: int, stop: int, out: Floats) -> None:
        """Write the disks of patches to (patch, pixel)."""

    @abstractmethod
    def _stored(
        self, basis: SteerableBasis, names: tuple[str, ...], start: int, stop: int
    ) -> list[Floats]:
        """What need not be computed ("coords", "rest"); empty if it is not there."""

    def card(self) -> Card:
        """Some patches, evenly from all, and the key numbers."""
        start, stop = self._span()
        cutter = self._cutter
        side = cutter.diameter
        prepared = ["mean removed"] * cutter.center + ["norm 1"] * cutter.unit
        numbers = {
            "patches": f"{stop - start:,}",
            "diameter": f"{side} pixels",
            "each": ", ".join(prepared) or "as in the image",
        }
        if cutter.n_channels > 1:
            numbers["channels"] = f"{cutter.n_channels}"
        if stop == start:
            return Card("patches", numbers=numbers)
        chosen = np.unique(np.linspace(start, stop - 1, EXAMPLES).astype(np.int64)).tolist()
        values = np.concatenate([self.pixels(i, i + 1) for i in chosen])
        disks = pixel_basis(side).for_channels(cutter.n_channels).to_image(values)
        image = mosaic(shades(disks, values.min(axis=1), values.max(axis=1)))
        return Card("patches", numbers=numbers, image=image)

    def _repr_html_(self) -> str:
        return self.card().html()

    def pixels(self, start: int, stop: int) -> Floats:
        """(patch, pixel) the disks, centered and scaled."""
        self._check(start, stop)
        cutter = self._cutter
        n_pixels = len(disk_pixels(cutter.diameter)) * cutter.n_channels
        out = np.empty((stop - start, n_pixels), np.float32)
        self._cut(start, stop, out)
        return out

    def read(self, basis: SteerableBasis, start: int, stop: int) -> Floats:
        """(patch, coord) coordinates: stored ones, or from the pixels, with the same bits."""
        self._check(start, stop, basis)
        if stored := self._stored(basis, ("coords",), start, stop):
            return stored[0]
        coords = np.empty((stop - start, basis.n_coords), np.float32)
        for begin, end, pixels in _pieces(start, stop, basis.n_pixels):
            self._cut(begin, end, pixels)
            coords[begin - start : end - start] = basis.project(pixels)
        return coords

    def read_with_rest(self, basis: SteerableBasis, start: int, stop: int) -> tuple[Floats, Floats]:
        """Coordinates, and the energy outside the span of the basis: (patch, coord), (patch,)."""
        self._check(start, stop, basis)
        if stored := self._stored(basis, ("coords", "rest"), start, stop):
            return stored[0], stored[1]
        coords = np.empty((stop - start, basis.n_coords), np.float32)
        rest = np.empty(stop - start, np.float32)
        for begin, end, pixels in _pieces(start, stop, basis.n_pixels):
            self._cut(begin, end, pixels)
            rows = slice(begin - start, end - start)
            coords[rows], rest[rows] = basis.project_with_rest(pixels)
        return coords, rest

    def _check(self, start: int, stop: int, basis: SteerableBasis | None = None) -> None:
        """Refuse patches that are not there, and a basis of another diameter."""
        first, last = self._span()
        if not first <= start <= stop <= last:
            raise DscError(f"patches: found {start} to {stop}, need a part of {first} to {last}")
        diameter, n_channels = self._cutter.diameter, self._cutter.n_channels
        if basis is not None and basis.diameter != diameter:
            raise DscError(
                f"basis: found diameter {basis.diameter}, need {diameter}, that of the patches"
            )
        if basis is not None and basis.n_channels != n_channels:
            raise DscError(
                f"basis: found {basis.n_channels} channels, need {n_channels}, as the patches have"
            )


def _pieces(start: int, stop: int, n_pixels: int) -> Iterator[tuple[int, int, Floats]]:
    """(first patch, last one, (patch, pixel) to be written over) of a few patches at a time.

    The rows are the same memory every time, one for each thread: fresh memory costs as much as
    cutting.
    """
    buffer: Floats | None = getattr(_local, "buffer", None)
    if buffer is None or buffer.size < ROWS * n_pixels:
        buffer = _local.buffer = np.empty(ROWS * n_pixels, np.float32)
    for begin in range(start, stop, ROWS):
        end = min(begin + ROWS, stop)
        yield begin, end, buffer[: (end - begin) * n_pixels].reshape(-1, n_pixels)
