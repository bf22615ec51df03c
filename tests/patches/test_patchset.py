"""Reading stored patch sets: lazy or materialised, any span, any part, the same bits."""

from __future__ import annotations

import hashlib
import pickle
import shutil
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st

import dsc
from dsc.basis.grid import disk_mask
from dsc.errors import DscError
from dsc.images import cache
from dsc.patches import PatchConfig, as_source, extract_patches, open_patches
from dsc.patches.album import open_album
from dsc.store import open_store
from dsc.store import store as store_module

CONFIG = {"min_std": 0.03, "center": True, "unit": True}


@pytest.fixture(scope="module")
def sets(tmp_path_factory, image):
    """The same patches lazily, materialised, and in small tiles and chunks."""
    from dsc.images import tiles
    from dsc.patches import extract

    root = tmp_path_factory.mktemp("sets")
    images = [
        image("camera")[100:160, 80:150],
        image("coins")[:60, :70],
        image("brick")[:50, :55],
    ]
    lazy = extract_patches(images, root / "lazy", PatchConfig(**CONFIG))
    stored = extract_patches(images, root / "stored", PatchConfig(**CONFIG, materialize="disk"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tiles, "TILE", (16, 20))
        patch.setattr(extract, "CHUNK", 128)
        patch.setattr(extract, "CHUNK_BYTES", 2**15)
        small = extract_patches(images, root / "small", PatchConfig(**CONFIG, materialize="disk"))
    assert small.store.chunks("coords")[0] == 64
    return lazy, stored, small


def windows(patches, images, a, b):
    """The disks by plain slicing, in float64."""
    at, side = patches.positions(a, b), patches.diameter
    mask = disk_mask(side)
    rows = [
        images[i][y : y + side, x : x + side][mask]
        for i, y, x in zip(at.image, at.y, at.x, strict=True)
    ]
    return np.array(rows)


@pytest.mark.parametrize("diameter", [3, 4, 11, 16])
@pytest.mark.parametrize(
    ("center", "unit"), [(False, False), (True, False), (False, True), (True, True)]
)
def test_pixels__are_the_normalised_disks(tmp_path, image, diameter, center, unit):
    images = [
        image("camera")[:40, :45].astype(np.float32),
        image("coins")[:30, :30].astype(np.float32),
    ]
    config = PatchConfig(diameter=diameter, stride=3, center=center, unit=unit)
    patches = extract_patches(images, tmp_path / "a", config)
    expected = windows(patches, images, 0, patches.n_patches).astype(np.float64)
    if center:
        expected -= expected.mean(axis=1, keepdims=True)
    if unit:
        norm = np.linalg.norm(expected, axis=1, keepdims=True)
        expected /= np.where(norm > 1e-9, norm, np.inf)
    found = patches.pixels(0, patches.n_patches)
    assert found.dtype == np.float32
    if not (center or unit):
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("value", [0.0, 0.1, 1 / 3, 12345.678])
def test_pixels__nothing_stays_nothing(tmp_path, center, unit, value):
    flat = np.full((15, 15), value, np.float32)
    patches = extract_patches(flat, tmp_path / "a", PatchConfig(center=center, unit=unit))
    found = patches.pixels(0, 25)
    expected = 0 if center or value == 0 else (97**-0.5 if unit else flat[0, 0])
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    if center:
        assert not found.any()


def test_pixels__the_smallest_variation_counts(tmp_path):
    nearly = np.ones((11, 11), np.float32)
    nearly[5, 5] = np.nextafter(np.float32(1), np.float32(2))
    patches = extract_patches(nearly, tmp_path / "a", PatchConfig(center=True, unit=True))
    np.testing.assert_allclose(np.linalg.norm(patches.pixels(0, 1)), 1, rtol=1e-6)


@settings(max_examples=30)
@given(data=st.data())
def test_read__same_bits_lazy_or_stored_in_any_span_of_any_part(sets, data):
    basis = sets[1].basis
    n = sets[0].n_patches
    whole, rest = _whole(sets[0], basis)
    source = data.draw(st.sampled_from(sets))
    a, b, c, d = sorted(data.draw(st.lists(st.integers(0, n), min_size=4, max_size=4)))
    part = source.part(a, d)
    if data.draw(st.booleans()):
        part = pickle.loads(pickle.dumps(part))
    np.testing.assert_array_equal(part.read(basis, b, c), whole[b:c])
    coords, energy = part.read_with_rest(basis, b, c)
    np.testing.assert_array_equal(coords, whole[b:c])
    np.testing.assert_array_equal(energy, rest[b:c])
    np.testing.assert_array_equal(part.pixels(b, c), _whole_pixels(sets[0])[b:c])


_kept = {}


def _whole(source, basis):
    if "coords" not in _kept:
        _kept["coords"] = source.read_with_rest(basis, 0, source.n_patches)
    return _kept["coords"]


def _whole_pixels(source):
    if "pixels" not in _kept:
        _kept["pixels"] = source.pixels(0, source.n_patches)
    return _kept["pixels"]


def test_read__is_the_basis_on_the_pixels(sets):
    basis = dsc.annular_basis(11)
    coords, rest = sets[0].read_with_rest(basis, 5, 300)
    expected = basis.project_with_rest(sets[0].pixels(5, 300))
    np.testing.assert_array_equal(coords, expected[0])
    np.testing.assert_array_equal(rest, expected[1])


def test_read__more_rows_than_are_projected_at_a_time(sets, monkeypatch):
    from dsc.patches import source

    basis = sets[1].basis
    monkeypatch.setattr(source, "ROWS", 50)
    coords, rest = sets[0].read_with_rest(basis, 0, 220)
    monkeypatch.undo()
    expected = sets[0].read_with_rest(basis, 0, 220)
    np.testing.assert_array_equal(coords, expected[0])
    np.testing.assert_array_equal(rest, expected[1])


def test_read__does_not_need_a_cache(sets, monkeypatch):
    expected = sets[2].pixels(100, 900)
    tiny = cache.ByteCache(1)
    for module in ("album", "stored", "cut"):
        monkeypatch.setattr(f"dsc.patches.{module}.CACHE", tiny)
    np.testing.assert_array_equal(sets[2].pixels(100, 900), expected)


def test_materialised__refuses_another_basis(sets):
    for basis in (dsc.annular_basis(11), dsc.pixel_basis(11), dsc.disk_basis(11).lowpass(0.5)):
        with pytest.raises(DscError, match=r"found coordinates of the disk basis .* need those of"):
            sets[1].read(basis, 0, 10)
    with pytest.raises(DscError, match=r"basis: found diameter 9, need 11"):
        sets[1].read(dsc.disk_basis(9), 0, 10)
    with pytest.raises(DscError, match=r"basis: found diameter 9, need 11"):
        sets[0].read_with_rest(dsc.disk_basis(9), 0, 10)


def test_materialised__takes_its_basis_from_the_store(sets):
    assert sets[0].basis is None
    basis = sets[1].basis
    assert (basis.name, basis.n_coords) == ("disk", 95)
    np.testing.assert_array_equal(sets[1].read(basis, 0, 9), sets[1].read(dsc.disk_basis(11), 0, 9))


@pytest.mark.parametrize("span", [(-1, 5), (5, 4), (0, 10**9)])
def test_span__outside_is_refused(sets, span):
    with pytest.raises(DscError, match=r"patches: found .* need a part of 0 to"):
        sets[0].pixels(*span)
    with pytest.raises(DscError, match=r"patches: found .* need a part of 0 to"):
        sets[0].part(*span)
    with pytest.raises(DscError, match=r"patches: found .* need a part of 10 to 20"):
        sets[0].part(10, 20).read(dsc.disk_basis(11), 5, 15)


def test_part__keeps_what_the_whole_is(sets):
    part = sets[0].part(3, 7)
    for name in ("n_patches", "diameter", "fingerprint", "center", "unit", "label_names"):
        assert getattr(part, name) == getattr(sets[0], name)
    assert part.labels(3, 7) is None
    assert len(pickle.dumps(part)) < 2000


def test_part__works_in_another_process(sets):
    code = (
        "import pickle, sys, hashlib\n"
        "part = pickle.load(sys.stdin.buffer)\n"
        "print(hashlib.sha256(part.pixels(1000, 1500).tobytes()).hexdigest())"
    )
    message = pickle.dumps(sets[0].part(1000, 1500))
    run = subprocess.run(
        [sys.executable, "-c", code], input=message, capture_output=True, check=True
    )
    expected = hashlib.sha256(sets[0].pixels(1000, 1500).tobytes()).hexdigest()
    assert run.stdout.decode().strip() == expected


def test_reading_a_span__touches_its_chunks_only(sets, tmp_path_factory):
    path = tmp_path_factory.mktemp("copy") / "set"
    shutil.copytree(sets[2].store.url, path)
    for name in ("image", "y", "x"):
        (path / name / "c" / "2").unlink()
    patches = open_patches(path)
    assert patches.pixels(0, 128).shape == (128, 97)
    with pytest.raises(DscError, match=r"chunk 2 of array 'image' \(image/c/2\) is missing"):
        patches.pixels(100, 140)


def test_damage__in_a_image_is_an_error(sets, tmp_path_factory):
    path = tmp_path_factory.mktemp("copy") / "set"
    shutil.copytree(sets[0].store.url, path)
    (chunk,) = (path / "images" / "stack_00000" / "c").rglob("0/0/0")
    data = bytearray(chunk.read_bytes())
    data[50] ^= 1
    chunk.write_bytes(data)
    with pytest.raises(DscError, match=r"of array 'images/stack_00000' .* is damaged"):
        open_patches(path).pixels(0, 10)


def test_damage__in_the_table_of_images_is_an_error(sets, tmp_path_factory):
    path = tmp_path_factory.mktemp("copy") / "set"
    shutil.copytree(sets[0].store.url, path)
    metadata = path / "images" / "zarr.json"
    metadata.write_text(metadata.read_text().replace("60", "61"))
    with pytest.raises(DscError, match=r"images/zarr.json is damaged"):
        open_patches(path).pixels(0, 10)


def test_images__of_one_size_share_an_array(tmp_path, image):
    same = [image("camera")[i : i + 20, :30] for i in range(40)]
    other = [image("camera")[:25, :30], image("camera")[:20, :30]]
    patches = extract_patches([*same, *other], tmp_path / "a", PatchConfig(stride=5))
    stacks = [name for name in patches.store.variables if name.startswith("images/")]
    assert [patches.store.shape(name) for name in stacks] == [
        (40, 20, 30),
        (1, 25, 30),
        (1, 20, 30),
    ]
    images = [p.astype(np.float32) for p in [*same, *other]]
    expected = windows(patches, images, 0, patches.n_patches)
    np.testing.assert_array_equal(patches.pixels(0, patches.n_patches), expected)


def test_as_source__takes_sets_and_paths(sets):
    assert as_source(sets[0]) is sets[0]
    assert as_source(sets[0].store.url) == open_patches(sets[0].store.url)
    with pytest.raises(DscError, match=r"nothing is there"):
        as_source("/no/such/patches.zarr")
    for bad in (3, None, object(), {"a": 1}):
        with pytest.raises(DscError, match=rf"patches: found {type(bad).__name__}, need"):
            as_source(bad)


def test_open__other_stores_are_refused(tmp_path, sets):
    from dsc.store import create

    store = create(tmp_path / "codes", "codes", {"patch": 1, "slot": 1}, {}, {})
    for name, values in (("atom", "u2"), ("angle", "u2"), ("coef", "f4")):
        store.write(name, 0, np.zeros((1, 1), values))
    for name in ("error", "rest"):
        store.write(name, 0, np.zeros(1, np.float32))
    store.finish()
    with pytest.raises(DscError, match=r"found a store of codes, need one of patches"):
        open_patches(tmp_path / "codes")
    assert open_store(sets[0].store.url).kind == "patches"


class Counted(dict):
    """A table that knows how often all of it was looked at."""

    n_passes = 0

    def __iter__(self):
        self.n_passes += 1
        return super().__iter__()


def test_open__work_grows_with_the_number_of_image_sizes_not_with_its_square(tmp_path, monkeypatch):
    sizes = [(8 + i % 20, 8 + i // 20) for i in range(400)]
    images = [np.random.default_rng(i).random(size, np.float32) for i, size in enumerate(sizes)]
    extract_patches(images, tmp_path / "p.zarr", PatchConfig(diameter=7, per_image=1))
    opened = []
    found = open_store(tmp_path / "p.zarr")
    table = Counted(store_module._manifest(found).chunks)
    listed = replace(store_module._manifest(found), chunks=table)
    monkeypatch.setattr(store_module, "_manifest", lambda _: listed)
    real = zarr.open_array
    monkeypatch.setattr(zarr, "open_array", lambda *w, **o: opened.append(w) or real(*w, **o))
    open_album.cache_clear()
    store_module._array.cache_clear()
    assert open_patches(tmp_path / "p.zarr").n_patches == 400
    assert len(opened) <= 400 + 4  # each once, and the positions
    assert table.n_passes <= 4
