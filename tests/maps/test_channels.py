"""Images of several channels, and with ranges, as a dictionary was learned from them."""

import numpy as np
import pytest
import tifffile
import zarr
from PIL import Image

import dsc
from dsc.images import open_images

OPTIONS = {"n_atoms": 5, "sparsity": 2, "n_iterations": 2, "diameter": 7, "center": True}


@pytest.fixture(scope="module")
def color():
    y, x = np.mgrid[:48, :56]
    waves = [np.sin(0.6 * x + 0.4 * y), np.sin(0.3 * x - 0.5 * y), np.cos(0.2 * x)]
    noise = np.random.default_rng(0).normal(size=(48, 56, 3))
    return np.uint8((120 + 80 * np.stack(waves, 2) + 10 * noise).clip(0, 255))


@pytest.fixture(scope="module")
def model(color):
    return dsc.learn(color, channel="all", **OPTIONS)


@pytest.fixture(scope="module")
def places(color, tmp_path_factory):
    """The same image as a file, a Zarr array and an OME-Zarr with an axis of channels."""
    folder = tmp_path_factory.mktemp("places")
    Image.fromarray(color).save(folder / "a.png")
    zarr.create_array(folder / "a.zarr", data=color, chunks=(16, 16, 3))
    group = zarr.create_group(folder / "a.ome.zarr")
    group.create_array("0", data=np.moveaxis(color, 2, 0), chunks=(1, 16, 16))
    scale = {"axes": [{"name": n} for n in "cyx"], "datasets": [{"path": "0"}]}
    group.attrs["ome"] = {"version": "0.5", "multiscales": [scale]}
    return [folder / name for name in ("a.png", "a.zarr", "a.ome.zarr")]


def test_model__of_channels_maps_any_image_of_them(color, model, places):
    values = (color / 255).astype(np.float32)
    wanted = [model.rebuild(values).image, model.features(values), model.orientation(values).angle]
    assert wanted[0].shape == color.shape
    for place in places:
        found = [model.rebuild(place).image, model.features(place), model.orientation(place).angle]
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_rebuild__of_channels_has_the_same_bits_for_any_tile(color, model, tmp_path):
    whole = model.rebuild(color / 255, n_workers=1)
    stored = model.rebuild(color / 255, out=tmp_path / "a.zarr", n_workers=2)
    np.testing.assert_array_equal(stored.image, whole.image)
    assert stored.share == whole.share < 0.1
    bytes_ = model.rebuild(color, out=tmp_path / "b.zarr")
    assert bytes_.image.dtype == np.uint8
    np.testing.assert_array_equal(bytes_.image, model.rebuild(color).pixels(np.dtype("uint8")))


def test_features__of_channels_rotate_with_the_image(color, model):
    here = model.features(color / 255).values
    there = model.features(np.rot90(color) / 255).values
    np.testing.assert_allclose(there, np.rot90(here, axes=(1, 2)), atol=2e-3)


def test_orientation__of_channels_is_theirs():
    """One wave in all channels: the orientation that each has."""
    y, x = np.mgrid[:64, :64]
    wave = np.sin(0.8 * (x * np.cos(0.5) - y * np.sin(0.5)))  # across: 0.5 rad counter-clockwise
    image = np.stack([wave, -0.5 * wave, 0.3 * wave], 2)
    model = dsc.learn(image, 2, 1, n_iterations=4, diameter=9, center=True, channel="all")
    angle = model.orientation(image).angle.values[12:-12, 12:-12]
    np.testing.assert_allclose(np.median(angle), np.degrees(0.5) - 90, atol=2)


@pytest.mark.parametrize("use", ["rebuild", "orientation", "features"])
def test_model__of_another_number_of_channels_is_refused(color, model, use):
    with pytest.raises(dsc.DscError, match="found 1 channel, need 3, as the dictionary has"):
        getattr(model, use)(color[..., 0] / 255)


def test_ranges__are_those_of_the_dictionary(color, tmp_path):
    """A model of 12 bits in 16 gives back what it reads, and sees no other scale."""
    deep = color[..., 0].astype(np.uint16) * 16 + 100
    tifffile.imwrite(tmp_path / "deep.tif", deep)
    options = {**OPTIONS, "center": False, "sparsity": 4}
    model = dsc.learn(tmp_path / "deep.tif", range=(100.0, 4180.0), **options)
    plain = dsc.learn(color[..., 0], **options)
    assert model.mse == pytest.approx(plain.mse, rel=1e-3)
    rebuilt = model.rebuild(tmp_path / "deep.tif")
    pixels = rebuilt.pixels(deep.dtype)
    assert pixels.dtype == np.uint16
    stored = model.rebuild(tmp_path / "deep.tif", out=tmp_path / "a.zarr")
    np.testing.assert_array_equal(stored.image, pixels)
    assert (stored.share, stored.psnr) == (rebuilt.share, rebuilt.psnr)
    error = pixels.astype(float) - deep
    assert np.mean(error**2) / deep.var() == pytest.approx(rebuilt.share, rel=0.02)
    np.testing.assert_allclose(
        model.features(tmp_path / "deep.tif"),
        plain.features(color[..., 0] / 255),
        rtol=1e-3,
        atol=1e-4,
    )


def test_methods__are_the_functions(color):
    grey = color[..., 0].astype(np.float32)
    model = dsc.learn(grey, **OPTIONS)
    holes = np.random.default_rng(0).random(grey.shape) < 0.2
    np.testing.assert_array_equal(
        model.denoise(grey, 10.0), dsc.denoise(grey, sigma=10.0, model=model)
    )
    np.testing.assert_array_equal(model.inpaint(grey, holes), dsc.inpaint(grey, holes, model))
    assert model.orientation(grey).equals(dsc.orientation(grey, model))
    assert model.features(grey, "covariant").equals(dsc.features(grey, model, "covariant"))


