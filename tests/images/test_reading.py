"""Channels, levels and ranges: which values of an image are taken, and what 0 and 1 stand for."""

import numpy as np
import pytest
import tifffile
import zarr
from PIL import Image

import dsc
from dsc.images import open_images

RNG = np.random.default_rng(0)
COLOR = RNG.integers(0, 256, (30, 40, 3), dtype=np.uint8)
STACK = RNG.integers(0, 4096, (2, 3, 32, 48), dtype=np.uint16)  # time, channel, y, x


@pytest.fixture
def ome(tmp_path):
    """An OME-Zarr with two levels and three named channels."""
    group = zarr.create_group(tmp_path / "a.ome.zarr")
    group.create_array("0", data=STACK, chunks=(1, 1, 16, 16))
    group.create_array("1", data=STACK[..., ::2, ::2], chunks=(1, 1, 16, 16))
    group.attrs["ome"] = {
        "version": "0.5",
        "multiscales": [
            {
                "axes": [{"name": name} for name in "tcyx"],
                "datasets": [{"path": "0"}, {"path": "1"}],
            }
        ],
        "omero": {"channels": [{"label": name} for name in ("DAPI", "GFP", "RFP")]},
    }
    return tmp_path / "a.ome.zarr"


def wholes(inputs, **options):
    return [image.whole() for image in open_images(inputs, **options)]


@pytest.mark.parametrize(
    ("wanted", "numbers"), [("all", [0, 1, 2]), ("2", [2]), ("2,0", [2, 0]), ("Green", [1])]
)
def test_channel__of_color(wanted, numbers):
    found = open_images(COLOR, channel=wanted)
    assert [image.n_channels for image in found] == [len(numbers)] * len(numbers)
    for image, number in zip(found, numbers, strict=True):
        np.testing.assert_array_equal(image.whole(), (COLOR[..., number] / 255).astype("f4"))


def test_channel__alpha_is_none():
    alpha = np.concatenate([COLOR, COLOR[..., :1]], axis=2)
    assert len(open_images(alpha, channel="all")) == 3


@pytest.mark.parametrize("wanted", ["GFP", "1"])
def test_channel__of_a_stack(ome, wanted):
    found = wholes(ome, channel=wanted)
    assert len(found) == 2
    for time in range(2):
        np.testing.assert_array_equal(found[time], (STACK[time, 1] / 65535).astype("f4"))


def test_channel__all_of_a_stack_are_one_image(ome):
    found = open_images(ome, channel="all")
    assert {image.n_channels for image in found} == {3}
    values = [image.whole() for image in found]
    np.testing.assert_array_equal(values, (STACK.reshape(6, 32, 48) / 65535).astype("f4"))


def test_channel__of_a_tiff_that_names_its_axes(tmp_path):
    tifffile.imwrite(tmp_path / "a.tif", STACK, metadata={"axes": "TCYX"}, ome=True)
    found = open_images(tmp_path / "a.tif", channel="2,1")
    assert {image.n_channels for image in found} == {2}
    wanted = STACK[:, [2, 1]].reshape(4, 32, 48) / 65535
    np.testing.assert_array_equal([i.whole() for i in found], wanted.astype("f4"))


@pytest.mark.parametrize("wanted", ["3", "-1", "purple", "0,", "0,0", ""])
def test_channel__that_is_not_there_is_refused(wanted):
    with pytest.raises(dsc.DscError, match="channel"):
        open_images(COLOR, channel=wanted)


@pytest.mark.parametrize("wanted", ["blue", "red", "alpha", "1"])
def test_channel__of_grey_has_no_color(tmp_path, wanted):
    Image.fromarray(COLOR[..., :2]).save(tmp_path / "with alpha.png")
    for grey in (COLOR[..., 0], tmp_path / "with alpha.png"):
        with pytest.raises(dsc.DscError, match="channel"):
            open_images(grey, channel=wanted)
    with pytest.raises(dsc.DscError, match="channel"):
        open_images(COLOR, channel="alpha")


def test_channel__numbers_must_agree(tmp_path):
    np.save(tmp_path / "a.npy", COLOR)
    np.save(tmp_path / "b.npy", COLOR[..., 0])
    with pytest.raises(dsc.DscError, match=r"channel: found 1 in b.npy.*, 3 in a.npy"):
        open_images(tmp_path, channel="all")


def test_level__of_an_ome_zarr(ome):
    found = wholes(ome, level=1)
    np.testing.assert_array_equal(found[0], (STACK[0, 0, ::2, ::2] / 65535).astype("f4"))
    with pytest.raises(dsc.DscError, match="level: found 2, need at most 1"):
        open_images(ome, level=2)


def test_level__of_a_tiff(tmp_path):
    full = RNG.integers(0, 255, (64, 96), dtype=np.uint8)
    with tifffile.TiffWriter(tmp_path / "a.tif") as file:
        file.write(full, subifds=1, tile=(32, 32))
        file.write(full[::2, ::2], subfiletype=1, tile=(32, 32))
    np.testing.assert_array_equal(wholes(tmp_path / "a.tif")[0] * 255, full)
    (small,) = wholes(tmp_path / "a.tif", level=1)
    np.testing.assert_array_equal(small * 255, full[::2, ::2])
    with pytest.raises(dsc.DscError, match="level: found 2, need at most 1"):
        open_images(tmp_path / "a.tif", level=2)


def test_level__of_what_has_none_is_refused(tmp_path):
    np.save(tmp_path / "a.npy", COLOR)
    for inputs in (COLOR, tmp_path / "a.npy"):
        with pytest.raises(dsc.DscError, match="level: found 1, need 0: only OME-Zarr and TIFF"):
            open_images(inputs, level=1)


@pytest.mark.parametrize("dtype", ["int16", "uint16", "int32", "float64"])
def test_range__makes_any_numbers_values(dtype):
    pixels = RNG.integers(-50 if dtype[0] != "u" else 0, 4000, (20, 30)).astype(dtype)
    (found,) = wholes(pixels, range=(100.0, 1100.0))
    np.testing.assert_allclose(found, (pixels - 100.0) / 1000, rtol=1e-6, atol=1e-7)


def test_range__is_asked_for_where_a_type_has_none():
    (image,) = open_images(np.ones((20, 20), np.int16))
    with pytest.raises(dsc.DscError, match=r"type int16.*--range MIN MAX"):
        image.whole()
