"""The commands with images in and images out."""

import json
import re
import shutil
import struct
import subprocess
import sys
import zlib

import numpy as np
import pytest
import tifffile
import zarr
from PIL import Image

import dsc as library
from dsc.images import open_images

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
    alpha = np.uint8(x)[..., None]
    Image.fromarray(np.concatenate([np.uint8(255 * colors), alpha], 2)).save(folder / "rgba.png")
    grey_alpha = np.concatenate([np.uint8(255 * noisy)[..., None], alpha], 2)
    Image.fromarray(grey_alpha).save(folder / "la.png")
    Image.fromarray(clean > 0.5).save(folder / "bool.png")
    tifffile.imwrite(folder / "int16.tif", np.int16(4000 * noisy))
    np.save(folder / "inf.npy", np.where(x == 3, np.inf, np.float32(noisy)))
    np.save(folder / "constant.npy", np.ones((30, 30), np.float32))
    zarr.create_array(folder / "noisy.zarr", data=np.uint8(255 * noisy), chunks=(20, 30))
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


def test_png__of_floats_says_what_is_black_and_white(dsc, folder, tmp_path):
    whole = np.rint(np.load(folder / "noisy.npy"))
    cases = {"whole": whole, "unit": whole / 254, "other": whole - 90.5}
    words = ["--model", folder / "model.zarr", "--sigma", 0]
    for name, values in cases.items():
        np.save(tmp_path / f"{name}.npy", values)
        page = ["--report", tmp_path / f"{name}.html"]
        out = ["--out", tmp_path / f"{name}.png", *page, "--json"]
        result = dsc("denoise", tmp_path / f"{name}.npy", *out, *words)
        low, high = {"whole": (0, 255), "unit": (0, 1)}.get(name, (values.min(), values.max()))
        assert json.loads(result.stdout)["levels"] == [low, high]
        note = f"note: the values {low:g} and {high:g} are black and white in"
        assert (note in result.stderr) == (name == "other")
    assert (read(tmp_path / "whole.png") == whole).all()  # nothing was stretched


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


def test_out__png_has_no_missing_pixels_and_says_so(dsc, folder, tmp_path):
    image = np.load(folder / "half.npy").astype(np.float32)
    image[3, 4:9] = np.nan
    np.save(tmp_path / "nan.npy", image)
    words = ["denoise", tmp_path / "nan.npy", "--model", folder / "model.zarr", "--sigma", "0.1"]
    said = dsc(*words, "--out", tmp_path / "a.png")
    assert "note: 5 missing values (NaN) are black in" in said.stderr
    assert (read(tmp_path / "a.png")[3, 4:9] == 0).all()
    assert "note" not in dsc(*words, "--out", tmp_path / "a.npy").stderr
    assert np.isnan(np.load(tmp_path / "a.npy")).sum() == 5


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


KINDS = ["png", "tif", "npy", "zarr"]
RESTORE = {
    "denoise": ["--sigma", "0.2", *FAST],
    "inpaint": ["--mask", "mask.png", *FAST],
    "reconstruct": ["model.zarr"],
    "orientation": ["model.zarr"],
    "features": ["model.zarr"],
}


def run(dsc, folder, command, image, out, *words):
    own = [folder / w if w.endswith((".png", ".zarr")) else w for w in RESTORE[command]]
    return dsc(command, folder / image, "--out", out, *own, *words)


@pytest.mark.parametrize("command", RESTORE)
@pytest.mark.parametrize("name", ["bool.png", "la.png", "rgba.png", "int16.tif", "noisy.zarr"])
def test_types__are_taken_by_all_commands_or_by_none(dsc, folder, tmp_path, command, name):
    out = tmp_path / "a.zarr"
    result = run(dsc, folder, command, name, out)
    if name == "int16.tif":
        assert result.exit_code == 2
        assert "found pixels of type int16, need bool, uint8, uint16 or floats" in result.stderr
        assert not any(tmp_path.iterdir())
        return
    assert result.exit_code == 0, result.stderr
    values = library.open(out)["0"].values
    if name in ("la.png", "rgba.png") and command in ("denoise", "inpaint", "reconstruct"):
        alpha = read(folder / name)[..., -1]
        np.testing.assert_array_equal(values[-1], alpha)
        assert len(values) == (2 if name == "la.png" else 4)


