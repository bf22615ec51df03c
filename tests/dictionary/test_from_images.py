"""Learning from images, and coding what was prepared in another way."""

import subprocess
import sys

import numpy as np
import pytest

import dsc

OPTIONS = {"n_atoms": 4, "sparsity": 2, "n_iterations": 2}
CUT = {"diameter": 7, "stride": 3, "center": True}


@pytest.fixture(scope="module")
def image():
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:60, :70]
    return np.float32(0.5 + 0.3 * np.sin(0.6 * x + 0.4 * y) + 0.1 * rng.standard_normal((60, 70)))


@pytest.fixture(scope="module")
def patches(image, tmp_path_factory):
    path = tmp_path_factory.mktemp("set") / "patches.zarr"
    return dsc.extract_patches(image, path, dsc.PatchConfig(**CUT))


def test_images__learn_as_from_their_patch_set(image, patches):
    model = dsc.learn(image, **OPTIONS, **CUT)
    assert model.sha256 == dsc.learn(patches, **OPTIONS).sha256
    assert model.patches["fingerprint"] == patches.fingerprint
    assert dsc.plan(image, **OPTIONS, **CUT).plan.n_patches == patches.n_patches


def test_images__several_are_learned_from_together(image):
    both = dsc.learn([image, image[:30]], **OPTIONS, **CUT)
    assert both.patches["n_patches"] > dsc.learn(image, **OPTIONS, **CUT).patches["n_patches"]


def test_images__patches_stay_beside_the_run(image, patches, tmp_path):
    model = dsc.learn(image, run=tmp_path / "run", **OPTIONS, **CUT)
    kept = dsc.open_patches(tmp_path / "run-patches.zarr")
    assert kept.fingerprint == patches.fingerprint
    with pytest.raises(dsc.DscError, match="finished run"):
        dsc.learn(image, run=tmp_path / "run", **OPTIONS, **CUT)
    again = dsc.learn(image, run=tmp_path / "run", resume=True, **OPTIONS, **CUT)
    assert again.sha256 == model.sha256
    with pytest.raises(dsc.DscError, match="other patches"):
        dsc.learn(image, run=tmp_path / "run", resume=True, **OPTIONS, diameter=7)
    with pytest.raises(dsc.DscError, match="other patches"):
        dsc.learn(image[::-1], run=tmp_path / "run", resume=True, **OPTIONS, **CUT)
    other = dsc.learn(image, run=tmp_path / "run", overwrite=True, **OPTIONS, diameter=5)
    assert other.basis.diameter == 5


def test_images__a_patch_set_that_no_run_made_is_not_overwritten(image, tmp_path):
    mine = dsc.extract_patches(image[:20], tmp_path / "run-patches.zarr", dsc.PatchConfig(5))
    with pytest.raises(dsc.DscError, match="other patches"):
        dsc.learn(image, run=tmp_path / "run", overwrite=True, **OPTIONS, **CUT)
    assert dsc.open_patches(tmp_path / "run-patches.zarr").fingerprint == mine.fingerprint


def test_images__a_run_that_is_worked_on_keeps_its_patches(image, tmp_path):
    dsc.learn(image, run=tmp_path / "run", **OPTIONS, **CUT)
    before = dsc.open_patches(tmp_path / "run-patches.zarr").fingerprint
    holder = "import sys, time; from pathlib import Path; from dsc.dictionary import Run\n"
    holder += "with Run(Path(sys.argv[1])).locked():\n    print('locked', flush=True)\n"
    holder += "    time.sleep(60)"
    words = [sys.executable, "-c", holder, str(tmp_path / "run")]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline()
        with pytest.raises(dsc.DscError, match="works on it"):
            dsc.learn(image, run=tmp_path / "run", overwrite=True, **OPTIONS, diameter=5)
        process.kill()
    assert dsc.open_patches(tmp_path / "run-patches.zarr").fingerprint == before


