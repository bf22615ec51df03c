"""What is missing, too large, or no image at all is refused before it costs much."""

from __future__ import annotations

import json
import struct
import tempfile
import time
import zlib
from pathlib import Path

import numpy as np
import pytest
import tifffile
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from zarr.codecs import ShardingCodec

from dsc.errors import DscError
from dsc.images import SUFFIXES, open_images
from dsc.patches import PatchConfig, extract_patches

GREY = np.random.default_rng(0).integers(1, 256, (60, 80), np.uint8)


def png(height, width, color=0):
    """A PNG file that says to be so large, with one row of pixels."""

    def chunk(name, data):
        crc = zlib.crc32(name + data)
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", crc)

    header = struct.pack(">IIBBBBB", width, height, 8, color, 0, 0, 0)
    pixels = zlib.compress(bytes(width + 1))
    signature = b"\x89PNG\r\n\x1a\n"
    return signature + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


# --- chunks that are missing


@pytest.mark.parametrize("version", [2, 3])
def test_zarr__a_missing_chunk_is_refused_by_its_name(tmp_path, version):
    zarr.create_array(tmp_path / "a.zarr", data=GREY, chunks=(30, 40), zarr_format=version)
    key = {2: "1.1", 3: "c/1/1"}[version]
    (tmp_path / "a.zarr" / key).unlink()
    with pytest.raises(DscError, match=rf"a\.zarr.*chunk {key} is missing.*missing_as_fill"):
        extract_patches(tmp_path / "a.zarr", tmp_path / "p")
    (image,) = open_images(tmp_path / "a.zarr")
    assert image.shape == (60, 80)


def test_zarr__missing_chunks_may_stand_for_the_fill_value(tmp_path):
    black = GREY.copy()
    black[30:, 40:] = 0
    zarr.create_array(tmp_path / "a.zarr", data=black, chunks=(30, 40))
    assert not (tmp_path / "a.zarr" / "c" / "1" / "1").exists()  # Zarr leaves out what is empty
    (image,) = open_images(tmp_path / "a.zarr", missing_as_fill=True)
    np.testing.assert_array_equal(image.whole(), (black / 255).astype(np.float32))
    np.save(tmp_path / "b.npy", black)
    config = PatchConfig(diameter=7, missing_as_fill=True)
    found = extract_patches(tmp_path / "a.zarr", tmp_path / "p", config)
    wanted = extract_patches(tmp_path / "b.npy", tmp_path / "q", config)
    n = found.n_patches
    np.testing.assert_array_equal(found.pixels(0, n), wanted.pixels(0, n))


def sharded(path, values, **options):
    """An array of shards of 20 × 40 with chunks of 10 × 20; those at its edges are cut."""
    sizes = {"chunks": (10, 20), "shards": (20, 40), **options}
    lead = (1,) * (values.ndim - 2)
    sizes = {name: (*lead, *size) for name, size in sizes.items()}
    zarr.create_array(path, data=values, zarr_format=3, **sizes)


@pytest.mark.parametrize("shape", [(60, 80), (53, 71)], ids=["whole", "cut at the edges"])
def test_shards__whole_ones_are_read_as_they_are(tmp_path, shape):
    grey = np.maximum(GREY[: shape[0], : shape[1]], 1)  # no chunk is empty
    sharded(tmp_path / "a.zarr", grey)
    (image,) = open_images(tmp_path / "a.zarr")
    np.testing.assert_array_equal(image.whole(), (grey / 255).astype(np.float32))
    assert extract_patches(tmp_path / "a.zarr", tmp_path / "p").n_patches > 0
    sharded(tmp_path / "b.zarr", np.stack([grey, grey]))
    assert len(open_images(tmp_path / "b.zarr")) == 2
    assert extract_patches(tmp_path / "b.zarr", tmp_path / "q").n_patches > 0


def test_shards__a_chunk_that_is_missing_inside_is_refused_by_its_name(tmp_path):
    black = np.maximum(GREY, 1)
    black[30:40, 60:] = 0  # Zarr leaves out what is empty
    sharded(tmp_path / "a.zarr", black)
    name = r"chunk 1/1 of shard c/1/1 \(from 30, 60 on\) is missing.*--missing-as-fill"
    with pytest.raises(DscError, match=name):
        extract_patches(tmp_path / "a.zarr", tmp_path / "p")
    (image,) = open_images(tmp_path / "a.zarr")
    there = image.source.read(slice(0, 30), slice(0, 80))  # what is there can be read
    np.testing.assert_array_equal(there, black[:30])
    config = PatchConfig(diameter=7, missing_as_fill=True)
    found = extract_patches(tmp_path / "a.zarr", tmp_path / "p", config)
    np.save(tmp_path / "b.npy", black)
    wanted = extract_patches(tmp_path / "b.npy", tmp_path / "q", config)
    np.testing.assert_array_equal(
        found.pixels(0, found.n_patches), wanted.pixels(0, wanted.n_patches)
    )


