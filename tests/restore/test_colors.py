"""Colors restored together: one rotation for all channels of a disk, each in units of its own."""

from dataclasses import replace

import numpy as np
import pytest
import zarr
from numpy.lib.stride_tricks import sliding_window_view

import dsc
from dsc import DscError, denoise, inpaint
from dsc.basis import disk_basis
from dsc.pursuit import Coder
from dsc.restore import denoising, inpainting, pixels
from dsc.restore.disks import average_disks
from dsc.restore.learning import coder_of
from dsc.tiling import machine

FAST = {"diameter": 7, "n_atoms": 8, "n_iterations": 3}
LEVELS = np.array([10.0, 20.0, 30.0])  # noise of the colors


def psnr(found, true):
    return 10 * np.log10(255**2 / np.mean((np.clip(found, 0, 255.0) - true) ** 2))


@pytest.fixture(scope="module")
def true():
    """Waves that are the same in all colors, with other weights."""
    y, x = np.mgrid[:72, :80]
    wave = np.sin(0.6 * x + 0.5 * y) + np.sin(0.02 * (x - 20) ** 2)
    return 120 + np.stack([40 * wave, 30 * wave, -25 * wave], 2)


@pytest.fixture(scope="module")
def noisy(true):
    return true + LEVELS * np.random.default_rng(0).normal(size=true.shape)


@pytest.fixture(scope="module")
def model(true):
    return dsc.learn(
        true.astype(np.uint8), 8, 3, diameter=7, center=True, channel="all", n_iterations=3
    )


@pytest.fixture(scope="module")
def holes(true):
    return np.random.default_rng(1).random(true.shape[:2]) < 0.4


def test_average_disks__of_channels_is_that_of_every_disk(noisy):
    """Disk by disk: projected, coded, weighted by 1 / (C + K), added to its pixels."""
    image = (noisy[:24, :30] / 20).astype(np.float32)
    basis = disk_basis(7).for_channels(3)
    random = np.random.default_rng(0).normal(size=(4, basis.n_coords))
    coder = Coder(random / np.linalg.norm(random, axis=1)[:, None], basis, 3, 60)
    found = average_disks((image,), basis, lambda coords: denoising._code(coder, coords))
    total, cover = np.zeros((2, *image.shape))
    for y, x in np.ndindex(18, 24):
        disk = image[y : y + 7, x : x + 7][basis.mask]  # (pixel, channel)
        mean = disk.mean(0)
        coords = basis.project((disk - mean).T.reshape(1, -1))
        codes = coder.encode(coords, denoising.NOISE * basis.n_pixels)
        coded = basis.reconstruct(coder.decode(codes)).reshape(3, -1).T + mean
        weight = 1 / (3 + codes.used.sum())
        total[y : y + 7, x : x + 7][basis.mask] += weight * coded
        cover[y : y + 7, x : x + 7][basis.mask] += weight
    inner = np.s_[6:-6, 6:-6]
    np.testing.assert_allclose(found, total[inner] / cover[inner], atol=1e-4)


def test_squares__of_colors_are_windows_of_the_image(noisy):
    from dsc.restore.config import RestoreConfig
    from dsc.restore.learning import pick_patches

    image = noisy[:9, :10].astype(np.float32)
    found = pick_patches([image], RestoreConfig(diameter=7))
    expected = sliding_window_view(image, (7, 7), (0, 1)).reshape(-1, 3, 7, 7)
    np.testing.assert_array_equal(found, np.moveaxis(expected, 1, 3))


@pytest.mark.parametrize("sigma", [None, 15.0])
def test_denoise__with_a_model_of_all_colors(true, noisy, model, sigma):
    found = denoise(noisy, sigma, model)
    assert found.shape == true.shape
    assert found.dtype == np.float32
    assert psnr(found, true) > psnr(noisy, true) + (8 if sigma is None else 4)
    np.testing.assert_array_equal(model.denoise(noisy, sigma), found)


def test_together__is_better_than_each_alone_where_colors_are_alike(true, noisy, holes):
    each, together = (denoise(noisy, 20, colors=how, **FAST) for how in ("each", "together"))
    assert psnr(together, true) > psnr(each, true) + 1
    np.testing.assert_array_equal(denoise(noisy, 20, **FAST), together)  # the default
    holed = np.where(holes[..., None], 0, noisy.clip(0, 255)).astype(np.uint8)
    each, together = (inpaint(holed, holes, colors=how, **FAST) for how in ("each", "together"))
    assert psnr(together[holes], true[holes]) > psnr(each[holes], true[holes]) - 0.5
    np.testing.assert_array_equal(inpaint(holed, holes, **FAST), each)  # the default