@pytest.mark.parametrize("command", ["denoise", "inpaint", "reconstruct"])
@pytest.mark.parametrize(
    ("name", "out"),
    [("rgba.png", "a.png"), ("la.png", "a.png"), ("color16.tif", "a.tif"), ("bool.png", "a.npy")],
)
def test_files__keep_type_and_channels(dsc, folder, tmp_path, command, name, out):
    result = run(dsc, folder, command, name, tmp_path / out)
    assert result.exit_code == 0, result.stderr
    found = np.load(tmp_path / out) if out.endswith("npy") else read(tmp_path / out)
    image = read(folder / name)
    assert (found.dtype, found.shape) == (image.dtype, image.shape)
    if name in ("rgba.png", "la.png"):
        assert (found[..., -1] == image[..., -1]).all()


def test_reconstruct__of_colors_is_that_of_each(dsc, folder, tmp_path):
    result = run(dsc, folder, "reconstruct", "color.png", tmp_path / "a.npy", "--json")
    found, image = np.load(tmp_path / "a.npy"), read(folder / "color.png")
    errors = []
    for color in range(3):
        Image.fromarray(image[..., color]).save(tmp_path / "one.png")
        one = run(
            dsc, folder, "reconstruct", tmp_path / "one.png", tmp_path / f"{color}.npy", "--json"
        )
        assert (np.load(tmp_path / f"{color}.npy") == found[..., color]).all()
        errors.append(json.loads(one.stdout)["mse"])
    assert json.loads(result.stdout)["mse"] == pytest.approx(np.mean(errors))


@pytest.mark.parametrize("command", ["denoise", "inpaint", "reconstruct"])
@pytest.mark.parametrize("kind", KINDS)
def test_out__is_replaced_only_if_asked_for(dsc, folder, tmp_path, command, kind):
    out = tmp_path / f"a.{kind}"
    assert run(dsc, folder, command, "noisy.png", out).exit_code == 0
    again = run(dsc, folder, command, "noisy.png", out)
    assert again.exit_code == 2
    assert "exists" in again.stderr
    assert "--overwrite" in again.stderr
    assert run(dsc, folder, command, "noisy.png", out, "--overwrite").exit_code == 0
    assert not list(tmp_path.glob(".*"))  # no lock is left
    if kind != "zarr":
        refused = run(dsc, folder, command, "noisy.png", out, "--resume")
        assert "need an OME-Zarr" in refused.stderr


def test_out__is_never_the_image(dsc, folder, tmp_path):
    shutil.copy(folder / "noisy.png", tmp_path / "a.png")
    before = (tmp_path / "a.png").read_bytes()
    result = run(dsc, folder, "denoise", tmp_path / "a.png", tmp_path / "a.png", "--overwrite")
    assert "is the image itself" in result.stderr
    assert (tmp_path / "a.png").read_bytes() == before


def test_out__a_file_has_one_writer_at_a_time(dsc, folder, tmp_path):
    out = tmp_path / "a.png"
    code = (
        "import sys, time; from pathlib import Path; from dsc.locks import lock, lock_path\n"
        "lock(lock_path(Path(sys.argv[1])), 'it'); print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, out], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout.readline() == "held\n"
        result = run(dsc, folder, "denoise", "noisy.png", out)
        other.communicate("")
    assert result.exit_code == 2
    assert "works on it since" in result.stderr
    assert not out.exists()
    assert run(dsc, folder, "denoise", "noisy.png", out).exit_code == 0  # the other is gone


def test_denoise__says_the_noise(dsc, folder, tmp_path):
    result = dsc("denoise", folder / "noisy.png", "--out", tmp_path / "a.zarr", *FAST)
    assert "of the energy removed from" in result.stdout
    assert "(estimated)" in result.stdout
    words = ["--out", tmp_path / "b.zarr", *FAST, "--json"]
    found = json.loads(dsc("denoise", folder / "noisy.png", *words).stdout)
    assert list(found)[:3] == ["share", "removed", "sigma"]
    assert 0 < found["share"] < 1
    assert 10 < found["sigma"] < 35  # 20 was added
    words = ["--out", tmp_path / "c.zarr", *FAST, "--json"]
    found = json.loads(dsc("denoise", folder / "color.png", *words).stdout)
    assert len(found["sigma"]) == 3


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["denoise", "noisy.png", "--sigma", "1e6"], "sigma: found 1e+06, need at most"),
        (["denoise", "noisy.png", "--diameter", "55"], "need at least 55"),
        (["denoise", "inf.npy"], "infinite values"),
        (["inpaint", "inf.npy"], "infinite values"),
        (["inpaint", "clean.png"], "no missing pixel"),
        (["inpaint", "clean.png", "--mask", "rgba.png"], "all pixels missing"),
        (["inpaint", "constant.npy", "--mask", "mask.png"], "mask: found shape (48, 56)"),
        (["reconstruct", "inf.npy", "model.zarr"], "found inf at row 0, column 3"),
        (["orientation", "inf.npy", "model.zarr"], "found inf at row 0, column 3"),
        (["features", "inf.npy", "model.zarr"], "found inf at row 0, column 3"),
    ],
)
@pytest.mark.parametrize("kind", ["npy", "zarr"])
def test_bad_input__leaves_no_store_and_no_file(dsc, folder, tmp_path, words, message, kind):
    if words[0] in ("orientation", "features") and kind == "npy":
        message = "ends in .zarr"
    given = [folder / w if w.endswith(("png", "npy", "zarr")) else w for w in words]
    result = dsc(*given, "--out", tmp_path / f"a.{kind}")
    assert result.exit_code == 2
    assert message in result.stderr
    assert sum(line.startswith("dsc: ") for line in result.stderr.splitlines()) == 1
    assert result.stderr.splitlines()[-1].startswith("dsc: ")
    assert not any(tmp_path.iterdir())