def test_shards__the_index_may_be_first(tmp_path):
    black = np.maximum(GREY, 1)
    black[:10, :20] = 0
    for name, values in (("a", black), ("b", np.maximum(GREY, 1))):
        serializer = ShardingCodec(chunk_shape=(10, 20), index_location="start")
        made = zarr.create_array(
            tmp_path / name, shape=GREY.shape, dtype="u1", chunks=(20, 40), serializer=serializer,
            compressors=None, fill_value=0,
        )  # fmt: skip
        made[:] = values
    with pytest.raises(DscError, match=r"chunk 0/0 of shard c/0/0 \(from 0, 0 on\) is missing"):
        extract_patches(tmp_path / "a", tmp_path / "p")
    assert extract_patches(tmp_path / "b", tmp_path / "q").n_patches > 0


def test_shards__a_missing_shard_and_a_cut_one_are_refused(tmp_path):
    sharded(tmp_path / "a.zarr", np.maximum(GREY, 1))
    shard = tmp_path / "a.zarr" / "c" / "1" / "0"
    content = shard.read_bytes()
    shard.write_bytes(content[:20])
    with pytest.raises(DscError, match="shard c/1/0 is cut"):
        extract_patches(tmp_path / "a.zarr", tmp_path / "p")
    shard.unlink()
    with pytest.raises(DscError, match="chunk c/1/0 is missing"):
        extract_patches(tmp_path / "a.zarr", tmp_path / "p")
    shard.write_bytes(content)
    assert extract_patches(tmp_path / "a.zarr", tmp_path / "p").n_patches > 0


def test_shards__inside_of_others_cannot_be_told(tmp_path):
    inner = ShardingCodec(chunk_shape=(5, 10))
    outer = ShardingCodec(chunk_shape=(10, 20), codecs=[inner])
    made = zarr.create_array(
        tmp_path / "a", shape=GREY.shape, dtype="u1", chunks=(20, 40), serializer=outer,
        compressors=None,
    )  # fmt: skip
    made[:] = GREY
    with pytest.raises(DscError, match=r"missing chunks cannot be told.*--missing-as-fill"):
        extract_patches(tmp_path / "a", tmp_path / "p")


# --- bombs


def test_bomb__png(tmp_path):
    (tmp_path / "a.png").write_bytes(png(12_000, 12_000, color=6))
    (tmp_path / "b.png").write_bytes(png(40_000, 40_000))
    with pytest.raises(DscError, match=r"pixels\) exceeds limit .* Convert it to TIFF or Zarr"):
        open_images(tmp_path / "b.png")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DSC_MAX_IMAGE_BYTES", "500000000")
        with pytest.raises(DscError, match=r"a\.png: found an image of 576 MB when decoded.*500 M"):
            open_images(tmp_path / "a.png")
        patch.setenv("DSC_MAX_IMAGE_BYTES", "600000000")
        assert open_images(tmp_path / "a.png")[0].shape == (12_000, 12_000)
        patch.setenv("DSC_MAX_IMAGE_BYTES", "much")
        with pytest.raises(DscError, match=r"DSC_MAX_IMAGE_BYTES: found 'much', need a number"):
            open_images(tmp_path / "a.png")


def test_bomb__tiff(tmp_path):
    path = tmp_path / "a.tif"
    tifffile.imwrite(path, GREY, compression="zlib", metadata=None)
    with tifffile.TiffFile(path, mode="r+b") as file:
        for name in ("ImageLength", "ImageWidth", "RowsPerStrip"):
            file.pages[0].tags[name].overwrite(65_535)
    with pytest.raises(DscError, match=r"a\.tif: found an image of 4\.29 GB when decoded.*set DSC"):
        open_images(path)


