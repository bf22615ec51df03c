"""Patch sets in shards: the same patches, in fewer objects."""

import numpy as np
import pytest

import dsc
from dsc.patches import extract
from dsc.patches.schema import patch_layout
from dsc.store import FORMAT, NARROW, check_store, shards

DIAMETER = 5


@pytest.fixture
def scene(image):
    return image("camera")[:70, :80]


@pytest.mark.parametrize("materialize", [None, "disk"])
def test_shards__hold_the_same_patches(scene, tmp_path, monkeypatch, materialize):
    config = dsc.PatchConfig(
        diameter=DIAMETER, materialize=materialize, rotate=(0, 30), center=True, unit=True
    )
    plain = dsc.extract_patches(scene, tmp_path / "plain", config)
    monkeypatch.setattr(extract, "CHUNK", 64)
    monkeypatch.setattr(shards, "LEAST_SHARDS", 8)
    found = dsc.extract_patches(scene, tmp_path / "sharded", config)
    assert plain.store.attributes["dsc_format"] == FORMAT
    assert found.store.attributes["dsc_format"] == NARROW
    assert found.fingerprint == plain.fingerprint
    for name in ("image", "y", "x", "rotation", *(["coords", "rest"] if materialize else [])):
        assert found.store.shards(name)[0] == 8 * found.store.chunks(name)[0] == 512
        np.testing.assert_array_equal(found.store.read(name), plain.store.read(name))
    basis = plain.basis or dsc.disk_basis(DIAMETER)
    for span in ((0, 10), (500, 700), (4100, 4200)):
        np.testing.assert_array_equal(found.read(basis, *span), plain.read(basis, *span))
    assert check_store(tmp_path / "sharded").good


def test_objects__of_a_hundred_million_patches():
    n_patches, names = 10**8, ("image", "y", "x", "coords", "rest")
    lazy = patch_layout(n_patches, 2**16, (), 0)
    assert {-(-n_patches // lazy.shards[name]) for name in names[:3]} == {96}  # 1,526 chunks
    stored = patch_layout(n_patches, 2**14, names[3:], 95 + 97)
    assert {-(-n_patches // stored.shards[name]) for name in names[:3]} == {96}  # 6,104 chunks
    assert {-(-n_patches // stored.shards[name]) for name in names[3:]} == {1526}