def test_constant__images_stay(dsc, folder, tmp_path):
    for kind in ("npy", "zarr"):
        out = tmp_path / f"a.{kind}"
        assert dsc("denoise", folder / "constant.npy", "--out", out, *FAST).exit_code == 0
    assert (np.load(tmp_path / "a.npy") == 1).all()
    assert (library.open(tmp_path / "a.zarr")["0"].values == 1).all()


def test_read__says_what_it_took(folder, tmp_path, dsc):
    """Channels, ranges and masks of `patches` and `learn`, and one channel of `denoise`."""
    mask = np.zeros((48, 56), np.uint8)
    mask[10:40, 10:40] = 1
    np.save(tmp_path / "mask.npy", mask)
    out = ["--out", tmp_path / "a.zarr", "--mask", tmp_path / "mask.npy", "--channel", "all"]
    found = json.loads(dsc("patches", folder / "color.png", *out, "--json").stdout)
    assert (found["n_channels"], found["n_patches"]) == (3, 400)
    assert found["read_as"] == "all 3 channels together by type"
    config = tmp_path / "c.toml"
    config.write_text("range = [0, 4095]\ndiameter = 7\nn_atoms = 3\nn_iterations = 1\n")
    said = dsc("learn", folder / "noisy16.tif", "--out", tmp_path / "run", "--config", config)
    assert "images read as grey values, 0 to 4095 as 0 to 1" in said.stdout
    out = ["--out", tmp_path / "red.tif", "--channel", "red", *FAST]
    assert dsc("denoise", folder / "color16.tif", *out).exit_code == 0
    assert tifffile.imread(tmp_path / "red.tif").shape == (48, 56)


def test_config__pairs_are_lists_of_two(folder, tmp_path, dsc):
    (tmp_path / "c.toml").write_text("range = [0]\n")
    options = ["--out", tmp_path / "a", "--config", tmp_path / "c.toml"]
    refused = dsc("patches", folder / "noisy16.tif", *options)
    assert "range: found [0], need a list of 2 values" in refused.stderr


def test_progress__says_where_once_and_no_error_in_unknown_units(dsc, folder, tmp_path):
    words = ["--diameter", 7, "--n-atoms", 3, "--n-iterations", 1]
    said = dsc("learn", folder / "clean.png", "--out", tmp_path / "run", *words).stderr
    assert said.count("running on") == 1
    said = dsc("denoise", folder / "noisy.png", "--out", tmp_path / "a.png", *words).stderr
    assert "mse" not in said
    assert "iteration 1 of 1: " in said


def test_patches__one_mask_for_all_images_is_said(dsc, folder, tmp_path):
    np.save(tmp_path / "ones.npy", np.ones((48, 56), np.uint8))
    words = ["--mask", tmp_path / "ones.npy", "--diameter", 7, "--per-image", 1]
    images = [folder / "noisy.png", folder / "clean.png"]
    result = dsc("patches", *images, "--out", tmp_path / "a.zarr", *words)
    assert "mask: one is given, and taken for all 2 images" in result.stderr
    result = dsc("patches", images[0], "--out", tmp_path / "b.zarr", *words)
    assert "mask: one" not in result.stderr
    assert "1 patch of diameter 7" in result.stdout