def test_bomb__zarr(tmp_path):
    zarr.create_array(tmp_path / "a.zarr", shape=(10**9, 20, 20), chunks=(1, 20, 20), dtype="u1")
    zarr.create_array(tmp_path / "b.zarr", shape=(10**5, 10**5), chunks=(10**5, 10**5), dtype="u1")
    begin = time.perf_counter()
    with pytest.raises(DscError) as caught:
        open_images([tmp_path / "a.zarr", tmp_path / "b.zarr"])
    assert "a.zarr: found 1,000,000,000 images in it, need at most 100,000" in str(caught.value)
    assert "b.zarr: found chunks of 10 GB when decoded" in str(caught.value)
    assert time.perf_counter() - begin < 30  # it does not hang


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "{}", "[]", "\xff", "1" * 9999])
@pytest.mark.parametrize("name", ["zarr.json", ".zarray", ".zgroup"])
def test_zarr__broken_metadata_is_one_line(tmp_path, name, text):
    (tmp_path / "a.zarr").mkdir()
    (tmp_path / "a.zarr" / name).write_text(text, encoding="latin-1")
    with pytest.raises(DscError, match=r"a\.zarr") as caught:
        open_images(tmp_path / "a.zarr")
    assert len(str(caught.value).splitlines()) == 2
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize(
    "changes",
    [
        {"shape": [20]}, {"shape": [-5, 30]}, {"shape": [20, "x"]}, {"shape": [2**70, 2**70]},
        {"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [0, 0]}}},
        {"data_type": "complex64"}, {"codecs": []}, {"fill_value": "x"},
    ],
)  # fmt: skip
def test_zarr__crafted_metadata_is_refused(tmp_path, changes):
    zarr.create_array(tmp_path / "a.zarr", data=GREY, chunks=(30, 40))
    path = tmp_path / "a.zarr" / "zarr.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    with pytest.raises(DscError, match=r"a\.zarr"):
        extract_patches(tmp_path / "a.zarr", tmp_path / "p", PatchConfig(diameter=7))


# --- many pages


def seconds_of(paths):
    """Seconds of work to read all images of each file, and the images of the last."""
    taken = []
    for path in paths:
        images = open_images(path)
        begin = time.process_time()  # other processes do not count
        found = [image.whole() for image in images]
        taken.append(time.process_time() - begin)
    return taken, found


def test_pages__of_a_tiff_are_each_found_without_the_others(tmp_path):
    pages = np.random.default_rng(0).integers(0, 256, (800, 16, 16), np.uint8)
    paths = [tmp_path / f"{n}.tif" for n in (100, 800)]
    for path in paths:
        some = pages[: int(path.stem)]
        tifffile.imwrite(path, some, photometric="minisblack", metadata=None)
    (few, many), found = seconds_of(paths)
    assert many < 30 * few  # 8 times as many, of which the square is 64
    np.testing.assert_array_equal(np.stack(found), (pages / 255).astype(np.float32))


def test_pages__of_a_gif_are_decoded_once_in_order_and_right_in_any(tmp_path):
    rng = np.random.default_rng(1)
    frames = [Image.fromarray(rng.integers(0, 256, (16, 16), np.uint8)) for _ in range(300)]
    frames[0].save(tmp_path / "a.gif", save_all=True, append_images=frames[1:], loop=0)
    frames[0].save(tmp_path / "b.gif", save_all=True, append_images=frames[1:40], loop=0)
    (few, many), found = seconds_of([tmp_path / "b.gif", tmp_path / "a.gif"])
    assert many < 30 * few  # 7.5 times as many, of which the square is 56
    for number in (299, 7, 150, 149, 0, 8):
        np.testing.assert_array_equal(
            open_images(tmp_path / "a.gif")[number].whole(), found[number]
        )
        np.testing.assert_allclose(found[number], np.array(frames[number]) / 255, atol=1e-6)


# --- anything at all


@settings(max_examples=30)
@given(
    suffix=st.sampled_from(SUFFIXES),
    head=st.sampled_from(
        [b"", b"\x89PNG\r\n\x1a\n", b"GIF89a", b"BM", b"II*\0\x08\0\0\0", b"MM\0*", b"II+\0",
         b"\xff\xd8\xff\xe0", b"\x93NUMPY\x01\0", b"\x59\xa6\x6a\x95"]
    ),
    body=st.binary(max_size=200),
)  # fmt: skip
def test_any_bytes__are_an_image_or_refused(suffix, head, body):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"a{suffix}"
        path.write_bytes(head + body)
        _read_or_refuse(path)


@settings(max_examples=30)
@given(
    suffix=st.sampled_from([".png", ".tif", ".gif", ".bmp", ".jpg", ".npy"]),
    place=st.floats(0, 1, exclude_max=True),
    value=st.integers(0, 255),
)
def test_any_byte__of_an_image_may_change(suffix, place, value):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"a{suffix}"
        np.save(path, GREY) if suffix == ".npy" else Image.fromarray(GREY).save(path)
        data = bytearray(path.read_bytes())
        data[int(place * min(len(data), 400))] = value
        path.write_bytes(data)
        _read_or_refuse(path)


def _read_or_refuse(path):
    begin = time.perf_counter()
    said = path.name
    try:
        extract_patches(path, path.with_name("p"), PatchConfig(diameter=7, stride=9))
    except DscError as error:
        said = str(error)
    assert path.name in said
    assert len(said) < 1000
    assert time.perf_counter() - begin < 30  # it does not hang
