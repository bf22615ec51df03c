"""Real textures: slices of a suite of photographs in the folder named by DSC_DATA."""

import os
from pathlib import Path

import pytest

import dsc
from dsc.texture.suite import read_suite

pytestmark = pytest.mark.skipif(
    "DSC_DATA" not in os.environ,
    reason="set DSC_DATA to the folder with Outex_tl84 (see the README)",
)

OPTIONS = {
    "n_atoms": 20, "diameter": 11, "n_iterations": 4, "patches_per_image": 300, "stride": 3,
}  # fmt: skip
N_TRAIN, N_TEST = 5, 3  # pictures of every class; at every angle
SLICES = {
    "canvas002, carpet004, tile005": ("canvas002", "carpet004", "tile005"),
    "canvas001, canvas003, canvas005": ("canvas001", "canvas003", "canvas005"),
}


def first(samples, n, key):
    """The first n samples of every value of a key."""
    kept = {}
    for sample in samples:
        kept.setdefault(key(sample), []).append(sample)
    return [sample for group in kept.values() for sample in group[:n]]


@pytest.fixture(scope="module")
def accuracy():
    """accuracy(name of a slice, method)."""
    made = {}

    def get(name, method):
        if (name, method) not in made:
            suite = read_suite(Path(os.environ["DSC_DATA"]) / "Outex_tl84", classes=SLICES[name])
            train = first(suite.train, N_TRAIN, lambda s: s.label)
            test = first(suite.test, N_TEST, lambda s: (s.label, s.angle))
            assert (len(train), len(test)) == (3 * N_TRAIN, 3 * 8 * N_TEST)
            model = dsc.TextureClassifier(method=method, **OPTIONS)
            model.fit([s.path for s in train], [s.label for s in train])
            made[name, method] = model.score([s.path for s in test], [s.label for s in test])
        return made[name, method]

    return get


@pytest.mark.parametrize("name", SLICES)
def test_outex__rotational_knows_turned_photographs(accuracy, name):
    assert accuracy(name, "rotational") >= 0.95


@pytest.mark.parametrize("name", SLICES)
def test_outex__rotational_beats_standard(accuracy, name):
    assert accuracy(name, "rotational") >= accuracy(name, "standard") + 0.1
