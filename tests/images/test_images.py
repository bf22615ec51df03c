"""Every format of images, and what is wrong with some."""

from __future__ import annotations

import struct
import warnings

import numpy as np
import pytest
import tifffile
import zarr
from PIL import Image

from dsc.errors import DscError
from dsc.images import open_images
from dsc.patches import PatchConfig, extract_patches

RNG = np.random.default_rng(0)
BYTES = RNG.integers(0, 256, (20, 24), np.uint8)
WORDS = RNG.integers(0, 65536, (20, 24), np.uint16)
COLOR = RNG.integers(0, 256, (20, 24, 3), np.uint8)
LUMA = (COLOR @ np.array([0.299, 0.587, 0.114])) / 255


def whole(image):
    return image.read(0, image.shape[0], 0, image.shape[1])


def only(inputs):
    (image,) = open_images(inputs)
    return whole(image)


def sun_raster(pixels):
    """A Sun raster file: big-endian header, no color map, rows of even length."""
    height, width = pixels.shape
    header = struct.pack(">8I", 0x59A66A95, width, height, 8, height * width, 1, 0, 0)
    return header + pixels.tobytes()


@pytest.mark.parametrize("suffix", ["png", "tif", "tiff", "bmp", "gif", "PNG"])
def test_read__bytes_become_fractions_exactly(tmp_path, suffix):
    Image.fromarray(BYTES).save(tmp_path / f"a.{suffix}")
    found = only(tmp_path / f"a.{suffix}")
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, (BYTES / 255).astype(np.float32))


def test_read__sun_raster(tmp_path):
    (tmp_path / "a.ras").write_bytes(sun_raster(BYTES))
    np.testing.assert_array_equal(only(tmp_path / "a.ras"), (BYTES / 255).astype(np.float32))


def test_read__jpeg(tmp_path):
    smooth = np.tile(np.arange(0, 240, 10, dtype=np.uint8), (20, 1))
    Image.fromarray(smooth).save(tmp_path / "a.jpg", quality=100)
    np.testing.assert_allclose(only(tmp_path / "a.jpg"), smooth / 255, atol=0.01)


def test_read__16_bits(tmp_path):
    Image.fromarray(WORDS).save(tmp_path / "a.png")
    tifffile.imwrite(tmp_path / "a.tif", WORDS)
    tifffile.imwrite(tmp_path / "b.tif", WORDS, byteorder=">")
    for image in open_images(tmp_path):
        np.testing.assert_array_equal(whole(image), (WORDS / 65535).astype(np.float32))


def test_read__bool(tmp_path):
    bits = BYTES > 128
    Image.fromarray(bits).save(tmp_path / "a.png")
    Image.fromarray(bits).save(tmp_path / "a.tif")
    np.save(tmp_path / "a.npy", bits)
    for image in open_images(tmp_path):
        np.testing.assert_array_equal(whole(image), bits)


@pytest.mark.parametrize("dtype", ["<f2", "<f4", ">f8"])
def test_read__floats_stay_as_they_are(tmp_path, dtype):
    values = (RNG.standard_normal((20, 24)) * 100).astype(dtype)
    np.save(tmp_path / "a.npy", values)
    np.testing.assert_array_equal(only(tmp_path / "a.npy"), values.astype(np.float32))
    np.testing.assert_array_equal(only(values), values.astype(np.float32))


@pytest.mark.parametrize("suffix", ["png", "tif", "bmp", "npy"])
def test_read__color_is_weighted_as_in_rec_601(tmp_path, suffix):
    path = tmp_path / f"a.{suffix}"
    np.save(path, COLOR) if suffix == "npy" else Image.fromarray(COLOR).save(path)
    np.testing.assert_allclose(only(path), LUMA, atol=1e-7)


def test_read__alpha_is_dropped(tmp_path):
    alpha = RNG.integers(0, 256, (20, 24, 1), np.uint8)
    Image.fromarray(np.concatenate([COLOR, alpha], axis=2)).save(tmp_path / "a.png")
    layers = [Image.fromarray(BYTES), Image.fromarray(alpha[:, :, 0])]
    Image.merge("LA", layers).save(tmp_path / "b.png")
    color, grey = open_images(tmp_path)
    np.testing.assert_allclose(whole(color), LUMA, atol=1e-7)
    np.testing.assert_array_equal(whole(grey), (BYTES / 255).astype(np.float32))


