"""`Dictionary`: learned atoms, what they were learned from, and what can be done with them."""

from __future__ import annotations

import math
import time
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dsc.basis import SteerableBasis
from dsc.dictionary.cards import state_card
from dsc.dictionary.checkpoint import check_learned
from dsc.dictionary.config import LearnConfig
from dsc.dictionary.encode import (
    Coded,
    EncodeStep,
    create_codes,
    encode_part,
    encode_parts,
    join_codes,
)
from dsc.dictionary.loop import State
from dsc.dictionary.plot import plot_atoms
from dsc.dictionary.reconstruct import RebuildStep, Rebuilt, rebuild
from dsc.dictionary.run import MODEL, Run
from dsc.engine import open_engine, part_tasks
from dsc.errors import DscError
from dsc.patches import PatchSource, as_source
from dsc.pursuit import Coder, Codes
from dsc.show import Card, Stage
from dsc.store import as_written, basis_sizes, basis_variables, create, open_store, read_basis

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

    @cached_property
    def coder(self) -> Coder:
        """What codes patches with these atoms."""
        return self.config.coder(self.atoms, self.basis)

    @property
    def n_angles(self) -> int:
        """Size of the grid on which the angles of its codes are."""
        return self.coder.code_angles

    @property
    def mse(self) -> float:
        """Mean squared error per pixel of the disk after the final coding pass."""
        return float(self.history[-1])

    @property
    def n_unused(self) -> int:
        """Atoms that no patch used in the final coding pass."""
        return int((self.count == 0).sum())

    @property
    def atoms_pixels(self) -> Floats:
        """(atom, y, x) the atoms as images, NaN outside the disk."""
        return self.basis.to_image(self.atoms)

    @property
    def sha256(self) -> str:
        """Hash of the atoms (little-endian float32 coordinates, C order)."""
        return self.coder.sha256

    def card(self) -> Card:
        """The atoms and the key numbers, for notebooks."""
        state = State(0, self.atoms, tuple(self.history.tolist()), self.count)
        card = state_card(state, self.basis)
        numbers = {
            "patches": f"{self.patches['n_patches']:,}",
            "sparsity": str(self.config.sparsity),
            "angles": str(self.n_angles),
            "basis": self.basis.name,
        }
        return replace(card, numbers={**numbers, **card.numbers})

    def _repr_html_(self) -> str:
        return self.card().html()

    def encode(
        self, patches: Any, out: str | PathLike[str] | None = None, **engine_options: Any
    ) -> Coded:
        """Code patches with this dictionary.

        Parameters
        ----------
        patches
            A patch set (or its path), or an array (patch, y, x), which is prepared (`center`,
            `unit`) as the patches were that the dictionary was learned from.
        out
            Path or URL of a new store for the codes; None keeps them in memory.
        **engine_options
            scheduler, n_workers, memory_limit, patience, tls and progress, as in `dsc.learn_many`.

        Returns
        -------
        `Coded` with `n_patches`, `mse` and `codes`, which are read when they are asked for.
        """
        begin = time.perf_counter()
        source = self._source(patches)
        with open_engine(**engine_options) as engine:
            parts = encode_parts(source, engine)
            store = None if out is None else create_codes(out, self.coder, source)
            step = EncodeStep(self.coder, store, self.config.stop(self.basis))
            tasks = part_tasks(encode_part, parts, step)
            with nullcontext() if store is None else store.writing():
                results = engine.compute(tasks, Stage("code the patches", source.n_patches))
        # the exact sum, rounded once: the same for any chunks and tasks
        sse = math.fsum(error for errors, _ in results for error in errors)
        mse = sse / (source.n_patches * self.basis.n_pixels)
        pieces = [piece for _, kept in results for piece in kept]
        read = join_codes(pieces, None if store is None else store.finish())
        url = None if out is None else str(out)
        return Coded(source.n_patches, mse, time.perf_counter() - begin, url, read)

    def _source(self, patches: Any) -> PatchSource:
        """Patches prepared as those that this dictionary was learned from.

        Arrays are; others are refused if they are not.
        """
        center, unit = (bool(self.patches.get(name)) for name in ("center", "unit"))
        source = as_source(patches, center, unit)
        if source.diameter != self.basis.diameter:
            raise DscError(
                f"patches: found diameter {source.diameter}, need {self.basis.diameter}, that of "
                "the dictionary"
            )
        if (source.center, source.unit) != (center, unit):
            found, wanted = (
                " and ".join(["mean removed"] * c + ["norm 1"] * u) or "mean and norm as they were"
                for c, u in ((source.center, source.unit), (center, unit))
            )
            raise DscError(
                f"patches: found {found}, need {wanted}, as what the dictionary was learned from: "
                f"cut them with center={center}, unit={unit}, or give the array itself, which is "
                "prepared here"
            )
        return source

    def decode(self, codes: Codes) -> Floats:
        """Pixels of codes: (patch, y, x), NaN outside the disk."""
        return self.basis.to_image(self.basis.reconstruct(self.coder.decode(codes)))

    def reconstruct(self, image: Any, stride: int = 1, **engine_options: Any) -> Floats:
        """An image from its coded patches, overlapping ones averaged: (y, x).

        The image is mirrored at its border, so that every pixel is the centre of some patch.

        Parameters
        ----------
        image
            (y, x) grey values, or the path of an image.
        stride
            Pixels between patches.
        **engine_options
            scheduler, n_workers, memory_limit and progress, as in `dsc.learn_many`.
        """
        return self.rebuild(image, stride, **engine_options).image

    def rebuild(
        self,
        image: Any,
        stride: int = 1,
        out: str | PathLike[str] | None = None,
        overwrite: bool = False,
        resume: bool = False,
        **engine_options: Any,
    ) -> Rebuilt:
        """The same with its PSNR and the share of energy left, of an image of any size.

        Parameters
        ----------
        image
            (y, x) grey values, or the path of an image.
        stride
            Pixels between patches.
        out
            Path or URL of a new OME-Zarr, written tile by tile; None keeps it in memory.
        overwrite, resume
            Whether finished maps that are at `out` are replaced; whether the tiles of unfinished
            ones are kept.
        **engine_options
            scheduler, n_workers, memory_limit, patience, tls and progress, as in `dsc.learn_many`.
        """
        center, tolerance = bool(self.patches.get("center")), self.config.stop(self.basis)
        step = RebuildStep(self.coder, center, stride, tolerance)
        return rebuild(image, step, out, overwrite, resume, **engine_options)

    def plot(self, columns: int = 10) -> Figure:
        """The atoms as a grid of disks, most used first."""
        return plot_atoms(self.atoms_pixels[np.argsort(-self.count, kind="stable")], columns)

    def to_xarray(self) -> xarray.Dataset:
        """Atoms (as coordinates and as images), uses and history, with named dimensions."""
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
        side = self.basis.diameter
        sizes = {"atom": len(self.atoms), "iteration": len(self.history), "y": side, "x": side}
        arrays: dict[str, NDArray[Any]] = {
            "atoms": self.atoms,
            "atoms_pixels": self.atoms_pixels,
            "history": self.history,
            "count": self.count,
            "mask": self.basis.mask,
            **basis_variables(self.basis),
        }
        store = create(url, "model", sizes | basis_sizes(self.basis), {}, self._attributes())
        with store.writing():
            for name, array in arrays.items():
                store.write(name, 0, array)
            store.finish()

    @staticmethod
    def load(url: str | PathLike[str]) -> Dictionary:
        """Read a model store."""
        store = open_store(url, "model")
        attributes = store.attributes
        with as_written(store.url, "a model"):
            model = Dictionary(
                atoms=store.read("atoms"),
                basis=read_basis(store),
                config=LearnConfig(**attributes["config"]),
                history=store.read("history"),
                count=store.read("count"),
                patches={**attributes["patches"]},
                numerics={**attributes["numerics"]},
            )
            check_learned(model.history, model.count, model.patches["n_patches"])
            if model.coder.sha256 != attributes["atoms_sha256"]:  # also refuses what is no atom
                raise DscError("found other atoms than its atoms_sha256 says: make it again")
            return model

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


def load_dictionary(path: str | PathLike[str]) -> Dictionary:
    """The dictionary of a finished run folder, or of a model store."""
    run = None if "://" in str(path) else Run(Path(path))
    if run is None or not run.exists:
        return Dictionary.load(path)
    if not run.finished:
        raise DscError(f"{path}: the run is not finished: continue it with `dsc learn --resume`")
    if MODEL not in run.results:
        raise DscError(f"{path}: has no {MODEL} but {', '.join(run.results[:3])}: name a model")
    return Dictionary.load(run.model)
