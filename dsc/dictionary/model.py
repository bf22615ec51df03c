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
from dsc.dictionary.checkpoint import ENERGIES, check_learned
from dsc.dictionary.config import LearnConfig
from dsc.dictionary.encode import (
    Coded,
    EncodeStep,
    check_coef_type,
    create_codes,
    encode_part,
    encode_parts,
    join_codes,
)
from dsc.dictionary.loop import State, share_left
from dsc.dictionary.notes import learning_notes
from dsc.dictionary.plot import plot_atoms
from dsc.dictionary.reconstruct import RebuildStep, Rebuilt, rebuild
from dsc.dictionary.run import MODEL, Run
from dsc.engine import open_engine, part_tasks
from dsc.errors import DscError, counted
from dsc.patches import PatchSource, as_source
from dsc.pursuit import Coder, Codes
from dsc.show import Card, Stage, percent
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
    energy
        Mean energy per pixel of the disk, of the patches as prepared; NaN if it is not known, as in
        models of earlier versions.
    variation
        The same about the mean of each patch.
    """

    atoms: Floats
    basis: SteerableBasis = field(repr=False)
    config: LearnConfig
    history: NDArray[np.float64] = field(repr=False)
    count: NDArray[np.int64] = field(repr=False)
    patches: dict[str, Any] = field(repr=False)
    numerics: dict[str, str] = field(repr=False)
    energy: float = field(default=math.nan, repr=False)
    variation: float = field(default=math.nan, repr=False)

    def __repr__(self) -> str:
        return (
            f"Dictionary({len(self.atoms)} atoms, {self.basis.name} basis, diameter "
            f"{self.basis.diameter}, sparsity {self.config.sparsity}, {self.n_angles} angles, "
            f"{percent(self.share)} of the energy left, mse {self.mse:.3g})"
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
    def share(self) -> float:
        """Share of the energy of the patches that is left after the final coding pass."""
        return share_left(self.mse, self.energy)

    @property
    def mse(self) -> float:
        """Mean squared error per pixel of the disk after the final coding pass."""
        return float(self.history[-1])

    @property
    def n_unused(self) -> int:
        """Atoms that no patch used in the final coding pass."""
        return int((self.count == 0).sum())

    @property
    def notes(self) -> list[str]:
        """What is odd about it, one line each: unused atoms, constant data, too few patches."""
        return learning_notes([self._state], [self.patches["n_patches"]])

    @property
    def _state(self) -> State:
        history, energies = tuple(self.history.tolist()), (self.energy, self.variation)
        return State(0, self.atoms, history, self.count, np.nan, *energies, finished=True)

    @property
    def atoms_pixels(self) -> Floats:
        """(atom, y, x), or (atom, y, x, channel): the atoms as images, NaN outside the disk."""
        return self.basis.to_image(self.atoms)

    @property
    def n_channels(self) -> int:
        """Channels of a patch."""
        return self.basis.n_channels

    @property
    def reading(self) -> dict[str, Any]:
        """How its images were read, if not as grey ones by their type: channel, level, ranges."""
        return dict(self.patches.get("reading", {}))

    @property
    def sha256(self) -> str:
        """Hash of the atoms (little-endian float32 coordinates, C order)."""
        return self.coder.sha256

    def card(self) -> Card:
        """The atoms and the key numbers, for notebooks."""
        card = state_card(self._state, self.basis)
        numbers = {
            "patches": f"{self.patches['n_patches']:,}",
            "sparsity": str(self.config.sparsity),
            "angles": str(self.n_angles),
            "basis": self.basis.name,
        }
        return replace(card, numbers={**card.numbers, **numbers}, alert="; ".join(self.notes))

    def _repr_html_(self) -> str:
        return self.card().html()

    def encode(
        self,
        patches: Any,
        out: str | PathLike[str] | None = None,
        coef_type: str = "float32",
        **engine_options: Any,
    ) -> Coded:
        """Code patches with this dictionary.

        Parameters
        ----------
        patches
            A patch set (or its path), or an array (patch, y, x), which is prepared (`center`,
            `unit`) as the patches were that the dictionary was learned from.
        out
            Path or URL of a new store for the codes; None keeps them in memory.
        coef_type
            "float32", or "float16": coefficients rounded to 11 binary digits, in half the bytes.
            Those beyond 65504 are refused; below 6e-5 digits are lost. The `share` and `mse` of
            the result, and the `error` of each patch, are those of the rounded ones.
        **engine_options
            scheduler, n_workers, memory_limit, patience, tls and progress, as in `dsc.learn_many`.

        Returns
        -------
        `Coded` with `n_patches`, `share`, `mse`, and `codes`, which are read when asked for.
        """
        begin = time.perf_counter()
        check_coef_type(coef_type)
        source = self._source(patches)
        with open_engine(**engine_options) as engine:
            store = None
            if out is not None:
                store = create_codes(out, self.coder, source, engine, coef_type)
            parts = encode_parts(source, engine, store)
            step = EncodeStep(self.coder, store, self.config.stop(self.basis), coef_type)
            tasks = part_tasks(encode_part, parts, step)
            with nullcontext() if store is None else store.writing():
                results = engine.compute(tasks, Stage("code the patches", source.n_patches))
        # the exact sum, rounded once: the same for any chunks and tasks
        measures = [pair for pairs, _ in results for pair in pairs]
        sse, energy = (math.fsum(values) for values in zip(*measures, strict=True))
        mse, share = sse / (source.n_patches * self.basis.n_pixels), share_left(sse, energy)
        pieces = [piece for _, kept in results for piece in kept]
        stored = None if store is None else store.finish()
        url = None if out is None else str(out)
        per_patch = None if stored is None else stored.n_bytes / source.n_patches
        seconds, read = time.perf_counter() - begin, join_codes(pieces, stored)
        return Coded(source.n_patches, share, mse, seconds, url, per_patch, read)

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
        if (n_found := getattr(source, "n_channels", 1)) != self.n_channels:
            raise DscError(
                f"patches: found {counted(n_found, 'channel')}, need {self.n_channels}, as the "
                "dictionary has: cut them from images with so many (--channel), or learn from "
                "patches like these"
            )
        if (source.center, source.unit) != (center, unit):
            found, wanted = (
                " and ".join(["mean removed"] * c + ["norm 1"] * u) or "mean and norm as they were"
                for c, u in ((source.center, source.unit), (center, unit))
            )
            raise DscError(
                f"patches: found {found}, need {wanted}, as what the dictionary was learned from: "
                f"cut them {_cut_so(center, unit)}, or give the array itself, which is prepared "
                "here"
            )
        return source

    def decode(self, codes: Codes) -> Floats:
        """Pixels of codes: (patch, y, x), with several channels (patch, y, x, channel).

        NaN outside the disk.
        """
        return self.basis.to_image(self.basis.reconstruct(self.coder.decode(codes)))

    def reconstruct(self, image: Any, stride: int = 1, **engine_options: Any) -> Floats:
        """An image from its coded patches, overlapping ones averaged: (y, x), or (y, x, color).

        Each color is rebuilt by itself; alpha stays.

        The image is mirrored at its border, so that every pixel is the centre of some patch.

        Parameters
        ----------
        image
            (y, x) grey values, or (y, x, color), or the path of an image.
        stride
            Pixels between patches.
        **engine_options
            scheduler, n_workers, memory_limit and progress, as in `dsc.learn_many`. Of an image
            that has a path, what to read, if not as the dictionary was learned: channel, level,
            page (which image of a stack) and missing_as_fill.

        Returns
        -------
        float32, not rounded: of an array in its units, of a file with whole numbers in [0, 1]; in
        units of the image where the dictionary has ranges.
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
            (y, x) grey values, or (y, x, color), or the path of an image.
        stride
            Pixels between patches.
        out
            Path or URL of a new OME-Zarr of the type of the image, written tile by tile; None keeps
            floats in memory (see `Rebuilt.image`). PSNR and the rest are those before rounding.
        overwrite, resume
            Whether finished maps that are at `out` are replaced; whether the tiles of unfinished
            ones are kept.
        **engine_options
            scheduler, n_workers, memory_limit, patience, tls and progress, as in `dsc.learn_many`.
        """
        center, unit = (bool(self.patches.get(name)) for name in ("center", "unit"))
        stop, reading = self.config.stop(self.basis), self.reading
        step = RebuildStep(self.coder, center, unit, stride, stop, reading)
        return rebuild(image, step, out, overwrite, resume, **engine_options)

    def denoise(self, image: Any, sigma: float | None = None, **options: Any) -> Any:
        """Remove white noise from an image with these atoms; see `dsc.denoise`."""
        from dsc import restore

        return restore.denoise(image, sigma, self, **options)

    def inpaint(self, image: Any, mask: Any = None, **options: Any) -> Any:
        """Fill the missing pixels of an image with these atoms; see `dsc.inpaint`."""
        from dsc import restore

        return restore.inpaint(image, mask, self, **options)

    def orientation(self, image: Any, **options: Any) -> xarray.Dataset:
        """Which way structures run at each pixel of an image; see `dsc.orientation`."""
        from dsc import maps

        return maps.orientation(image, self, **options)

    def features(self, image: Any, kind: str = "invariant", **options: Any) -> xarray.DataArray:
        """Which atoms are at work around each pixel of an image; see `dsc.features`."""
        from dsc import maps

        return maps.features(image, self, kind, **options)

    def plot(self, columns: int = 10) -> Figure:
        """The atoms as a grid of disks, most used first."""
        return plot_atoms(self.atoms_pixels[np.argsort(-self.count, kind="stable")], columns)

    def to_xarray(self) -> xarray.Dataset:
        """Atoms (as coordinates and as images), uses and history, with named dimensions."""
        import xarray

        pixels = self.atoms_pixels
        return xarray.Dataset(
            {
                "atoms": (("atom", "coord"), self.atoms),
                "atoms_pixels": (("atom", "y", "x", "channel")[: pixels.ndim], pixels),
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
        sizes["channel"] = self.n_channels
        images = "atoms_pixels" if self.n_channels == 1 else "atoms_channels"
        arrays: dict[str, NDArray[Any]] = {
            "atoms": self.atoms,
            images: self.atoms_pixels,
            "history": self.history,
            "count": self.count,
            "mask": self.basis.mask,
            **basis_variables(self.basis),
        }
        sizes |= basis_sizes(self.basis)
        store = create(url, "model", sizes, {}, self._attributes(), (images,))
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
                **{name: _number(attributes.get(name)) for name in ENERGIES},
            )
            check_learned(model.history, model.count, model.patches["n_patches"])
            if model.coder.sha256 != attributes["atoms_sha256"]:  # also refuses what is no atom
                raise DscError("found other atoms than its atoms_sha256 says: make it again")
            return model

    def _attributes(self) -> dict[str, Any]:
        return {
            "share": _finite(self.share),
            "mse": self.mse,
            "config": asdict(self.config),
            "patches": self.patches,
            "numerics": self.numerics,
            "basis": self.basis.name,
            "diameter": self.basis.diameter,
            "n_angles": self.n_angles,
            "atoms_sha256": self.sha256,
            **{name: _finite(getattr(self, name)) for name in ENERGIES},
        }


def _cut_so(center: bool, unit: bool) -> str:
    """How patches are to be cut, for the command line and for Python."""
    words = " and ".join(
        f"{'with' if wanted else 'without'} --{name}"
        for name, wanted in (("center", center), ("unit", unit))
    )
    return f"{words} (in Python center={center}, unit={unit})"


def _finite(value: float) -> float | None:
    """A number for JSON, which has no NaN."""
    return value if math.isfinite(value) else None


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


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


def as_dictionary(model: Any) -> Dictionary:
    """A dictionary as it is, or that of a run folder or a model store."""
    if isinstance(model, Dictionary):
        return model
    if isinstance(model, str | PathLike):
        return load_dictionary(model)
    raise DscError(
        f"model: found {type(model).__name__}, need a dictionary (`dsc.learn`), or the path of a "
        "run or a model"
    )