def test_read__grey_in_color_is_exact(tmp_path):
    Image.fromarray(np.stack([BYTES] * 3, axis=2)).save(tmp_path / "a.png")
    np.testing.assert_array_equal(only(tmp_path / "a.png"), (BYTES / 255).astype(np.float32))


def test_read__palettes(tmp_path):
    few = COLOR // 128 * 128
    image = Image.fromarray(few).quantize(8)
    luma = np.asarray(image.convert("RGB")) @ np.array([0.299, 0.587, 0.114]) / 255
    for suffix in ("png", "gif", "tif", "bmp"):
        image.save(tmp_path / f"a.{suffix}")
        np.testing.assert_allclose(only(tmp_path / f"a.{suffix}"), luma, atol=1e-7)


@pytest.mark.parametrize(
    "options",
    [
        {"tile": (16, 16)},
        {"compression": "zlib", "tile": (16, 16)},
        {"photometric": "miniswhite"},
        {"bigtiff": True},
    ],
)
def test_tiff__tiles_compression_and_white_zero(tmp_path, options):
    stored = 255 - BYTES if options.get("photometric") == "miniswhite" else BYTES
    tifffile.imwrite(tmp_path / "a.tif", stored, **options)
    np.testing.assert_array_equal(only(tmp_path / "a.tif"), (BYTES / 255).astype(np.float32))


@pytest.mark.parametrize("compression", ["tiff_lzw", "packbits", "tiff_adobe_deflate"])
def test_tiff__compressions_of_other_programs(tmp_path, compression):
    Image.fromarray(BYTES).save(tmp_path / "a.tif", compression=compression)
    np.testing.assert_array_equal(only(tmp_path / "a.tif"), (BYTES / 255).astype(np.float32))


def test_tiff__planes_of_color(tmp_path):
    planes = np.moveaxis(COLOR, 2, 0)
    tifffile.imwrite(tmp_path / "a.tif", planes, photometric="rgb", planarconfig="separate")
    np.testing.assert_allclose(only(tmp_path / "a.tif"), LUMA, atol=1e-7)


def test_tiff__every_page_is_a_image_and_reduced_ones_are_not(tmp_path):
    with tifffile.TiffWriter(tmp_path / "a.tif") as file:
        file.write(BYTES)
        file.write(BYTES[::2, ::2], subfiletype=1)
        file.write(BYTES[:12])
    first, second = open_images(tmp_path / "a.tif")
    assert (first.name, second.name) == ("a.tif[0]", "a.tif[1]")
    np.testing.assert_array_equal(whole(first), (BYTES / 255).astype(np.float32))
    np.testing.assert_array_equal(whole(second), (BYTES[:12] / 255).astype(np.float32))


def test_tiff__pages_that_only_pillow_decodes_are_the_right_ones(tmp_path):
    frames = [Image.fromarray(BYTES), Image.fromarray(BYTES[::-1].copy())]
    frames[0].save(
        tmp_path / "a.tif", save_all=True, append_images=frames[1:], compression="tiff_lzw"
    )
    found = [whole(image) for image in open_images(tmp_path / "a.tif")]
    np.testing.assert_array_equal(found[1], found[0][::-1])


def test_gif__every_frame_is_a_image(tmp_path):
    frames = [Image.fromarray(np.full((9, 9), value, np.uint8)) for value in (0, 100, 200)]
    frames[0].save(tmp_path / "a.gif", save_all=True, append_images=frames[1:])
    values = [whole(image).mean() * 255 for image in open_images(tmp_path / "a.gif")]
    np.testing.assert_allclose(values, [0, 100, 200], atol=1)


def test_array__stacks_are_images(tmp_path):
    stack = np.stack([BYTES, BYTES[::-1]])
    np.save(tmp_path / "a.npy", stack)
    for inputs in (tmp_path / "a.npy", stack):
        found = [whole(image) for image in open_images(inputs)]
        np.testing.assert_array_equal(found[0], (BYTES / 255).astype(np.float32))
        np.testing.assert_array_equal(found[1], found[0][::-1])


