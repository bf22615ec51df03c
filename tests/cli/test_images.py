"""The commands with images in and images out."""

import json
import struct
import zlib

import numpy as np
import pytest
import tifffile
from PIL import Image

import dsc as library

FAST = ["--n-atoms", "6", "--n-iterations", "2", "--diameter", "7"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Images of stripes in many types, a mask, and a model."""
    folder = tmp_path_factory.mktemp("images")
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:48, :56]
    clean = 0.5 + 0.3 * np.sin(0.7 * x + 0.3 * y)
    noisy = (clean + 0.08 * rng.standard_normal(clean.shape)).clip(0, 1)
    Image.fromarray(np.uint8(255 * noisy)).save(folder / "noisy.png")
    tifffile.imwrite(folder / "noisy16.tif", np.uint16(4000 * noisy))
    np.save(folder / "noisy.npy", np.float32(254 * noisy))
    colors = np.stack([noisy, noisy[::-1], noisy[:, ::-1]], axis=2)
    Image.fromarray(np.uint8(255 * colors)).save(folder / "color.png")
    Image.fromarray(np.uint8(255 * (rng.random(clean.shape) < 0.2))).save(folder / "mask.png")
    Image.fromarray(np.uint8(255 * clean)).save(folder / "clean.png")
    tifffile.imwrite(folder / "color16.tif", np.uint16(4000 * colors), photometric="rgb")
    write_png16(folder / "color16.png", np.uint16(4000 * colors))
    flat = np.where(x < 35, 0, 255 * noisy)
    Image.fromarray(np.uint8(flat)).save(folder / "flat.png")
    np.save(folder / "half.npy", np.float32(0.5 * (x > 28)))
    still = library.learn(
        clean.astype(np.float32), 4, 1, diameter=7, n_iterations=1, basis="pixels"
    )
    still.save(folder / "pixels.zarr")
    options = {"diameter": 7, "center": True, "stride": 2, "n_iterations": 2}
    library.learn(folder / "clean.png", 6, 2, **options).save(folder / "model.zarr")
    return folder


def write_png16(path, pixels):
    """A color PNG of 16 bits, which Pillow does not write."""
    height, width, _ = pixels.shape
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in pixels)
    chunks = {
        b"IHDR": struct.pack(">IIBBBBB", width, height, 16, 2, 0, 0, 0),
        b"IDAT": zlib.compress(rows),
        b"IEND": b"",
    }
    data = b"\x89PNG\r\n\x1a\n"
    for name, content in chunks.items():
        crc = struct.pack(">I", zlib.crc32(name + content))
        data += struct.pack(">I", len(content)) + name + content + crc
    path.write_bytes(data)


def read(path):
    return tifffile.imread(path) if path.suffix == ".tif" else np.asarray(Image.open(path))


@pytest.mark.parametrize(
    ("name", "out", "dtype", "shape"),
    [
        ("noisy.png", "a.png", np.uint8, (48, 56)),
        ("noisy16.tif", "a.tif", np.uint16, (48, 56)),
        ("noisy16.tif", "a.png", np.uint16, (48, 56)),
        ("color.png", "a.png", np.uint8, (48, 56, 3)),
        ("color.png", "a.tif", np.uint8, (48, 56, 3)),
    ],
)
def test_denoise__writes_the_type_that_it_read(dsc, folder, tmp_path, name, out, dtype, shape):
    result = dsc("denoise", folder / name, "--out", tmp_path / out, *FAST)
    assert result.exit_code == 0, result.stderr
    clean, noisy = read(tmp_path / out), read(folder / name)
    assert (clean.dtype, clean.shape) == (dtype, shape)
    assert 0.3 * noisy.max() < clean.max() <= 1.2 * noisy.max()
    assert (
        np.abs(np.diff(clean.astype(int), axis=0)).mean()
        < np.abs(np.diff(noisy.astype(int), axis=0)).mean()
    )


def test_denoise__floats_beyond_one_are_not_white_as_png(dsc, folder, tmp_path):
    dsc("denoise", folder / "noisy.npy", "--out", tmp_path / "a.png", *FAST)
    assert 20 < read(tmp_path / "a.png").std() < 110


def test_denoise__with_a_model_learns_nothing(dsc, folder, tmp_path):
    words = ["--model", folder / "model.zarr", "--sigma", "20", "--json"]
    result = dsc("denoise", folder / "noisy.png", "--out", tmp_path / "a.png", *words)
    assert json.loads(result.stdout)["removed"] > 5
    assert "iteration" not in result.stderr


def test_inpaint__fills_the_mask_and_keeps_the_rest(dsc, folder, tmp_path):
    words = ["--mask", folder / "mask.png", "--out", tmp_path / "a.png", *FAST]
    result = dsc("inpaint", folder / "clean.png", *words)
    assert result.exit_code == 0, result.stderr
    missing, clean = read(folder / "mask.png") > 0, read(folder / "clean.png")
    filled = read(tmp_path / "a.png")
    np.testing.assert_array_equal(filled[~missing], clean[~missing])
    assert np.abs(filled[missing].astype(int) - clean[missing]).mean() < 15


@pytest.mark.parametrize("command", ["orientation", "features"])
def test_maps__are_written_once(dsc, folder, tmp_path, command):
    words = [command, folder / "clean.png", folder / "model.zarr", "--out", tmp_path / "a.zarr"]
    result = dsc(*words, "--json")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["out"] == str(tmp_path / "a.zarr")
    maps = library.open(tmp_path / "a.zarr")
    assert set(maps.sizes.values()) >= {48, 56}
    again = dsc(*words)
    assert again.exit_code == 2
    assert "overwritten" in again.stderr
    assert dsc(*words, "--overwrite").exit_code == 0


@pytest.mark.parametrize(("name", "out"), [("noisy16.tif", "a.tif"), ("clean.png", "a.png")])
def test_reconstruct__says_how_good_it_is_in_human_terms(dsc, folder, tmp_path, name, out):
    words = [folder / name, folder / "model.zarr", "--out", tmp_path / out]
    result = dsc("reconstruct", *words)
    assert result.exit_code == 0, result.stderr
    assert "% of the energy left, PSNR" in result.stdout
    rebuilt, image = read(tmp_path / out), read(folder / name)
    assert rebuilt.dtype == image.dtype
    assert np.abs(rebuilt.astype(float) - image).mean() < 0.1 * image.max()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["denoise", "noisy.png", "--sigma", "-1"], "sigma: found -1"),
        (["denoise", "noisy.png", "--diameter", "55"], "need at least 55"),
        (["inpaint", "clean.png", "--mask", "color16"], "color16"),
        (["denoise", "absent.png"], "absent.png"),
        (["denoise", "color16.tif"], "PNG does not hold"),
        (["denoise", "color16.png"], "colors of 16 bits"),
        (["denoise", "flat.png"], "give sigma"),
        (["inpaint", "clean.png"], "no missing pixel"),
        (["orientation", "clean.png", "model.zarr"], "ends in .zarr"),
        (["orientation", "clean.png", "model.zarr", "--sigma", "0.1"], "sigma: found 0.1"),
        (["features", "clean.png", "pixels.zarr"], "need atoms that rotate"),
    ],
)
def test_bad_input__is_one_line_and_leaves_nothing(dsc, folder, tmp_path, words, message):
    given = [folder / word if word.endswith(("png", "tif", "zarr")) else word for word in words]
    out = "a.zarr" if "sigma" in message and "orientation" in words else "a.png"
    out = "a.zarr" if words[0] == "features" else out
    result = dsc(*given, "--out", tmp_path / out)
    assert result.exit_code == 2
    assert message in result.stderr
    assert not any(tmp_path.iterdir())


def test_reconstruct__floats_keep_their_levels_as_png(dsc, folder, tmp_path):
    dsc("reconstruct", folder / "half.npy", folder / "model.zarr", "--out", tmp_path / "a.png")
    levels = read(tmp_path / "a.png")
    assert abs(int(levels[:, 45:].mean()) - 128) < 4  # 0.5 of 1, not the largest
    assert levels[:, :10].mean() < 4


def test_denoise__never_removes_more_than_the_noise(dsc, folder, tmp_path):
    words = ["--sigma", "0.5", "--json", *FAST]
    result = dsc("denoise", folder / "noisy.png", "--out", tmp_path / "a.png", *words)
    assert json.loads(result.stdout)["removed"] < 0.7


def test_maps__never_replace_the_image_that_they_are_of(dsc, folder, tmp_path):
    rebuilt, model = tmp_path / "r.zarr", folder / "model.zarr"
    assert dsc("reconstruct", folder / "clean.png", model, "--out", rebuilt).exit_code == 0
    for image in (rebuilt, rebuilt / "0"):
        result = dsc("orientation", image, model, "--out", rebuilt, "--overwrite")
        assert result.exit_code == 2, image
        assert "is the image itself" in result.stderr
    assert dsc("check", rebuilt).exit_code == 0


def test_reconstruct__json_has_no_infinity(dsc, folder, tmp_path):
    np.save(tmp_path / "zero.npy", np.zeros((20, 20), np.float32))
    words = [tmp_path / "zero.npy", folder / "model.zarr", "--out", tmp_path / "a.npy", "--json"]
    assert json.loads(dsc("reconstruct", *words).stdout)["psnr"] is None
