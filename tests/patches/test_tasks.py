"""Extraction on an engine: the same patch sets for any tasks, on any scheduler."""

import numpy as np
import pytest
import zarr
from PIL import Image

import dsc
from dsc.engine import open_engine
from dsc.patches import PatchConfig, extract_many, extract_patches
from dsc.patches import extract as extract_module
from dsc.patches import looking as looking_module
from dsc.patches import positions as positions_module

CONFIG = PatchConfig(diameter=7, min_std=0.05, stride=2, rotate=(0.0, 40.0))
PLAIN = PatchConfig(diameter=7)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Images of several kinds: a Zarr array in chunks, files of two sizes."""
    folder = tmp_path_factory.mktemp("in")
    rng = np.random.default_rng(0)
    large = rng.integers(0, 256, (300, 420), dtype=np.uint8)
    large[100:200, 100:200] = 7
    zarr.create_array(folder / "large.zarr", data=large, chunks=(40, 50))
    for number in range(5):
        Image.fromarray(large[: 60 + 10 * (number % 2), :70]).save(folder / f"{number}.png")
    return folder


def all_of(patches):
    n = patches.n_patches
    return patches.positions(0, n), patches.pixels(0, n)


def assert_same(patches, others):
    assert patches.fingerprint == others.fingerprint
    for one, other in zip(all_of(patches), all_of(others), strict=True):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.fixture(scope="module")
def wanted(folder, tmp_path_factory):
    out = tmp_path_factory.mktemp("out") / "a"
    return extract_patches(folder, out, CONFIG, scheduler="synchronous")


@pytest.mark.parametrize("n_pixels", [1, 3000, 10**9])
@pytest.mark.parametrize("n_workers", [1, 3])
def test_extract__is_the_same_for_any_tasks(
    folder, wanted, tmp_path, monkeypatch, n_pixels, n_workers
):
    monkeypatch.setattr(looking_module, "TASK_PIXELS", n_pixels)
    monkeypatch.setattr(extract_module, "TASK_CHUNKS", 1)
    assert_same(extract_patches(folder, tmp_path / "a", CONFIG, n_workers=n_workers), wanted)


@pytest.mark.parametrize("most", [500, 2**22])
def test_percentile__is_taken_in_tasks_and_the_same_for_any(folder, tmp_path, monkeypatch, most):
    monkeypatch.setattr(looking_module, "SAMPLE", most)
    monkeypatch.setattr(looking_module, "LEAST", most // 10)
    config = PatchConfig(diameter=7, percentile=(2.0, 97.0))
    found = []
    for n_pixels in (1, 3000, 10**9):
        monkeypatch.setattr(looking_module, "TASK_PIXELS", n_pixels)
        out = tmp_path / str(n_pixels)
        found.append(extract_patches(folder, out, config, n_workers=3))
    assert found[0].reading == found[1].reading == found[2].reading
    assert found[0].fingerprint == found[1].fingerprint == found[2].fingerprint
    monkeypatch.setattr(looking_module, "sampled", None)  # in this process, not in the workers
    with open_engine("processes", 2) as engine:
        cluster = extract_patches(folder, tmp_path / "cluster", config, scheduler=engine)
    assert (cluster.reading, cluster.fingerprint) == (found[0].reading, found[0].fingerprint)


@pytest.mark.parametrize("n_windows", [8, 1000])
def test_extract__is_the_same_however_positions_are_cut(
    folder, wanted, tmp_path, monkeypatch, n_windows
):
    monkeypatch.setattr(positions_module, "PIECE", n_windows)
    assert_same(extract_patches(folder, tmp_path / "a", CONFIG, scheduler="synchronous"), wanted)


def test_extract__is_the_same_on_a_cluster(folder, wanted, tmp_path):
    with open_engine("processes", 2) as engine:
        assert_same(extract_patches(folder, tmp_path / "a", CONFIG, scheduler=engine), wanted)
        stored = PatchConfig(diameter=7, materialize="disk", per_image=50)
        here = extract_patches(folder, tmp_path / "b", stored, scheduler=engine)
        there = extract_patches(folder, tmp_path / "c", stored)
        basis, n = here.basis, here.n_patches
        np.testing.assert_array_equal(here.read(basis, 0, n), there.read(basis, 0, n))
        array = np.random.default_rng(1).random((50, 60), np.float32)  # read in this process
        one = extract_patches(array, tmp_path / "d", PLAIN, scheduler=engine)
        assert one.fingerprint == extract_patches(array, tmp_path / "e", PLAIN).fingerprint


def test_extract__makes_many_sets_in_one_graph(folder, tmp_path):
    files = sorted(folder.glob("*.png"))
    calls = []
    with open_engine("threads", 2) as engine:
        compute = type(engine).compute

        def counted(self, values, *stage):
            calls.append(len(values))
            return compute(self, values, *stage)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(type(engine), "compute", counted)
            jobs = [([file], tmp_path / file.name, CONFIG) for file in files]
            sets = extract_many(jobs, engine)
    assert len(calls) == 3  # to look, to number the patches, and to write
    for file, found in zip(files, sets, strict=True):
        assert_same(found, extract_patches(file, tmp_path / f"{file.name}.alone", CONFIG))


def test_extract__names_all_bad_images_whatever_the_tasks(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(looking_module, "TASK_PIXELS", 1)
    bad = np.ones((40, 40), np.float32)
    bad[3, 3] = bad[30, 30] = np.inf
    with pytest.raises(dsc.DscError, match="images: 2 problems") as caught:
        extract_patches([bad, np.ones((30, 30)), bad], tmp_path / "a", CONFIG)
    assert len(str(caught.value).splitlines()) == 3
    assert not (tmp_path / "a").exists()
