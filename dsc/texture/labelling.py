"""Labels of patches: the class whose dictionary codes a patch best."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dsc.basis import SteerableBasis, bad_values
from dsc.images import Image
from dsc.patches import cut_grid
from dsc.pursuit import EMPTY, Coder, Search, coder_bytes, packed_order, search_tables
from dsc.texture import kernels
from dsc.texture.tables import Details, Outline, details_of, outline_of

NONE = -1  # the label of a patch without anything to code
PIECE_VALUES = 2**22  # pixels and coordinates of the patches labelled at a time

Floats = NDArray[np.float32]
Labels = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Labeller:
    """Dictionaries of classes that compete for patches."""

    atoms: Floats  # (label, atom, coord) unit norm
    basis: SteerableBasis  # their basis
    sparsity: int  # how patches are coded
    n_angles: int
    stride: int  # pixels between the patches of an image

    @property
    def identity(self) -> dict[str, str | int]:
        """What labels depend on besides the image."""
        return {
            "atoms_sha256": self.sha256,
            "sparsity": self.sparsity,
            "n_angles": self.n_angles,
            "stride": self.stride,
            "counted_by": "atom",
        }

    @property
    def sha256(self) -> str:
        """Hash of all atoms (little-endian float32 coordinates, C order)."""
        return hashlib.sha256(np.ascontiguousarray(self.atoms, "<f4").tobytes()).hexdigest()

    @property
    def prunes(self) -> bool:
        """Whether atoms that cannot be the best are passed over without trying their angles."""
        return self.sparsity == 1 and self.n_angles > 1

    def label(self, coords: Floats) -> tuple[Labels, int]:
        """The best class of every row, ties to the lowest, and how many pairs were evaluated.

        `NONE` for a patch of zeros. The number counts the (atom, patch) pairs, of all classes, for
        which all coordinates and angles had to be tried; without pruning it is that of all pairs
        and steps.
        """
        atoms, evaluated = self.best_atoms(coords)
        return self.label_of(atoms), evaluated

    def label_of(self, atoms: Labels) -> Labels:
        """The classes of atoms that are numbered through all classes."""
        return np.where(atoms < 0, NONE, atoms // self.atoms.shape[1])

    def best_atoms(self, coords: Floats) -> tuple[Labels, int]:
        """The first atom in the code of the best class, numbered through all classes.

        `NONE` for a patch that no atom codes. And how many pairs were evaluated; see `label`.
        """
        if self.prunes:
            best, _, evaluated = self.best_by_score(coords)
            return best, evaluated
        n_labels, n_atoms, _ = self.atoms.shape
        _, exponent = np.frexp(np.abs(coords).max(axis=1, initial=0, keepdims=True))
        sized = np.ldexp(coords, -exponent)  # exactly: errors of small patches have no digits
        least = np.full(len(coords), np.inf, np.float32)
        best = np.full(len(coords), NONE, np.int64)
        for label, coder in enumerate(self._coders):
            codes = coder.encode(sized)
            # of one atom the coefficient has more digits than the error, energy − coef²
            error = -np.abs(codes.coef[:, 0]) if self.sparsity == 1 else codes.error
            better = (error < least) & (codes.atom[:, 0] != EMPTY)
            least[better] = error[better]
            best[better] = label * n_atoms + codes.atom[better, 0]
        best[~coords.any(axis=1)] = NONE
        return best, len(coords) * n_labels * n_atoms * self.sparsity

    def best_by_score(self, coords: Floats) -> tuple[Labels, int, int]:
        """The atom of the largest score, where the labeller prunes.

        And for how many pairs it tried the angles of outlines, and those of all coordinates.
        """
        best = np.empty(len(coords), np.int64)
        search = self._search
        bad, outlined, evaluated = kernels.best_atoms(
            coords, packed_order(self.basis), search.rows_of, search.n_even, search.table,
            *self._outline, *self._details, best,
        )  # fmt: skip
        if bad >= 0:
            raise bad_values(coords, "patches")
        return best, int(outlined), int(evaluated)

    @cached_property
    def _coders(self) -> list[Coder]:
        """What codes with the dictionary of each class."""
        return [Coder(one, self.basis, self.sparsity, self.n_angles) for one in self.atoms]

    @cached_property
    def _search(self) -> Search:
        """What finds the best of all atoms of all classes."""
        return search_tables(self._all_atoms, self.basis, self.n_angles)

    @cached_property
    def _outline(self) -> Outline:
        """What tells most atoms that they cannot be the best."""
        return outline_of(self._all_atoms, self.basis, self._search)

    @cached_property
    def _details(self) -> Details:
        """What the others need."""
        return details_of(self._all_atoms, self.basis)

    @property
    def _all_atoms(self) -> Floats:
        return self.atoms.reshape(-1, self.basis.n_coords)

    def __getstate__(self) -> dict[str, object]:
        """The fields: tables are made again where they are needed."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    def label_image(self, image: Image) -> tuple[Labels, int]:
        """The labels of all windows of an image (y, x), and how many pairs were evaluated."""
        labels = np.empty(self.grid(image.shape), np.int64)
        evaluated = 0
        for place, atoms, n_pairs in self.best_pieces(image):
            labels[place] = self.label_of(atoms)
            evaluated += n_pairs
        return labels, evaluated

    def best_pieces(self, image: Image) -> Iterator[tuple[tuple[slice, slice], Labels, int]]:
        """Best atoms piece by piece: rows and columns of windows, the atoms, pairs evaluated."""
        n_y, n_x = self.grid(image.shape)
        n_columns = min(n_x, self.piece_size)
        n_rows = max(1, self.piece_size // n_columns)
        for y in range(0, n_y, n_rows):
            for x in range(0, n_x, n_columns):
                rows, columns = slice(y, min(y + n_rows, n_y)), slice(x, min(x + n_columns, n_x))
                atoms, evaluated = self.best_atoms(self._coords(image, rows, columns))
                yield (rows, columns), atoms.reshape(rows.stop - rows.start, -1), evaluated

    @property
    def piece_size(self) -> int:
        """Patches cut and labelled at a time: some 16 MB of pixels and coordinates."""
        return max(256, PIECE_VALUES // (self.basis.n_pixels + self.basis.n_coords))

    def task_bytes(self, images: Sequence[Image]) -> int:
        """Memory that labelling needs at a time: patches, their codes, and tables of all atoms."""
        windows = max((math.prod(self.grid(image.shape)) for image in images), default=0)
        n_patches = min(self.piece_size, windows)
        a_patch = self.basis.n_pixels + 2 * self.basis.n_coords + 2 * self.sparsity + 12
        values = n_patches * a_patch
        n_labels, n_atoms, _ = self.atoms.shape
        coding = coder_bytes(n_atoms, self.basis, self.n_angles, self.sparsity)
        tables = 0 if self.prunes else n_labels * coding.own + coding.thread
        return 4 * (values + 14 * self.atoms.size) + tables

    def grid(self, shape: tuple[int, int]) -> tuple[int, int]:
        """How many windows an image has along y and x."""
        n_y, n_x = ((size - self.basis.diameter) // self.stride + 1 for size in shape)
        return n_y, n_x

    def _coords(self, image: Image, rows: slice, columns: slice) -> Floats:
        """Coordinates of windows of an image, means removed; each row by itself."""
        side = self.basis.diameter
        (y0, y1), (x0, x1) = (
            (part.start * self.stride, (part.stop - 1) * self.stride + side)
            for part in (rows, columns)
        )
        disks = cut_grid(image.read(y0, y1, x0, x1), side, self.stride, center=True)
        return self.basis.project(disks)


@dataclass(frozen=True, eq=False)
class Labellers:
    """Dictionaries of the same classes at one or several diameters."""

    each: tuple[Labeller, ...]  # by rising diameter

    @property
    def identity(self) -> dict[str, str | int]:
        """What labels depend on besides the image."""
        return {**self.each[0].identity, "atoms_sha256": self.sha256}

    @property
    def sha256(self) -> str:
        """Hash of all atoms (little-endian float32 coordinates, C order)."""
        total = hashlib.sha256()
        for one in self.each:
            total.update(np.ascontiguousarray(one.atoms, "<f4").tobytes())
        return total.hexdigest()

    @property
    def diameter(self) -> int:
        """The largest, which an image must hold."""
        return max(one.basis.diameter for one in self.each)

    @property
    def n_labels(self) -> int:
        """Classes."""
        return int(self.each[0].atoms.shape[0])

    @property
    def n_atoms(self) -> int:
        """Atoms of all classes at a diameter."""
        return self.n_labels * int(self.each[0].atoms.shape[1])

    @property
    def prunes(self) -> bool:
        """Whether atoms that cannot be the best are passed over without trying their angles."""
        return self.each[0].prunes

    def n_windows(self, shape: tuple[int, int]) -> int:
        """How many patches of an image are labelled, of all diameters."""
        return sum(math.prod(one.grid(shape)) for one in self.each)

    def task_bytes(self, images: Sequence[Image]) -> int:
        """Memory that labelling needs at a time."""
        return max(one.task_bytes(images) for one in self.each)


def label_map(labellers: Labellers, image: Image) -> Labels:
    """(y, x) the class of the patch around every pixel; −1 at the rim and where nothing is to code.

    With a stride, a patch stands for the pixels nearest to its middle. Of several diameters each
    votes with as many votes as it has pixels; see `most_voted`.
    """
    found = []
    for one in labellers.each:
        labels, _ = one.label_image(image)
        found.append(spread(labels, image.shape, one.basis.diameter // 2, one.stride))
    return most_voted(found, labellers)


def most_voted(labels: Sequence[Labels], labellers: Labellers, half: int = 0) -> Labels:
    """(y, x) the class with most votes in the square around each pixel, ties to the lowest.

    From the labels (y, x) of each diameter, which has so many votes for a pixel as it has pixels:
    where two disagree, the larger patch wins. Without the `half` pixels at the edges. `NONE` where
    no pixel of the square has a class.
    """
    if half == 0 and len(labels) == 1:
        return labels[0]
    width = 2 * half + 1
    shape = [n - 2 * half for n in labels[0].shape]
    most, best = np.zeros(shape, np.int32), np.full(shape, NONE)
    for label in range(labellers.n_labels):
        total = np.zeros([n + 1 for n in labels[0].shape], np.int32)
        votes = np.zeros(labels[0].shape, np.int32)
        for found, one in zip(labels, labellers.each, strict=True):
            votes += np.int32(one.basis.diameter) * (found == label)
        np.cumsum(np.cumsum(votes, 0, dtype=np.int32), 1, out=total[1:, 1:])
        rows = total[width:] - total[:-width]
        count = rows[:, width:] - rows[:, :-width]
        more = count > most
        most[more], best[more] = count[more], label
    return best


def spread(labels: NDArray[np.integer], shape: tuple[int, ...], offset: int, stride: int) -> Labels:
    """(y, x) the label of the window around every pixel; `NONE` where there is none.

    `offset` pixels are between the edge and the middle of the first window; with a stride, a
    window stands for the pixels nearest to its middle.
    """
    places = [(np.arange(size) - offset + stride // 2) // stride for size in shape]
    inside = [(p >= 0) & (p < n) for p, n in zip(places, labels.shape, strict=True)]
    found = labels[np.ix_(*(np.where(ok, p, 0) for p, ok in zip(places, inside, strict=True)))]
    return np.where(np.logical_and.outer(*inside), found, NONE)