@pytest.mark.parametrize("how", [{"colors": "each"}, {"colors": "together"}])
def test_colors__one_is_the_same_either_way(noisy, holes, how):
    grey = noisy[..., 0]
    np.testing.assert_array_equal(denoise(grey, 20, **FAST, **how), denoise(grey, 20, **FAST))
    np.testing.assert_array_equal(inpaint(grey, holes, **FAST, **how), inpaint(grey, holes, **FAST))


def test_model__is_used_in_the_units_in_which_it_was_learned(noisy, model):
    """Channels scaled by D, and a model of them so scaled: the result is scaled by D.

    A model says its units by its ranges, too.
    """
    scale = np.array([1.0, 4.0, 0.5])
    expected = denoise(noisy, None, model)
    own = scale[model.basis.channel] * model.atoms
    scaled = replace(model, atoms=np.float32(own / np.linalg.norm(own, axis=1)[:, None]))
    found = denoise(noisy * scale, None, scaled) / scale
    assert np.median(np.abs(found - expected)) < 1e-3
    reading = {"channel": "all", "ranges": [[0.0, 255.0 / s] for s in scale]}
    ranged = replace(scaled, patches={**model.patches, "reading": reading})
    found = denoise(noisy, None, ranged)
    assert np.median(np.abs(found - expected)) < 1e-3
    wrong = denoise(noisy, None, scaled)
    assert np.median(np.abs(wrong - expected)) > 0.1


def test_model__atoms_stay_in_equal_units_and_have_norm_one_in_others(model):
    equal = coder_of(model, 5, [3.0, 3.0, 3.0])
    assert (equal.atoms == model.atoms).all()
    other = coder_of(model, 5, [1.0, 2.0, 4.0])
    np.testing.assert_allclose(np.linalg.norm(other.atoms, axis=1), 1, atol=1e-6)
    rotated = other.basis.steer(other.atoms, 0.7)  # rotation and scaling commute
    first = model.basis.steer(model.atoms, 0.7) / np.array([1, 2, 4])[model.basis.channel]
    first /= np.linalg.norm(first, axis=1)[:, None]
    np.testing.assert_allclose(rotated, first, atol=1e-5)


def test_model__its_channels_are_found_in_their_order(noisy, true, model):
    reading = {"channel": "blue,1,red"}
    backwards = replace(model, patches={**model.patches, "reading": reading})
    plain = replace(model, patches={**model.patches, "reading": {}})
    found = denoise(noisy, 20, backwards)[..., ::-1]
    np.testing.assert_array_equal(found, denoise(noisy[..., ::-1], 20, plain))


@pytest.mark.parametrize("restore", [denoise, inpaint])
def test_model__of_another_number_of_channels_is_refused(noisy, true, model, tmp_path, restore):
    how = {"model": model, "out": tmp_path / "a.zarr"}
    mask = {"mask": np.eye(72, 80)} if restore is inpaint else {}
    with pytest.raises(DscError, match="found 1 color, need the 3 channels of the model: say"):
        restore(noisy[..., 0], **mask, **how)
    two = dsc.learn(
        true.astype(np.uint8), 4, 2, diameter=7, center=True, channel="0,2", n_iterations=1
    )
    assert restore(noisy, **mask, model=two).shape == (72, 80, 2)  # those it was learned from
    two = replace(two, patches={**two.patches, "reading": {}})
    with pytest.raises(DscError, match="found 3 colors, need the 2 channels of the model"):
        restore(noisy, **mask, **{**how, "model": two})
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float64"])
def test_colors__keep_type_alpha_and_constant_colors(noisy, model, holes, dtype):
    image = np.dstack([noisy.clip(0, 255), np.arange(80) * np.ones((72, 1))]).astype(dtype)
    image[..., 1] = 77  # no noise in it
    kept = np.dtype("float32" if dtype == "float64" else dtype)
    for found in (denoise(image, None, model), denoise(image, None, **FAST)):
        assert found.dtype == kept
        assert (found[..., [1, 3]] == image[..., [1, 3]]).all()
        assert (found[..., 0] != image[..., 0]).any()
    for found in (inpaint(image, holes, model), inpaint(image, holes, **FAST)):
        assert found.dtype == kept
        assert (found[~holes] == image[~holes].astype(kept)).all()
        assert (found[..., [1, 3]] == image[..., [1, 3]]).all()
    assert (denoise(image, 0, model) == image.astype(kept)).all()


def test_nan__of_one_color_is_missing_there_alone(noisy, true, model, holes):
    holed = noisy.copy()
    holed[holes, 1] = np.nan
    found = denoise(holed, None, model)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(holed))
    full = inpaint(np.where(np.isnan(holed), np.nan, true), None, model)
    np.testing.assert_array_equal(full[..., 0], true[..., 0].astype(np.float32))
    # the other colors say what is there
    alone = inpaint(np.where(holes, np.nan, true[..., 1]), **FAST)
    assert psnr(full[holes, 1], true[holes, 1]) > psnr(alone[holes], true[holes, 1]) + 3