@pytest.fixture(scope="module")
def channels(folder):
    """An OME-Zarr of two levels with five channels, and a model of two of them."""
    y, x = np.mgrid[:48, :56]
    waves = [100 + 60 * np.sin(0.3 * x + 0.1 * k * y) for k in range(5)]
    planes = np.uint8(np.stack(waves) + np.random.default_rng(0).normal(0, 5, (5, 48, 56)))
    group = zarr.create_group(folder / "five.ome.zarr")
    group.create_array("0", data=planes, chunks=(1, 20, 30))
    group.create_array("1", data=planes[:, ::2, ::2], chunks=(1, 20, 30))
    scale = {"axes": [{"name": n} for n in "cyx"], "datasets": [{"path": "0"}, {"path": "1"}]}
    group.attrs["ome"] = {"version": "0.5", "multiscales": [scale]}
    options = {"diameter": 7, "center": True, "stride": 2, "n_iterations": 1}
    place = folder / "five.ome.zarr"
    library.learn(place, 4, 2, channel="1,3", level=1, **options).save(folder / "two.zarr")
    return planes


@pytest.mark.parametrize("command", RESTORE)
def test_channels__are_those_of_the_model_or_those_that_are_named(
    dsc, folder, channels, tmp_path, command
):
    np.save(tmp_path / "mask.npy", np.eye(24, 28, dtype=np.uint8))
    np.save(tmp_path / "large.npy", np.eye(48, 56, dtype=np.uint8))
    model = {"denoise": ["--model"], "inpaint": ["--model"]}.get(command, [])
    words = [command, folder / "five.ome.zarr", *model, folder / "two.zarr"]
    mask = ["--mask", tmp_path / "mask.npy"] if command == "inpaint" else []
    out = tmp_path / "a.zarr"
    report = ["--report", tmp_path / "a.html"]
    result = dsc(*words, *mask, "--out", out, *report)
    assert result.exit_code == 0, result.stderr
    assert (
        "is read as the model was learned: channels 1,3 together by type, level 1" in result.stderr
    )
    assert library.open(out)["0"].shape[1:] == (24, 28)
    if command in ("denoise", "inpaint", "reconstruct"):
        assert library.open(out).attrs["channels"] == ["channel 1", "channel 3"]
        result = dsc(*words, *mask, "--out", tmp_path / "a.tif", "--report", tmp_path / "b.html")
        assert result.exit_code == 0, result.stderr
        assert tifffile.imread(tmp_path / "a.tif").shape == (2, 24, 28)
        again = [image.pixels() for image in open_images(tmp_path / "a.tif", channel="all")]
        np.testing.assert_array_equal(again, library.open(out)["0"].values)
        refused = dsc(*words, *mask, "--out", tmp_path / "a.png")
        assert "found 2 channels that are no colors, which PNG does not hold" in refused.stderr
        assert not (tmp_path / "a.png").exists()
    mask = ["--mask", tmp_path / "large.npy"] if command == "inpaint" else []
    others = ["--channel", "0,2", "--level", "0", *mask]
    assert dsc(*words, *others, "--out", out, "--overwrite").exit_code == 0
    assert library.open(out)["0"].shape[1:] == (48, 56)


@pytest.mark.parametrize("command", RESTORE)
def test_channels__what_is_refused_names_options_that_there_are(
    dsc, folder, channels, tmp_path, command
):
    image = folder / "five.ome.zarr"
    result = run(dsc, folder, command, image, tmp_path / "a.zarr")
    assert result.exit_code == 2
    assert "found 5 images, need one" in result.stderr
    assert not any(tmp_path.iterdir())
    for option in re.findall(r"\((--[a-z]+)\)", result.stderr):
        assert option in dsc(command, "--help").stdout
    if command == "inpaint":  # a mask has no options
        out = ["--out", tmp_path / "a.zarr", "--mask", image]
        refused = dsc(command, folder / "clean.png", *out).stderr
        assert "found 5 images, need one: take one of them out" in refused
    words = [] if command == "inpaint" else ["--page", "2"]
    if words:
        result = run(dsc, folder, command, image, tmp_path / "a.zarr", *words)
        assert result.exit_code == 0, result.stderr
