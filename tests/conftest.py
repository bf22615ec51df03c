"""Natural patches, dictionaries learned from them, and how hypothesis runs."""

from __future__ import annotations

import atexit
import os
import tempfile
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from skimage import data

import dsc

# bases are kept in a folder of the session: in nobody's own, and for its child processes, too
_cache = tempfile.TemporaryDirectory(prefix="dsc-cache-")
os.environ["DSC_CACHE_DIR"] = _cache.name
atexit.register(_cache.cleanup)

settings.register_profile("dsc", deadline=None, derandomize=True, max_examples=24)
settings.load_profile("dsc")


def _forget_old_kernels():
    """Remove compiled kernels older than any source.

    Numba looks at a kernel's own file only, not at those whose functions were inlined into it.
    """
    package = Path(dsc.__file__).parent
    newest = max(path.stat().st_mtime for path in package.rglob("*.py"))
    for path in package.rglob("*.nb[ic]"):
        if path.stat().st_mtime < newest:
            path.unlink(missing_ok=True)


_forget_old_kernels()  # nothing is loaded yet: that happens at the first call

IMAGES = ("camera", "coins", "brick", "grass", "gravel", "moon")  # CC0, shipped with skimage


@lru_cache
def _image(name):
    return getattr(data, name)() / 255.0


@lru_cache
def _natural_patches(diameter, n_patches):
    """Random places of all images whose standard deviation in the disk exceeds a tenth."""
    rng = np.random.default_rng(diameter)
    mask = dsc.pixel_basis(diameter).mask
    patches = []
    for name in IMAGES:
        windows = np.lib.stride_tricks.sliding_window_view(_image(name), mask.shape)
        places = rng.permutation(windows.shape[0] * windows.shape[1])[: 12 * n_patches]
        some = windows[np.unravel_index(places, windows.shape[:2])]
        patches.append(some[some[:, mask].std(1) > 0.1][: n_patches // 3])
    patches = rng.permutation(np.concatenate(patches))[:n_patches].astype(np.float32)
    assert len(patches) == n_patches
    return patches


@lru_cache
def _natural_coords(basis, n_patches, mean_removed):
    pixels = _natural_patches(basis.diameter, n_patches)[:, basis.mask]
    coords = basis.project(pixels - mean_removed * pixels.mean(1, keepdims=True))
    coords.setflags(write=False)
    return coords


@lru_cache
def _learned_atoms(basis, n_atoms, mean_removed):
    coords = _natural_coords(basis, 1500, mean_removed)
    coords = coords / np.linalg.norm(coords, axis=1, keepdims=True)
    atoms = dsc.random_atoms(basis, n_atoms, seed=3)
    for _ in range(4):
        codes = dsc.encode(coords, atoms, basis, 3)
        atoms = dsc.solve(dsc.accumulate(coords, codes, atoms, basis), atoms, basis)
    atoms.setflags(write=False)
    return atoms


@pytest.fixture(scope="session")
def image():
    """image(name): (y, x) in [0, 1]."""
    return _image


@pytest.fixture(scope="session")
def natural_patches():
    """natural_patches(diameter, n_patches): (patch, y, x) in [0, 1], read-only."""

    def take(diameter, n_patches):
        patches = _natural_patches(diameter, n_patches)
        patches.setflags(write=False)
        return patches

    return take


@pytest.fixture(scope="session")
def natural_coords():
    """natural_coords(basis, n_patches, mean_removed=True): (patch, coord), read-only."""

    def take(basis, n_patches, mean_removed=True):
        return _natural_coords(basis, n_patches, mean_removed)

    return take


@pytest.fixture(scope="session")
def learned_atoms():
    """learned_atoms(basis, n_atoms=8, mean_removed=True): (atom, coord) after four iterations."""

    def take(basis, n_atoms=8, mean_removed=True):
        return _learned_atoms(basis, n_atoms, mean_removed)

    return take


@pytest.fixture(scope="session")
def forget_s3():
    """forget_s3(): the next S3 server may be another one; connections stay open until the end."""
    from s3fs import S3FileSystem

    kept = []

    def forget():
        kept.extend(S3FileSystem._cache.values())
        S3FileSystem.clear_instance_cache()

    return forget
