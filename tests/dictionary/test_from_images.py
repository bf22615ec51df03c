"""Learning from images, and coding what was prepared in another way."""

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
    other = dsc.learn(image, run=tmp_path / "run", overwrite=True, **OPTIONS, diameter=5)
    assert other.basis.diameter == 5


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