@pytest.mark.parametrize("is_large", [False, True])
def test_colors__have_the_same_bits_for_any_tile_and_scheduler(
    noisy, holes, model, tmp_path, monkeypatch, is_large
):
    image = noisy.clip(0, 255).astype(np.uint16)
    image[10, 10] = 255
    zarr.create_array(tmp_path / "in.zarr", data=image, chunks=(30, 80, 3))
    np.save(tmp_path / "holes.npy", holes)
    if is_large:
        for name, value in {"SMALL": 0, "WINDOWS": 6, "ACROSS": 24}.items():
            monkeypatch.setattr(pixels, name, value)
    for how in ({"model": model}, {"colors": "together", **FAST}):
        clean = denoise(image, 20, **how)
        full = inpaint(image, holes, **how)
        with monkeypatch.context() as patch:
            patch.setattr(machine, "TILE", 64)
            patch.setattr(inpainting, "TILE", 64)
            stored = denoise(
                tmp_path / "in.zarr", 20, out=tmp_path / "a.zarr", overwrite=True,
                scheduler="synchronous", **how,
            )  # fmt: skip
            filled = inpaint(
                tmp_path / "in.zarr", tmp_path / "holes.npy", out=tmp_path / "b.zarr",
                overwrite=True, **how,
            )  # fmt: skip
        assert stored.dtype == np.uint16
        np.testing.assert_array_equal(np.moveaxis(stored.values, 0, 2), clean)
        np.testing.assert_array_equal(np.moveaxis(filled.values, 0, 2), full)


@pytest.mark.parametrize("restore", [denoise, inpaint])
def test_channels__any_number_is_restored_together(noisy, holes, tmp_path, restore):
    """Five channels: of an array, and of an OME-Zarr, with a model and without."""
    many = np.concatenate([noisy, noisy[..., :2][::-1]], axis=2).clip(0, 255).astype(np.uint8)
    group = zarr.create_group(tmp_path / "a.ome.zarr")
    group.create_array("0", data=np.moveaxis(many, 2, 0), chunks=(1, 32, 32))
    scale = {"axes": [{"name": n} for n in "cyx"], "datasets": [{"path": "0"}]}
    group.attrs["ome"] = {"version": "0.5", "multiscales": [scale]}
    args = (20,) if restore is denoise else (holes,)
    five = dsc.learn(many, 4, 2, diameter=7, center=True, channel="all", n_iterations=1, stride=3)
    for how in ({"model": five}, {"channel": "all", "colors": "together", **FAST}):
        found = restore(many, *args, **how)
        assert (found.shape, found.dtype) == (many.shape, np.uint8)
        np.testing.assert_array_equal(restore(tmp_path / "a.ome.zarr", *args, **how), found)
    assert (found != many).any((0, 1)).all()
    two = restore(tmp_path / "a.ome.zarr", *args, channel="3,0", **FAST)
    assert two.shape == (72, 80, 2)  # the second is no alpha
    assert (two != many[..., [3, 0]]).any((0, 1)).all()
    stored = restore(many, *args, channel="3,0", out=tmp_path / "b.zarr", **FAST)
    assert stored.channel.values.tolist() == ["channel 3", "channel 0"]
    np.testing.assert_array_equal(np.moveaxis(stored.values, 0, 2), two)


def test_model__its_channel_and_level_are_read_again(noisy, tmp_path):
    one = noisy.clip(0, 255).astype(np.uint8)
    group = zarr.create_group(tmp_path / "a.ome.zarr")
    planes = np.moveaxis(one, 2, 0)
    group.create_array("0", data=planes, chunks=(1, 32, 32))
    group.create_array("1", data=planes[:, ::2, ::2], chunks=(1, 32, 32))
    scale = {"axes": [{"name": n} for n in "cyx"], "datasets": [{"path": "0"}, {"path": "1"}]}
    group.attrs["ome"] = {"version": "0.5", "multiscales": [scale]}
    place = tmp_path / "a.ome.zarr"
    cut = {"diameter": 7, "center": True, "n_iterations": 1}
    model = dsc.learn(place, 4, 2, channel="1", level=1, **cut)
    expected = denoise(
        one[::2, ::2, 1], 20, model=replace(model, patches={**model.patches, "reading": {}})
    )
    np.testing.assert_array_equal(denoise(place, 20, model), expected)
    assert denoise(place, 20, model, level=0, channel="all").shape == one.shape
