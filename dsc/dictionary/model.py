"""`Dictionary`: learned atoms, what they were learned from, and what can be done with them."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass, field
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dsc.basis import SteerableBasis
from dsc.dictionary.config import LearnConfig
from dsc.dictionary.encode import Coded, encode_source
from dsc.dictionary.reconstruct import reconstruct_picture
from dsc.pursuit import Codes, decode
from dsc.store import basis_sizes, basis_variables, create, open_store, read_basis

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Dictionary:
    """A learned dictionary.

    Attributes
    ----------
    atoms
        (atom, coord) unit norm, float32.
    basis
        The basis of these coordinates.
    config
        How it was learned.
    history
        (iteration,) mean squared error per pixel of the disk, for the atoms after 0, 1, … updates;
        the last one is that of the final coding pass.
    count
        (atom,) uses of each atom in the last pass.
    patches
        What it was learned from: `fingerprint`, `n_patches`, `center`, `unit`.
    numerics
        Library versions and CPU that the bits depend on.
    """

    atoms: Floats
    basis: SteerableBasis = field(repr=False)
    config: LearnConfig
    history: NDArray[np.float64] = field(repr=False)
    count: NDArray[np.int64] = field(repr=False)
    patches: dict[str, Any] = field(repr=False)
    numerics: dict[str, str] = field(repr=False)

    def __repr__(self) -> str:
        return (
            f"Dictionary({len(self.atoms)} atoms, {self.basis.name} basis, diameter "
            f"{self.basis.diameter}, sparsity {self.config.sparsity}, {self.n_angles} angles, "
            f"mse {self.mse:.3g})"
        )

    @property
    def n_angles(self) -> int:
        """Size of the angle grid."""
        return self.config.resolve(self.basis)

    @property
    def mse(self) -> float:
        """Mean squared error per pixel of the disk after the final coding pass."""
        return float(self.history[-1])

    @property
    def atoms_pixels(self) -> Floats:
        """(atom, y, x) the atoms as pictures, NaN outside the disk."""
        return self.basis.to_image(self.atoms)

    @property
    def sha256(self) -> str:
        """Hash of the atoms (little-endian float32 coordinates, C order)."""
        return hashlib.sha256(np.ascontiguousarray(self.atoms, "<f4").tobytes()).hexdigest()

    def encode(
        self,
        patches: Any,
        out: str | None = None,
        scheduler: Any = "threads",
        n_workers: int | None = None,
        memory_limit: str | int | None = None,
    ) -> Coded:
        """Code patches with this dictionary.

        Parameters
        ----------
        patches
            A patch set (or its path), or an array (patch, y, x).
        out
            Path or URL of a new store for the codes; None returns them in memory.
        scheduler, n_workers, memory_limit
            Where to run, as in `dsc.learn`.

        Returns
        -------
        `Coded` with `n_patches`, `mse`, and either `codes` in memory or the `url` of the store.
        """
        return encode_source(self, patches, out, scheduler, n_workers, memory_limit)

    def decode(self, codes: Codes) -> Floats:
        """Pixels of codes: (patch, y, x), NaN outside the disk."""
        return self.basis.to_image(self.basis.reconstruct(decode(codes, self.atoms, self.basis)))

    def reconstruct(
        self,
        picture: ArrayLike,
        stride: int = 1,
        scheduler: Any = "threads",
        n_workers: int | None = None,
    ) -> Floats:
        """A picture from its coded patches, overlapping ones averaged: (y, x).

        Parameters
        ----------
        picture
            (y, x) grey values.
        stride
            Pixels between patches.
        scheduler, n_workers
            Where to run, as in `dsc.learn`.
        """
        return reconstruct_picture(self, picture, stride, scheduler, n_workers)

    def plot(self, columns: int = 10) -> Figure:
        """The atoms as a grid of disks, most used first."""
        from dsc.dictionary.plot import plot_atoms

        return plot_atoms(self.atoms_pixels[np.argsort(-self.count, kind="stable")], columns)

    def to_xarray(self) -> xarray.Dataset:
        """Atoms (as coordinates and as pictures), uses and history, with named dimensions."""
        import xarray

        return xarray.Dataset(
            {
                "atoms": (("atom", "coord"), self.atoms),
                "atoms_pixels": (("atom", "y", "x"), self.atoms_pixels),
                "count": ("atom", self.count),
                "history": ("iteration", self.history),
            },
            coords={"frequency": ("coord", self.basis.frequency)},
            attrs=self._attributes(),
        )

    def save(self, url: str | PathLike[str]) -> None:
        """Write a model store at a path or URL that does not exist yet."""
        save_state(
            url,
            self.basis,
            self._attributes(),
            atoms=self.atoms,
            history=self.history,
            count=self.count,
        )

    @staticmethod
    def load(url: str | PathLike[str]) -> Dictionary:
        """Read a model store."""
        arrays, attributes, basis = load_state(url)
        return Dictionary(
            atoms=arrays["atoms"],
            basis=basis,
            config=LearnConfig(**attributes["config"]),
            history=arrays["history"],
            count=arrays["count"],
            patches=attributes["patches"],
            numerics=attributes["numerics"],
        )

    def _attributes(self) -> dict[str, Any]:
        return {
            "config": asdict(self.config),
            "patches": self.patches,
            "numerics": self.numerics,
            "basis": self.basis.name,
            "diameter": self.basis.diameter,
            "n_angles": self.n_angles,
            "atoms_sha256": self.sha256,
            "mse": self.mse,
        }


def save_state(
    url: str | PathLike[str],
    basis: SteerableBasis,
    attributes: dict[str, Any],
    *,
    atoms: Floats,
    history: NDArray[np.float64],
    count: NDArray[np.int64],
) -> None:
    """Write a model store: a finished dictionary, or a checkpoint of one."""
    side = basis.diameter
    sizes = {"atom": len(atoms), "iteration": len(history), "y": side, "x": side}
    sizes |= basis_sizes(basis)
    arrays: dict[str, NDArray[Any]] = {
        "atoms": atoms,
        "atoms_pixels": basis.to_image(atoms),
        "history": history,
        "count": count,
        "mask": basis.mask,
        **basis_variables(basis),
    }
    store = create(url, "model", sizes, {}, attributes)
    for name, array in arrays.items():
        store.write(name, 0, array)
    store.finish()


def load_state(
    url: str | PathLike[str],
) -> tuple[dict[str, Any], dict[str, Any], SteerableBasis]:
    """Arrays, attributes and basis of a model store."""
    store = open_store(url, "model")
    arrays = {name: store.read(name) for name in ("atoms", "history", "count")}
    return arrays, store.attributes, read_basis(store)