def test_images__what_is_refused_later_does_not_stand_in_the_way(image, tmp_path):
    with pytest.raises(dsc.DscError, match="sparsity"):
        dsc.learn(image, 4, 60, run=tmp_path / "run", **CUT)
    assert not any(tmp_path.iterdir())
    with pytest.raises(dsc.DscError, match="memory_limit"):
        dsc.learn(image, run=tmp_path / "run", memory_limit="1MB", **OPTIONS, **CUT)
    assert dsc.learn(image, run=tmp_path / "run", **OPTIONS, **CUT).mse > 0


def test_images__the_run_may_be_the_present_folder(image, tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    dsc.learn(image, run=".", **OPTIONS, **CUT)
    assert (tmp_path / "here" / "model.zarr").is_dir()
    assert (tmp_path / "here-patches.zarr").is_dir()


def test_images__a_folder_of_others_is_refused_before_patches_are_cut(image, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("a")
    with pytest.raises(dsc.DscError, match="no run of dsc"):
        dsc.learn(image, run=tmp_path / "mine", **OPTIONS, **CUT)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_images__a_diameter_must_be_said(image):
    with pytest.raises(dsc.DscError, match="diameter: found none beside stride"):
        dsc.learn(image, **OPTIONS, stride=2)


def test_prepared__an_array_is_prepared_as_the_dictionary_was(image):
    raw = np.lib.stride_tricks.sliding_window_view(image, (7, 7))[::4, ::4].reshape(-1, 7, 7)
    model = dsc.learn(dsc.ArrayPatches(raw, center=True, unit=True), **OPTIONS)
    by_itself = model.encode(raw)
    by_hand = model.encode(dsc.ArrayPatches(raw, center=True, unit=True))
    assert by_itself.mse == by_hand.mse
    np.testing.assert_array_equal(by_itself.codes.coef, by_hand.codes.coef)


@pytest.mark.parametrize(
    ("center", "unit", "found"),
    [(False, False, "as they were"), (True, False, "mean removed"), (False, True, "norm 1")],
)
def test_prepared__patches_that_say_otherwise_are_refused(image, center, unit, found):
    raw = np.lib.stride_tricks.sliding_window_view(image, (7, 7))[::4, ::4].reshape(-1, 7, 7)
    model = dsc.learn(dsc.ArrayPatches(raw, center=True, unit=True), **OPTIONS)
    with pytest.raises(dsc.DscError, match=found):
        model.encode(dsc.ArrayPatches(raw, center=center, unit=unit))


def test_images__of_dask_and_xarray_learn_as_arrays_do(image, patches):
    import dask.array
    import xarray

    sha256 = dsc.learn(patches, **OPTIONS).sha256
    lazy = dask.array.from_array(image, chunks=20)
    assert dsc.learn(lazy, **OPTIONS, **CUT).sha256 == sha256
    given = [xarray.DataArray(lazy, dims=("y", "x"))]
    assert dsc.learn(given, **OPTIONS, **CUT).sha256 == sha256


def test_images__an_array_of_many_channels_is_refused_in_one_line_and_learned_if_named(image):
    many = np.stack([image] * 5, axis=2)
    with pytest.raises(dsc.DscError) as error:
        dsc.learn(many, **OPTIONS, **CUT)
    text = str(error.value)
    assert text.count("\n") == 1
    assert "found 70 × 5 pixels" in text
    assert 'if its last axis are channels, say which (channel="all", --channel all)' in text
    assert dsc.learn(many, **OPTIONS, **CUT, channel="all").n_channels == 5


@pytest.mark.parametrize("shapes", [[(60, 70)], [(60, 70), (40, 50)], [(60, 70)] * 2])
def test_images__without_a_diameter_are_told_to_give_it(shapes):
    images = [np.zeros(shape, np.float32) for shape in shapes]
    with pytest.raises(dsc.DscError, match=r"to learn from images, say the diameter .*diameter=11"):
        dsc.learn(images[0] if len(images) == 1 else images, **OPTIONS)


def test_encode__says_how_to_cut_patches_for_the_command_line_too(image, tmp_path):
    model = dsc.learn(image, **OPTIONS, **CUT)
    raw = dsc.extract_patches(image, tmp_path / "a.zarr", dsc.PatchConfig(diameter=7, stride=3))
    with pytest.raises(
        dsc.DscError, match=r"cut them with --center and without --unit \(in Python"
    ):
        model.encode(raw)