def test_arrays__may_have_more_channels_or_just_those(color, model):
    alpha = np.concatenate([color, color[..., :1]], axis=2) / 255
    found = model.rebuild(alpha).image
    np.testing.assert_array_equal(found[..., :3], model.rebuild(color / 255).image)
    np.testing.assert_array_equal(found[..., 3], alpha[..., 3].astype(np.float32))
    two = dsc.learn(color, channel="0,2", **OPTIONS)
    some = two.rebuild(color[..., [0, 2]] / 255).image
    np.testing.assert_array_equal(some, two.rebuild(color / 255).image)


def test_images__opened_otherwise_are_refused(color, tmp_path):
    np.save(tmp_path / "deep.npy", color[..., 0].astype(np.uint16))
    model = dsc.learn(tmp_path / "deep.npy", range=(0.0, 255.0), **OPTIONS)
    (plain,) = open_images(tmp_path / "deep.npy")
    with pytest.raises(dsc.DscError, match="opened with other ranges"):
        model.rebuild(plain)
    (ranged,) = open_images(tmp_path / "deep.npy", range=(0.0, 255.0))
    wanted = model.rebuild(tmp_path / "deep.npy").image
    np.testing.assert_array_equal(model.rebuild(ranged).image, wanted)


@pytest.mark.parametrize("range_", [None, (0.0, 128.0)])
def test_rebuild__of_colors_keeps_alpha(color, tmp_path, range_):
    alpha = np.uint8(np.arange(56) * np.ones((48, 1)))
    Image.fromarray(np.dstack([color, alpha])).save(tmp_path / "a.png")
    Image.fromarray(color).save(tmp_path / "b.png")
    model = dsc.learn(color, channel="all", range=range_, **OPTIONS)
    expected, found = model.rebuild(tmp_path / "b.png"), model.rebuild(tmp_path / "a.png")
    assert (found.share, found.psnr) == (expected.share, expected.psnr)
    pixels = found.pixels(np.dtype("uint8"))
    np.testing.assert_array_equal(pixels[..., 3], alpha)
    np.testing.assert_array_equal(pixels[..., :3], expected.pixels(np.dtype("uint8")))
    stored = model.rebuild(tmp_path / "a.png", out=tmp_path / "a.zarr")
    np.testing.assert_array_equal(stored.image, pixels)
    assert dsc.open(tmp_path / "a.zarr").attrs["channels"][-1] == "alpha"


def test_maps__of_a_color_array_are_those_of_its_file(color, tmp_path):
    """By a model of one channel: color becomes grey."""
    model = dsc.learn(color, **OPTIONS)
    Image.fromarray(color).save(tmp_path / "a.png")
    values = color.astype(np.float32) / 255
    found, expected = model.features(values), model.features(tmp_path / "a.png")
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-5)
    expected = model.orientation(tmp_path / "a.png").coherence
    np.testing.assert_allclose(model.orientation(values).coherence, expected, atol=1e-3)


def test_page__of_a_stack_and_channels_are_chosen(color, tmp_path):
    """A model learned of a stack is applied to an image of it, by any application."""
    stack = np.moveaxis(color, 2, 0)
    tifffile.imwrite(tmp_path / "a.tif", stack, photometric="minisblack", metadata={"axes": "ZYX"})
    model = dsc.learn(tmp_path / "a.tif", **OPTIONS)
    with pytest.raises(dsc.DscError, match=r"found 3 images, need one: say which one \(--page\)"):
        model.features(tmp_path / "a.tif")
    with pytest.raises(dsc.DscError, match="page: found 3, need at most 2"):
        model.features(tmp_path / "a.tif", page=3)
    one = (stack[1] / 255).astype(np.float32)
    found = model.features(tmp_path / "a.tif", page=1)
    np.testing.assert_allclose(found, model.features(one), rtol=1e-3, atol=1e-5)
    assert model.orientation(tmp_path / "a.tif", page=1).sizes == {"y": 48, "x": 56}
    np.testing.assert_array_equal(
        model.denoise(tmp_path / "a.tif", 10.0, page=1), model.denoise(stack[1], 10.0)
    )
    rebuilt = model.rebuild(tmp_path / "a.tif", page=1).image
    np.testing.assert_allclose(rebuilt, model.rebuild(one).image, atol=1e-5)
    with pytest.raises(dsc.DscError, match="found an array beside level or page"):
        model.features(one, page=1)
    red = dsc.learn(color, channel="0", **OPTIONS)
    assert not red.features(color / 255).equals(red.features(color / 255, channel="1"))


@pytest.mark.parametrize("name", ["denoise", "inpaint", "orientation", "features"])
def test_model__may_be_a_path_and_nothing_else_is_taken(color, model, tmp_path, name):
    values = color.astype(np.float32)
    values[3, 4] = np.nan
    model.save(tmp_path / "model.zarr")
    function = getattr(dsc, name)
    found = function(values, model=tmp_path / "model.zarr")
    expected = function(values, model=model)
    if name == "orientation":
        found, expected = found.to_dataarray(), expected.to_dataarray()
    np.testing.assert_array_equal(found, expected)
    with pytest.raises(dsc.DscError, match=r"model: found int, need a dictionary \(`dsc.learn`\)"):
        function(values, model=7)
    with pytest.raises(dsc.DscError, match="run7"):
        function(values, model="run7")
    if name in ("orientation", "features"):
        with pytest.raises(dsc.DscError, match="model: found NoneType"):
            function(values, None)