def test_window__is_cut_and_checked():
    (image,) = open_images(COLOR)
    np.testing.assert_array_equal(image.read(3, 9, 4, 24), whole(image)[3:9, 4:24])
    with pytest.raises(DscError, match=r"need a window inside 20 × 24"):
        image.read(0, 21, 0, 4)


@pytest.mark.parametrize("version", [2, 3])
def test_zarr__arrays_and_stacks(tmp_path, version):
    for name, values in (("a", BYTES), ("b", np.stack([WORDS, WORDS[::-1]])), ("c", COLOR)):
        zarr.save_array(tmp_path / f"{name}.zarr", values, zarr_format=version)
    plane, first, second, color = open_images(tmp_path)
    np.testing.assert_array_equal(whole(plane), (BYTES / 255).astype(np.float32))
    np.testing.assert_array_equal(whole(first), (WORDS / 65535).astype(np.float32))
    np.testing.assert_array_equal(whole(second), whole(first)[::-1])
    np.testing.assert_allclose(whole(color), LUMA, atol=1e-7)


@pytest.mark.parametrize("wrap", [lambda m: m, lambda m: {"ome": m}])
def test_zarr__ome_level_0(tmp_path, wrap):
    axes = [{"name": name} for name in "tcyx"]
    scales = {"multiscales": [{"axes": axes, "datasets": [{"path": "0"}, {"path": "1"}]}]}
    group = zarr.create_group(tmp_path / "a.ome.zarr", attributes=wrap(scales))
    values = RNG.integers(0, 256, (1, 2, 20, 24), np.uint8)
    for path, level in (("0", values), ("1", values[..., ::2, ::2])):
        group.create_array(path, data=level, chunks=(1, 1, 8, 8))
    images = open_images(tmp_path / "a.ome.zarr")
    assert [image.shape for image in images] == [(20, 24)] * 2
    for channel, image in enumerate(images):
        np.testing.assert_array_equal(whole(image), (values[0, channel] / 255).astype(np.float32))


def test_zarr__windows_read_only_their_tiles(tmp_path):
    array = zarr.create_array(
        tmp_path / "a.zarr", shape=(3000, 5000), chunks=(500, 500), dtype="u1"
    )
    array[1000:1500, 2000:2500] = 255
    broken = tmp_path / "a.zarr" / "c" / "2" / "4"
    (image,) = open_images(tmp_path / "a.zarr", missing_as_fill=True)
    assert image.read(1400, 1600, 2400, 2600).sum() == 100 * 100
    broken.write_bytes(b"no chunk")
    (image,) = open_images(tmp_path / "a.zarr", missing_as_fill=True)
    assert image.read(2000, 2100, 4000, 4200).sum() == 0
    with pytest.raises(DscError, match=r"a\.zarr.*cannot be read"):
        image.read(1400, 1600, 2400, 2600)


def test_inputs__all_that_is_wrong_is_named_at_once(tmp_path):
    Image.fromarray(BYTES).save(tmp_path / "good.png")
    Image.fromarray(BYTES[:5, :5]).save(tmp_path / "small.png")
    (tmp_path / "empty.png").write_bytes(b"")
    (tmp_path / "text.tif").write_text("no image")
    content = (tmp_path / "good.png").read_bytes()
    (tmp_path / "cut.png").write_bytes(content[: len(content) // 2])
    np.save(tmp_path / "whole.npy", np.zeros((20, 20), np.int32))
    np.save(tmp_path / "inf.npy", np.full((20, 20), np.inf))
    np.save(tmp_path / "object.npy", np.array([{}, {}]), allow_pickle=True)
    with pytest.raises(DscError) as error:
        extract_patches([tmp_path, tmp_path / "absent.png"], tmp_path / "out", PatchConfig())
    text = str(error.value)
    assert text.startswith("images: 8 problems")
    for name in ("small", "empty", "text", "cut", "whole", "inf", "object", "absent"):
        assert f"{name}." in text
    assert "good" not in text
    assert "found 5 × 5 pixels, need at least 11 × 11" in text
    assert "found pixels of type int32, need bool, uint8, uint16 or floats" in text
    assert not (tmp_path / "out").exists()


def test_inputs__large_images_do_not_warn(tmp_path, monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 300)
    Image.fromarray(BYTES).save(tmp_path / "a.png")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert only(tmp_path / "a.png").shape == BYTES.shape
