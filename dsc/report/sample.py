"""Some patches of the run, coded again with its dictionary: for angles, examples, the worst ones.

A patch set may have millions of patches, a report takes seconds: at most `SAMPLE` patches are
coded, whole spans of neighbours, chosen by their numbers and the seed of the run.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsc.basis import SteerableBasis
from dsc.counter import choose
from dsc.dictionary import Dictionary, Run
from dsc.errors import DscError
from dsc.patches import StoredPatches, open_patches
from dsc.pursuit import Codes
from dsc.show import shades

SAMPLE = 20_000  # patches coded at most
SPAN = 100  # neighbours that are read together
READ = 1000  # and at most, where all are taken
LEAST = 500  # patches coded even if each is a lot of work
WORK = 4e9  # patches × atoms × sparsity × coordinates: some ten seconds
EXAMPLES, WORST = 12, 12
LOOK = 2000  # patches with the largest errors, among which the worst are picked

Floats = NDArray[np.float32]
Shades = NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class Sample:
    """Patches that were coded for the report."""

    number: NDArray[np.int64]  # (patch,) their numbers in the set
    codes: Codes  # their codes
    error: NDArray[np.float64]  # (patch,) squared error and squared norm in pixels
    energy: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.number)


@dataclass(frozen=True, eq=False)
class Comparison:
    """A few patches (patch, y, x) beside their codings, NaN outside the disk."""

    patch: Floats
    coding: Floats

    def shades(self) -> dict[str, Shades]:
        """Patches, codings and residuals: one span of greys per patch, zero residual mid-grey."""
        each = self.patch.reshape(len(self.patch), -1)
        low, high = np.nanmin(each, axis=1), np.nanmax(each, axis=1)
        half = (high - low) / 2
        return {
            "patch": shades(self.patch, low, high),
            "coding": shades(self.coding, low, high),
            "residual": shades(self.patch - self.coding, -half, half),
        }


def find_patches(folder: Run, model: Dictionary) -> StoredPatches | str:
    """The patch set that a run learned from, or why it cannot be shown.

    It may have been moved with the run folder, and then is beside it.
    """
    path = folder.options().get("patches")
    if path is None:
        return "The run learned from an array, or from an open patch set: run.toml names none."
    beside = str(folder.path.absolute().parent / Path(path).name)
    other = False
    for place in [path] if "://" in path else [path, beside]:
        try:
            source = open_patches(place)
        except (DscError, OSError, ImportError):
            continue
        if source.fingerprint == model.patches["fingerprint"]:
            return source
        other = True
    if other:
        return f"The patch set at {path} is not the one that the run learned from."
    return (
        f"The patch set cannot be opened at {path}: if it was moved, correct its path in run.toml "
        "and make the report again."
    )


def look_at(
    source: StoredPatches, model: Dictionary
) -> tuple[dict[str, Any], dict[str, Comparison]]:
    """Code some patches: their facts, and which to show, a fixed choice and the worst."""
    sample = code_sample(source, model)
    lists = {
        "examples": choose(model.config.seed, "report examples", np.arange(len(sample)), EXAMPLES),
        "worst": pick_worst(source, sample),
    }
    comparisons = {name: _compare(source, model, sample, some) for name, some in lists.items()}
    return _facts(source, model, sample, lists), comparisons


def code_sample(source: StoredPatches, model: Dictionary) -> Sample:
    """Code a bounded number of patches."""
    basis = model.basis
    numbers = _numbers(source.n_patches, model)
    codes, error, energy = [], [], []
    for first, last in _spans(numbers):  # coordinates of all together may be more than learning had
        coords, rest = source.read_with_rest(basis, first, last)
        codes.append(model.coder.encode(coords, model.config.stop(basis)))
        residual, _ = model.coder.measure(coords, codes[-1])
        error.append(_energy(residual, basis) + rest)
        energy.append(_energy(coords, basis) + rest)
    return Sample(numbers, Codes.join(codes), np.concatenate(error), np.concatenate(energy))


def pick_worst(source: StoredPatches, sample: Sample) -> NDArray[np.int64]:
    """Places in the sample of the patches with the largest errors, worst first.

    Neighbours are often bad for the same reason: of patches that overlap only the worst is taken.
    """
    picked: dict[int, tuple[int, int, int]] = {}
    for place in np.argsort(-sample.error, kind="stable")[:LOOK].tolist():
        image, y, x = _position(source, int(sample.number[place]))
        if not any(
            image == other and max(abs(y - v), abs(x - u)) < source.diameter
            for other, v, u in picked.values()
        ):
            picked[place] = (image, y, x)
        if len(picked) == WORST:
            break
    return np.array(list(picked), np.int64)


def _compare(
    source: StoredPatches, model: Dictionary, sample: Sample, places: NDArray[np.int64]
) -> Comparison:
    """Images of some patches of the sample."""
    pixels = np.concatenate([source.pixels(int(p), int(p) + 1) for p in sample.number[places]])
    arrays = ("atom", "angle", "coef", "error")
    some = replace(sample.codes, **{name: getattr(sample.codes, name)[places] for name in arrays})
    return Comparison(model.basis.to_image(pixels), model.decode(some))


def _facts(
    source: StoredPatches, model: Dictionary, sample: Sample, lists: dict[str, NDArray[np.int64]]
) -> dict[str, Any]:
    """What coding a sample adds to the facts of a run; `lists` are places of patches to list."""
    n_angles = model.config.resolve(model.basis)  # refined angles count for the nearest of the grid
    steps = sample.codes.angle[sample.codes.used] * (n_angles / sample.codes.n_angles)
    used = steps.round().astype(np.int64) % n_angles
    n_pixels = model.basis.n_pixels
    return {
        "n_patches": len(sample),
        "is_all": len(sample) == source.n_patches,
        "mse": float(sample.error.mean() / n_pixels),
        "median": float(np.median(sample.error) / n_pixels),
        "left": float(sample.error.sum() / max(sample.energy.sum(), np.finfo(float).tiny)),
        "angles": np.bincount(used, minlength=n_angles).tolist(),
        "n_used": int(used.size),
        "n_images": len(source.store.attributes.get("image_names", ())),
        **{
            name: [_patch_facts(source, sample, int(i), n_pixels) for i in places]
            for name, places in lists.items()
        },
    }


def _patch_facts(
    source: StoredPatches, sample: Sample, place: int, n_pixels: int
) -> dict[str, Any]:
    number, energy = int(sample.number[place]), float(sample.energy[place])
    image, y, x = _position(source, number)
    names = source.store.attributes.get("image_names", ())
    return {
        "patch": number,
        "image": names[image] if image < len(names) else f"image {image}",
        "y": y,
        "x": x,
        "error": float(sample.error[place]) / n_pixels,
        "left": float(sample.error[place]) / energy if energy > 0 else 0.0,
        "n_atoms": int(sample.codes.used[place].sum()),
    }


def _position(source: StoredPatches, number: int) -> tuple[int, int, int]:
    """Image, y and x of a patch."""
    at = source.positions(number, number + 1)
    return int(at.image[0]), int(at.y[0]), int(at.x[0])


def _numbers(n_patches: int, model: Dictionary) -> NDArray[np.int64]:
    """The patches to code: all of a small set, else random spans of neighbours."""
    work = len(model.atoms) * model.config.sparsity * model.basis.n_coords
    most = int(min(SAMPLE, max(LEAST, WORK / work)))
    if n_patches <= most:
        return np.arange(n_patches)
    spans = choose(model.config.seed, "report spans", np.arange(n_patches // SPAN), most // SPAN)
    return (spans[:, None] * SPAN + np.arange(SPAN)).ravel()


def _spans(numbers: NDArray[np.int64]) -> list[tuple[int, int]]:
    """(first, last + 1) of consecutive numbers, at most `READ` of them."""
    cuts = np.flatnonzero(np.diff(numbers) != 1) + 1
    return [
        (int(first), min(int(first) + READ, int(span[-1]) + 1))
        for span in np.split(numbers, cuts)
        for first in span[::READ]
    ]


def _energy(coords: Floats, basis: SteerableBasis) -> NDArray[np.float64]:
    """(patch,) energy of coordinates in pixels."""
    mapped = coords if basis.is_orthonormal else coords @ basis.gram.astype(np.float32)
    return np.asarray(np.einsum("pc,pc->p", mapped, coords, dtype=np.float64))
