"""Time of texture labelling, against the search that computes all correlations first."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from skimage import data
from threadpoolctl import threadpool_limits

from dsc.basis import SteerableBasis, disk_basis
from dsc.bench import kernels
from dsc.bench.images import paper_file
from dsc.bench.rivals import Floats
from dsc.bench.timing import Say, best_of_each
from dsc.patches import cut_grid
from dsc.pursuit import encode, packed_order, search_tables
from dsc.texture import Labeller, read_suite
from dsc.update import accumulate, random_atoms, solve

N_CLASSES, N_ATOMS, DIAMETER, N_ANGLES = 24, 100, 15, 60
PATCHES = 8_000  # of a class to learn from, and of all to label
TEXT = """\
labelling, {title}
  plain search {plain:>8.2f} ns per (atom, patch) {plain_rate:>10,.0f} patches/s
  dsc          {dsc:>8.2f} ns per (atom, patch) {dsc_rate:>10,.0f} patches/s: {ratio:.2f} ×
  of the pairs {outline:.2%} are passed over by the bound of their outlines, {angles:.2%} by the \
angles of\n  their outlines, {evaluated:.2%} are left; {different} of {n_patches:,} labels differ"""


def run(quick: bool, say: Say) -> dict[str, Any]:
    """Label patches of real textures with learned dictionaries, on one thread."""
    basis = disk_basis(DIAMETER)
    n_learning = PATCHES // 4 if quick else PATCHES
    name, pairs = _textures()
    classes = list(pairs)
    with threadpool_limits(limits=1):
        atoms = [
            _learn(_some(train, basis, n_learning), basis, 3 if quick else 6, seed)
            for seed, (train, _) in enumerate(classes)
        ]
    n_each = -(-PATCHES // N_CLASSES)
    coords = np.concatenate([_coords(test, basis)[:n_each] for _, test in classes])
    labeller = Labeller(np.stack(atoms), basis, 1, N_ANGLES, 1)
    result = compare(labeller, coords, 3 if quick else 6)
    title = (
        f"{name}, N = {DIAMETER}, {N_CLASSES} classes of {N_ATOMS} atoms, K = 1, R = {N_ANGLES}, "
        f"{len(coords):,} patches, one thread"
    )
    say(TEXT.format(title=title, **result))
    return {"title": title, **result}


def compare(labeller: Labeller, coords: Floats, repeats: int) -> dict[str, float]:
    """Both searches in turns: nanoseconds per pair, patches a second, shares of the pairs."""
    n_pairs = len(coords) * labeller.atoms.shape[0] * labeller.atoms.shape[1]
    found, outlined, evaluated = labeller.best_by_score(coords)
    search = plain_search(labeller)
    times = best_of_each(
        {
            "plain": lambda: search(coords),
            "dsc": lambda: labeller.best_by_score(coords),
        },
        repeats,
        time.thread_time,
    )
    rates = {f"{name}_rate": len(coords) / seconds for name, seconds in times.items()}
    return {
        **{name: seconds / n_pairs * 1e9 for name, seconds in times.items()},
        **rates,
        "ratio": times["plain"] / times["dsc"],
        "outline": 1 - outlined / n_pairs,
        "angles": (outlined - evaluated) / n_pairs,
        "evaluated": evaluated / n_pairs,
        "different": int((found != search(coords)).sum()),
        "n_patches": len(coords),
    }


def plain_search(labeller: Labeller) -> Callable[[Floats], NDArray[np.int64]]:
    """What finds the best atom of every patch as the first version of dsc did."""
    atoms = labeller.atoms.reshape(-1, labeller.basis.n_coords)
    order = packed_order(labeller.basis)
    tables = search_tables(atoms, labeller.basis, labeller.n_angles)

    def search(coords: Floats) -> NDArray[np.int64]:
        best = np.empty(len(coords), np.int64)
        kernels.plain_best_atoms(coords, len(atoms), order, *tables, best)
        return best

    return search


def _textures() -> tuple[str, Iterator[tuple[list[Floats], Floats]]]:
    """A name, and for each class images to learn from and one to label."""
    if path := paper_file("textures"):
        suite = read_suite(path.parent.parent)
        return suite.name, (
            (
                [_read(one.path) for one in suite.train if one.label == label],
                _read(next(one.path for one in suite.test if one.label == label)),
            )
            for label in suite.label_names
        )
    images = [data.brick(), data.grass(), data.gravel()]
    tiles = [
        image[y : y + 128, x : x + 256].astype(np.float32)
        for image in images
        for y in range(0, 512, 128)
        for x in range(0, 512, 256)
    ]
    pairs = (([tile[:, :128]], tile[:, 128:]) for tile in tiles)
    return "tiles of brick, grass, gravel (CC0, scikit-image)", pairs


def _read(path: Any) -> Floats:
    with Image.open(path) as image:
        return np.asarray(image.convert("L"), np.float32)


def _coords(image: Floats, basis: SteerableBasis) -> Floats:
    return basis.project(cut_grid(image, basis.diameter, 1, center=True))


def _some(images: list[Floats], basis: SteerableBasis, n_patches: int) -> Floats:
    """Coordinates of patches, evenly from all images."""
    coords = np.concatenate([_coords(image, basis)[:: len(images)] for image in images])
    return np.asarray(coords[np.linspace(0, len(coords) - 1, n_patches).astype(int)])


def _learn(coords: Floats, basis: SteerableBasis, n_iterations: int, seed: int) -> Floats:
    atoms = random_atoms(basis, N_ATOMS, seed)
    for _ in range(n_iterations):
        codes = encode(coords, atoms, basis, 1)
        atoms = solve(accumulate(coords, codes, atoms, basis), atoms, basis)
    return atoms
