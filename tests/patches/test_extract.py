"""Which patches are taken, and in which order."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.lib.stride_tricks import sliding_window_view
from PIL import Image

from dsc.errors import DscError
from dsc.images import tiles
from dsc.images.image import open_images
from dsc.patches import PatchConfig, extract_patches, open_patches
from dsc.patches.scan import Grid, scan, scan_band
from dsc.store import open_dataset

needs_data = pytest.mark.skipif(
    "DSC_DATA" not in os.environ, reason="DSC_DATA does not name the folder of the paper's images"
)


@pytest.fixture
def scene(image):
    """The image; `image` is the number of one in these tests."""
    return image


def oracle(scene, config):
    """(y, x) of the windows whose sample standard deviation exceeds the limit."""
    side, stride = config.diameter, config.stride
    windows = sliding_window_view(scene.astype(np.float64), (side, side))[::stride, ::stride]
    std = windows.reshape(*windows.shape[:2], -1).std(axis=2, ddof=1)
    kept = std > config.min_std if config.min_std else np.ones(std.shape, bool)
    return np.argwhere(kept) * stride


def positions(patches):
    at = patches.positions(0, patches.n_patches)
    return np.stack([at.image, at.y, at.x], axis=1)


@needs_data
@pytest.mark.parametrize(
    ("name", "n_windows", "n_patches"),
    [("cameraman.tif", 60_516, 17_330), ("brodatz_D103.gif", 396_900, 396_855)],
)
def test_filter__keeps_the_papers_counts(tmp_path, name, n_windows, n_patches):
    path = Path(os.environ["DSC_DATA"]) / name
    kept = extract_patches(path, tmp_path / "a", PatchConfig(diameter=11, min_std=0.1))
    assert kept.n_patches == n_patches
    assert extract_patches(path, tmp_path / "b", PatchConfig(diameter=11)).n_patches == n_windows


@settings(max_examples=25)
@given(
    shape=st.tuples(st.integers(12, 40), st.integers(12, 60)),
    diameter=st.integers(3, 12),
    stride=st.integers(1, 7),
    min_std=st.sampled_from([0.0, 0.2, 0.28, 0.29]),
    tile=st.tuples(st.integers(1, 50), st.integers(1, 70)),
)
def test_filter__is_numpys_whatever_the_tiles(shape, diameter, stride, min_std, tile):
    values = np.random.default_rng(shape[0]).random(shape).astype(np.float32)
    config = PatchConfig(diameter=diameter, stride=stride, min_std=min_std)
    (scene,) = open_images(values)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tiles, "TILE", tile)
        seen = scan([scene], config)
    found = np.stack(seen.grid.positions(np.concatenate(list(seen.patches()))), axis=1)
    np.testing.assert_array_equal(found, oracle(values, config))
    assert seen.n_patches == len(found)


def test_filter__is_strict_and_sees_offsets(scene):
    values = scene("coins")[:60, :80].astype(np.float32) + 1e4  # large values, small deviations
    config = PatchConfig(min_std=0.1)
    (shifted,) = open_images(values)
    found = np.concatenate(list(scan([shifted], config).patches()))
    expected = oracle(values, config)
    np.testing.assert_array_equal(found, expected[:, 0] * 70 + expected[:, 1])


def test_filter__zero_keeps_constant_windows(tmp_path):
    flat = np.full((20, 20), 0.5)
    assert extract_patches(flat, tmp_path / "a", PatchConfig()).n_patches == 100
    with pytest.raises(DscError, match=r"no patch with a standard deviation above 0.1 among 100"):
        extract_patches(flat, tmp_path / "b", PatchConfig(min_std=0.1))
    assert not (tmp_path / "b").exists()


def test_order__is_image_row_column(tmp_path, scene):
    images = [scene("brick")[:30, :40], scene("coins")[:25, :33]]
    config = PatchConfig(stride=3, min_std=0.02)
    found = positions(extract_patches(images, tmp_path / "a", config))
    expected = [
        np.insert(oracle(p.astype(np.float32), config), 0, i, axis=1) for i, p in enumerate(images)
    ]
    np.testing.assert_array_equal(found, np.concatenate(expected))


def class_folder(root, scene, n=3):
    for name in ("brick", "grass", "gravel"):
        (root / name).mkdir(parents=True)
        for i in range(n):
            part = scene(name)[20 * i : 20 * i + 40, :40]
            Image.fromarray((part * 255).astype(np.uint8)).save(root / name / f"{i}.png")
    return root


def test_per_image__takes_so_many_of_each(tmp_path, scene):
    folder = class_folder(tmp_path / "in", scene)
    patches = extract_patches(folder, tmp_path / "a", PatchConfig(per_image=50))
    found = positions(patches)
    np.testing.assert_array_equal(np.bincount(found[:, 0]), [50] * 9)
    everything = {tuple(row) for row in positions(extract_patches(folder, tmp_path / "b"))}
    assert {tuple(row) for row in found} <= everything
    np.testing.assert_array_equal(found, np.array(sorted(map(tuple, found))))
    few = extract_patches(folder, tmp_path / "c", PatchConfig(per_image=10_000))
    assert few.n_patches == len(everything)


def test_per_class__takes_so_many_of_each(tmp_path, scene):
    folder = class_folder(tmp_path / "in", scene)
    patches = extract_patches(folder, tmp_path / "a", PatchConfig(per_class=70))
    labels = patches.labels(0, patches.n_patches)
    np.testing.assert_array_equal(np.bincount(labels), [70] * 3)
    assert patches.label_names == ("brick", "grass", "gravel")
    assert len(np.unique(patches.positions(0, 210).image)) == 9
    np.testing.assert_array_equal(labels, patches.positions(0, 210).image // 3)


def test_per_class__needs_classes(tmp_path, scene):
    with pytest.raises(DscError, match=r"per_class: found images without a class"):
        extract_patches(scene("camera"), tmp_path / "a", PatchConfig(per_class=5))


def test_subset__depends_on_the_seed_alone(tmp_path, scene, monkeypatch):
    image = scene("brick")[:80, :90]
    config = PatchConfig(per_image=100, min_std=0.05)
    first = extract_patches(image, tmp_path / "a", config)
    monkeypatch.setattr(tiles, "TILE", (16, 16))
    again = extract_patches(image, tmp_path / "b", config)
    other = extract_patches(image, tmp_path / "c", PatchConfig(per_image=100, min_std=0.05, seed=1))
    np.testing.assert_array_equal(positions(first), positions(again))
    assert (positions(first) != positions(other)).any()


def test_subset__is_spread_evenly(tmp_path, scene):
    image = scene("camera")[:110, :110]
    patches = extract_patches(image, tmp_path / "a", PatchConfig(per_image=4000))
    at = positions(patches)[:, 1:]
    quarters = np.bincount(at[:, 0] // 50 * 2 + at[:, 1] // 50)
    np.testing.assert_allclose(quarters, 1000, atol=100)


def test_extract__small_chunks_change_nothing(tmp_path, scene, monkeypatch):
    from dsc.patches import extract
    from dsc.patches import scan as scan_module

    images = [scene("camera")[:50, :60], scene("coins")[:70, :40]]
    config = PatchConfig(min_std=0.02, rotate=(0.0, 30.0))
    whole = extract_patches(images, tmp_path / "a", config)
    monkeypatch.setattr(extract, "CHUNK", 64)
    monkeypatch.setattr(scan_module, "PIECE", 128)
    small = extract_patches(images, tmp_path / "b", config)
    assert small.store.chunks("image") == (64,)
    assert small.fingerprint == whole.fingerprint
    np.testing.assert_array_equal(positions(small), positions(whole))
    n = whole.n_patches
    np.testing.assert_array_equal(small.positions(0, n).rotation, whole.positions(0, n).rotation)
    np.testing.assert_array_equal(small.pixels(0, n), whole.pixels(0, n))


def test_fingerprint__is_of_all_that_defines_the_patches(tmp_path, scene):
    image = scene("camera")[:40, :40]
    changed = image.copy()
    changed[-1, -1] += 0.01
    variants = {
        "same": (image, {}),
        "pixel": (changed, {}),
        "center": (image, {"center": True}),
        "unit": (image, {"unit": True}),
        "diameter": (image, {"diameter": 12}),
        "stride": (image, {"stride": 2}),
        "rotate": (image, {"rotate": (10.0,)}),
        "subset": (image, {"per_image": 20}),
        "seed": (image, {"per_image": 20, "seed": 1}),
    }
    found = {
        name: extract_patches(values, tmp_path / name, PatchConfig(**options)).fingerprint
        for name, (values, options) in variants.items()
    }
    assert len(set(found.values())) == len(found)
    again = extract_patches(image, tmp_path / "again", PatchConfig(materialize="pixels"))
    assert again.fingerprint == found["same"]


def test_extract__refuses_what_is_there_before_looking(tmp_path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a").write_text("keep")
    with pytest.raises(DscError, match=r"it is not overwritten"):
        extract_patches("no such image.png", tmp_path / "notes")


def test_extract__an_image_that_changes_meanwhile_is_an_error(tmp_path, scene, monkeypatch):
    from dsc.patches import extract

    image = scene("camera")[:40, :40].copy()
    create = extract._create

    def change(*arguments):
        image[3, 3] += 0.5
        return create(*arguments)

    monkeypatch.setattr(extract, "_create", change)
    with pytest.raises(DscError, match=r"array 0: changed while it was being read"):
        extract_patches(image, tmp_path / "a")
    with pytest.raises(DscError, match=r"unfinished store of patches"):
        open_patches(tmp_path / "a")


def test_dataset__says_where_patches_are(tmp_path, scene):
    folder = class_folder(tmp_path / "in", scene, n=1)
    config = PatchConfig(per_image=5, rotate=(45.0,))
    extract_patches(folder, tmp_path / "a", config)
    dataset = open_dataset(tmp_path / "a")
    assert set(dataset) == {"image", "y", "x", "label", "rotation"}
    assert dict(dataset.sizes) == {"patch": 15}
    assert dataset.attrs["image_names"] == ["brick/0.png", "grass/0.png", "gravel/0.png"]
    assert dataset.attrs["label_names"] == ["brick", "grass", "gravel"]
    assert dataset.attrs["configuration"]["per_image"] == 5
    np.testing.assert_allclose(dataset.rotation, np.pi / 4, rtol=1e-6)


def test_zarr__is_referred_to_and_the_same_as_a_copy(tmp_path, scene):
    values = (scene("camera")[:300, :400] * 255).astype(np.uint8)
    zarr.create_array(tmp_path / "in.zarr", data=values, chunks=(64, 100))
    config = PatchConfig(min_std=0.1, center=True)
    referred = extract_patches(tmp_path / "in.zarr", tmp_path / "a", config)
    copied = extract_patches(values, tmp_path / "b", config)
    assert not list((tmp_path / "a").glob("images/stack*"))
    np.testing.assert_array_equal(positions(referred), positions(copied))
    n = copied.n_patches
    np.testing.assert_array_equal(referred.pixels(0, n), copied.pixels(0, n))


@pytest.mark.parametrize("break_it", ["change", "remove", "delete a chunk", "resize"])
def test_zarr__a_changed_reference_is_an_error(tmp_path, scene, break_it):
    values = (scene("camera")[:300, :400] * 255).astype(np.uint8)
    array = zarr.create_array(tmp_path / "in.zarr", data=values, chunks=(64, 100))
    extract_patches(tmp_path / "in.zarr", tmp_path / "a")
    patches = open_patches(tmp_path / "a")
    if break_it == "change":
        array[290, 390] ^= 1
    elif break_it == "remove":
        (tmp_path / "in.zarr").rename(tmp_path / "elsewhere.zarr")
    elif break_it == "delete a chunk":
        (tmp_path / "in.zarr" / "c" / "4" / "3").unlink()
    else:
        array.resize((200, 400))
    with pytest.raises(DscError, match=r"in\.zarr: .*bring .* back"):
        patches.pixels(0, patches.n_patches)


@pytest.mark.parametrize(
    ("shape", "chunks", "tile"),
    [
        ((640, 640), (1, 1), (256, 640)),
        ((30, 50), (1, 1), (30, 50)),
        ((9000, 100_000), (1, 1), (32, 8192)),
        ((9000, 9000), (512, 512), (512, 2560)),
        ((9000, 9000), (100, 3000), (200, 3000)),
    ],
)
def test_tiles__fit_images_and_chunks(shape, chunks, tile):
    assert tiles.tile_shape(shape, chunks) == tile


def test_huge__images_are_read_by_tile(tmp_path):
    array = zarr.create_array(
        tmp_path / "in.zarr", shape=(20_000, 30_000), chunks=(1000, 1000), dtype="u1"
    )
    rng = np.random.default_rng(0)
    array[9000:9040, 20_000:20_040] = rng.integers(0, 256, (40, 40), np.uint8)
    (scene,) = open_images(tmp_path / "in.zarr", missing_as_fill=True)
    config = PatchConfig(diameter=11, min_std=0.2, stride=5)
    band = scan_band([scene], slice(9000, 10_000), config)
    index = np.flatnonzero(np.unpackbits(band.bits, count=band.count)) + band.first
    at = np.stack(Grid.of(scene.shape, config).positions(index), axis=1)
    assert len(at) > 30
    assert (at >= [8990, 19_990]).all()
    assert (at < [9040, 20_040]).all()
