"""Images with known orientation, and dictionaries learned from them."""

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

import dsc
from dsc.experiments.oriented import fibres, rings


def learn_from(images, n_atoms, sparsity, diameter=11):
    windows = [
        sliding_window_view(one, (diameter, diameter)).reshape(-1, diameter, diameter)
        for one in images
    ]
    some = np.random.default_rng(0).permutation(sum(map(len, windows)))[:3000]
    patches = np.concatenate(windows)[some].astype(np.float32)
    return dsc.learn(
        dsc.ArrayPatches(patches, center=True), n_atoms, sparsity, n_iterations=6, progress=False
    )


@pytest.fixture(scope="session")
def lines():
    """One atom per patch, learned from rings: structures of all orientations."""
    return learn_from([rings(128).image], 3, 1)


@pytest.fixture(scope="session")
def crossed():
    """Two atoms per patch, learned from fibres with noise."""
    rng = np.random.default_rng(0)
    drawn = [fibres(128, 6, seed)[0].image for seed in range(4)]
    return learn_from([one + rng.normal(0, 0.1, one.shape) for one in drawn], 4, 2, diameter=13)


@pytest.fixture(scope="session")
def natural(natural_patches):
    """Two of six atoms per patch, learned from photographs."""
    patches = dsc.ArrayPatches(natural_patches(9, 2000), center=True)
    return dsc.learn(patches, 6, 2, n_iterations=3, progress=False)


@pytest.fixture(scope="session")
def unit(natural_patches):
    """The same from patches of norm one."""
    patches = dsc.ArrayPatches(natural_patches(9, 2000), center=True, unit=True)
    return dsc.learn(patches, 6, 2, n_iterations=3, progress=False)
