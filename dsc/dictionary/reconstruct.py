"""A picture from its coded patches: overlapping disks averaged, band by band, without seams."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import tifffile
from numpy.typing import ArrayLike, NDArray
from PIL import Image

from dsc.basis import SteerableBasis
from dsc.dictionary import kernels
from dsc.engine import open_engine, part_tasks
from dsc.errors import DscError
from dsc.patches import cut_grid, open_pictures
from dsc.pursuit import decode, encode

if TYPE_CHECKING:
    from dsc.dictionary.model import Dictionary

BAND = 64  # rows of patches coded by one task

Floats = NDArray[np.float32]


def reconstruct_picture(
    dictionary: Dictionary,
    picture: ArrayLike,
    stride: int,
    scheduler: Any,
    n_workers: int | None,
) -> Floats:
    """The average of all coded patches that cover each pixel; see `Dictionary.reconstruct`.

    The picture is mirrored at its border, so that every pixel is the centre of some patch.
    """
    grey = np.asarray(picture)
    diameter = dictionary.basis.diameter
    if grey.ndim != 2 or min(grey.shape) < diameter:
        raise DscError(
            f"picture: found shape {grey.shape}, need (y, x) of at least {diameter} × {diameter}"
        )
    if not 1 <= stride <= diameter // 2:
        raise DscError(f"stride: found {stride}, need 1 to {diameter // 2}: no pixel left out")
    margin = diameter // 2
    padded = np.pad(grey.astype(np.float32), margin + stride, mode="symmetric")
    tops = range(0, padded.shape[0] - diameter + 1, stride * BAND)
    bands = [(top, padded[top : top + (BAND - 1) * stride + diameter]) for top in tops]
    total = np.zeros(padded.shape)
    cover = np.zeros(padded.shape)
    with open_engine(scheduler, n_workers) as engine:
        tasks = part_tasks(
            reconstruct_band,
            [band for _, band in bands],
            atoms=dictionary.atoms,
            basis=dictionary.basis,
            sparsity=dictionary.config.sparsity,
            n_angles=dictionary.n_angles,
            center=bool(dictionary.patches.get("center")),
            stride=stride,
        )
        for (top, band), (part, weight) in zip(bands, engine.compute(tasks), strict=True):
            total[top : top + len(band)] += part
            cover[top : top + len(band)] += weight
    inner = (slice(margin + stride, -(margin + stride)),) * 2
    return np.asarray(total[inner] / cover[inner], np.float32)


def reconstruct_band(
    band: Floats,
    *,
    atoms: Floats,
    basis: SteerableBasis,
    sparsity: int,
    n_angles: int,
    center: bool,
    stride: int,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Sums of the coded patches of a band of rows, and how many patches cover each pixel."""
    side = basis.diameter
    total, cover = np.zeros(band.shape), np.zeros(band.shape)
    dy, dx = np.nonzero(basis.mask)
    for y in range(0, len(band) - side + 1, stride):
        pixels = cut_grid(band[y : y + side], side, stride)
        means = pixels.mean(axis=1, keepdims=True) if center else np.float32(0)
        codes = encode(basis.project(pixels - means), atoms, basis, sparsity, n_angles)
        coded = basis.reconstruct(decode(codes, atoms, basis)) + means
        kernels.add_disks(coded, y, stride, dy, dx, total, cover)
    return total, cover


def reconstruct_file(
    dictionary: Dictionary, picture: str, out: str, stride: int
) -> dict[str, float | str]:
    """Rebuild a picture file into a new one (.npy, .png or .tif); returns its error."""
    path = Path(out)
    if path.suffix.lower() not in (".npy", ".png", ".tif", ".tiff"):
        raise DscError(f"out: found {out!r}, need a name that ends in .npy, .png or .tif")
    if path.exists():
        raise DscError(f"{out}: exists already: choose another --out, or remove it")
    if not path.parent.is_dir():
        raise DscError(f"{out}: there is no folder {path.parent}: make it first")
    pictures = open_pictures(picture)
    if len(pictures) != 1:
        raise DscError(f"{picture}: found {len(pictures)} pictures, need one")
    grey = pictures[0].whole()
    rebuilt = reconstruct_picture(dictionary, grey, stride, "threads", None)
    suffix = path.suffix.lower()
    if suffix == ".npy":
        with path.open("wb") as file:  # a name would get another suffix
            np.save(file, rebuilt)
    elif suffix == ".png":
        levels = np.round(255 * rebuilt.clip(0, 1)).astype(np.uint8)
        Image.fromarray(levels).save(path, format="PNG")
    else:
        tifffile.imwrite(path, rebuilt)
    return {"mse": float(((rebuilt - grey) ** 2).mean()), "out": out}
