"""Large TIFF pages by window: the pixels of the whole page, at the cost of a window."""

import importlib.util
import os
import subprocess
import sys
import tracemalloc
import zlib
from pathlib import Path

import numpy as np
import pytest
import tifffile
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from dsc.cli.main import main
from dsc.errors import DscError
from dsc.images import DECODED, open_images, tiff
from dsc.images.formats import FilePage, decode
from dsc.patches import PatchConfig, extract_patches

RNG = np.random.default_rng(0)
SHAPE = (70, 101)
BYTES = RNG.integers(0, 256, SHAPE, np.uint8)
WORDS = RNG.integers(0, 65536, SHAPE, np.uint16)
COLOR = RNG.integers(0, 256, (*SHAPE, 3), np.uint8)
PLANES = np.moveaxis(COLOR, 2, 0).copy()
MAP = RNG.integers(0, 65536, (3, 256), np.uint16)
KINDS = {
    "tiles": (BYTES, {"tile": (16, 32)}),
    "strips": (WORDS, {"rowsperstrip": 9}),
    "one strip": (WORDS, {}),
    "one compressed strip": (WORDS, {"compression": "zlib", "rowsperstrip": 70}),
    "zlib tiles": (WORDS, {"compression": "zlib", "tile": (16, 32)}),
    "differences": (WORDS, {"compression": "zlib", "predictor": 2, "rowsperstrip": 9}),
    "big-endian": (WORDS, {"byteorder": ">", "tile": (16, 32)}),
    "big-endian strip": (WORDS, {"byteorder": ">"}),
    "floats": (WORDS.astype("f4") / 7, {"tile": (32, 16), "compression": "zlib"}),
    "color": (COLOR, {"tile": (16, 32), "photometric": "rgb"}),
    "color in zlib": (COLOR, {"rowsperstrip": 7, "photometric": "rgb", "compression": "zlib"}),
    "planes": (PLANES, {"tile": (16, 32), "photometric": "rgb", "planarconfig": "separate"}),
    "plane strips": (PLANES, {"photometric": "rgb", "planarconfig": "separate"}),
    "alpha": (np.dstack([COLOR, BYTES]), {"tile": (16, 16), "photometric": "rgb"}),
    "palette": (BYTES, {"tile": (16, 32), "photometric": "palette", "colormap": MAP}),
    "palette strip": (BYTES, {"photometric": "palette", "colormap": MAP}),
    "white is zero": (WORDS, {"tile": (16, 32), "photometric": "miniswhite"}),
    "bigtiff": (BYTES, {"tile": (16, 32), "bigtiff": True, "compression": "zlib"}),
}
CODECS = {
    "lzw": (WORDS, {"compression": "lzw", "predictor": 2, "tile": (16, 32)}),
    "zstd": (WORDS, {"compression": "zstd", "tile": (16, 32)}),
    "jpeg": (BYTES, {"compression": "jpeg", "tile": (16, 32)}),
    "floats by difference": (
        WORDS.astype("f4"),
        {"compression": "zlib", "predictor": 3, "tile": (16, 32)},
    ),
}


@pytest.fixture
def by_window(monkeypatch):
    """Every page counts as large."""
    monkeypatch.setattr(tiff, "WHOLE", 0)


def check_windows(path):
    """All windows of some kinds are those of the page decoded as a whole."""
    (image,) = open_images(path)
    assert tiff.open_window(*image.source) is not None
    wanted = decode(FilePage(path, 0))
    found = image.pixels()
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)
    height, width = image.shape
    for y0, y1, x0, x1 in [(0, 1, 0, 1), (height - 1, height, width - 1, width), (15, 17, 31, 33)]:
        np.testing.assert_array_equal(image.crop(y0, y1, x0, x1), wanted[y0:y1, x0:x1])


@pytest.mark.parametrize("kind", KINDS)
def test_window__of_every_kind_is_that_of_the_whole(tmp_path, by_window, kind):
    pixels, options = KINDS[kind]
    tifffile.imwrite(tmp_path / "a.tif", pixels, metadata=None, **options)
    check_windows(tmp_path / "a.tif")


@pytest.mark.parametrize("kind", CODECS)
def test_window__of_compressions_of_imagecodecs(tmp_path, by_window, kind):
    pytest.importorskip("imagecodecs")
    pixels, options = CODECS[kind]
    tifffile.imwrite(tmp_path / "a.tif", pixels, metadata=None, **options)
    check_windows(tmp_path / "a.tif")


def test_window__of_colors_in_ycbcr(tmp_path, by_window, monkeypatch):
    pytest.importorskip("imagecodecs")
    smooth = np.add.outer(np.arange(64), np.arange(96))[:, :, None] + np.array([0, 30, 60])
    options = {"compression": "jpeg", "tile": (16, 32), "photometric": "rgb", "metadata": None}
    with tifffile.TiffWriter(tmp_path / "a.tif") as file:
        file.write(smooth.astype(np.uint8), subifds=1, **options)
        file.write(smooth[::2, ::2].astype(np.uint8), subfiletype=1, **options)
    (image,) = open_images(tmp_path / "a.tif")
    assert tiff.open_window(*image.source) is None  # by Pillow, as a whole
    np.testing.assert_allclose(image.pixels(), smooth, atol=12)
    (small,) = open_images(tmp_path / "a.tif", level=1)
    np.testing.assert_allclose(small.pixels(), smooth[::2, ::2], atol=12)
    monkeypatch.setattr(tiff, "PILLOW_MOST", 0)
    os.utime(tmp_path / "a.tif", (1, 1))  # another file, which is looked at again
    check_windows(tmp_path / "a.tif")
    np.testing.assert_allclose(open_images(tmp_path / "a.tif")[0].pixels(), smooth, atol=12)


@pytest.mark.parametrize("compression", ["packbits", "tiff_adobe_deflate", None])
@pytest.mark.parametrize("bits", [1, 8])
def test_window__of_files_of_other_programs(tmp_path, by_window, compression, bits):
    pixels = BYTES > 99 if bits == 1 else BYTES
    Image.fromarray(pixels).save(tmp_path / "a.tif", compression=compression)
    check_windows(tmp_path / "a.tif")


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data(), kind=st.sampled_from(["zlib tiles", "differences", "planes", "palette"]))
def test_window__anywhere_is_a_part_of_the_whole(tmp_path_factory, by_window, data, kind):
    path = tmp_path_factory.getbasetemp() / f"{kind}.tif"
    if not path.exists():
        pixels, options = KINDS[kind]
        tifffile.imwrite(path, pixels, metadata=None, **options)
    y0, x0 = data.draw(st.integers(0, 69)), data.draw(st.integers(0, 100))
    y1, x1 = data.draw(st.integers(y0 + 1, 70)), data.draw(st.integers(x0 + 1, 101))
    (image,) = open_images(path)
    found = image.crop(y0, y1, x0, x1)
    np.testing.assert_array_equal(found, decode(FilePage(path, 0))[y0:y1, x0:x1])


def test_patches__are_the_same_by_window(tmp_path, monkeypatch):
    found = []
    for name, most in (("a", 2**30), ("b", 0)):
        (tmp_path / name).mkdir()
        path = tmp_path / name / "a.tif"
        tifffile.imwrite(path, COLOR, photometric="rgb", compression="zlib", tile=(16, 32))
        monkeypatch.setattr(tiff, "WHOLE", most)
        patches = extract_patches(path, tmp_path / name / "p", PatchConfig(diameter=7, stride=3))
        found.append(patches.fingerprint)
    assert found[0] == found[1]


def test_window__empty_tiles_are_zero(tmp_path, by_window):
    tiles = [None if n % 2 else np.full((16, 32), n + 1, np.uint8) for n in range(5 * 4)]
    options = {"shape": SHAPE, "dtype": "u1", "tile": (16, 32), "compression": "zlib"}
    tifffile.imwrite(tmp_path / "a.tif", iter(tiles), **options)
    check_windows(tmp_path / "a.tif")
    (image,) = open_images(tmp_path / "a.tif")
    assert image.crop(0, 16, 0, 64).sum() == 16 * 32


# --- large pages


def large(path, side, levels=(), color=False):
    """A tiled page of `side` × `side` bytes, small on disk, and its reduced copies."""
    pattern = (np.add.outer(np.arange(512), 3 * np.arange(512)) % 251).astype(np.uint8)
    options = {"dtype": "u1", "tile": (512, 512), "compression": "zlib"}
    shape = ()
    if color:  # twelve bytes a pixel
        pattern = np.repeat(pattern[:, :, None] / np.float32(255), 3, axis=2)
        options |= {"dtype": "f4", "photometric": "rgb"}
        shape = (3,)
    packed = zlib.compress(pattern.tobytes(), 1)
    with tifffile.TiffWriter(path, bigtiff=True, ome=bool(levels)) as file:
        for number, size in enumerate((side, *levels)):
            tiles = (packed for _ in range((-(-size // 512)) ** 2))
            how = {"subfiletype": 1} if number else {"subifds": len(levels)}
            file.write(tiles, shape=(size, size, *shape), **options, **how)
    return pattern


def test_large__a_window_costs_a_window(tmp_path):
    pattern = large(tmp_path / "a.tif", 40_000)  # 1.6 GB: more than may be decoded as a whole
    assert (tmp_path / "a.tif").stat().st_size < 60e6
    (image,) = open_images(tmp_path / "a.tif")
    DECODED.clear()
    tracemalloc.start()
    found = image.read(20_000, 20_600, 30_000, 31_000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    rows, columns = np.arange(20_000, 20_600) % 512, np.arange(30_000, 31_000) % 512
    np.testing.assert_array_equal(found, (pattern[np.ix_(rows, columns)] / 255).astype("f4"))
    assert peak < 20e6


def test_large__many_windows_stay_below_the_limit_of_the_cache(tmp_path, monkeypatch):
    large(tmp_path / "a.tif", 40_000)
    (image,) = open_images(tmp_path / "a.tif")
    DECODED.clear()
    monkeypatch.setattr(DECODED, "_limit", 4 * 2**20)
    for x in range(0, 40_000, 1000):
        image.crop(x, x + 10, x, x + 1000)
        assert DECODED._size <= 4 * 2**20


def test_large__levels_of_an_ome_tiff(tmp_path, capsys):
    pattern = large(tmp_path / "a.ome.tif", 12_000, (4_000, 600))
    sizes = [open_images(tmp_path / "a.ome.tif", level=level)[0].shape for level in range(3)]
    assert sizes == [(12_000, 12_000), (4_000, 4_000), (600, 600)]
    (small,) = open_images(tmp_path / "a.ome.tif", level=2)
    np.testing.assert_array_equal(small.crop(500, 600, 0, 100)[12:], pattern[:88, :100])
    (full,) = open_images(tmp_path / "a.ome.tif")
    np.testing.assert_array_equal(full.crop(512, 520, 1024, 1034), pattern[:8, :10])
    words = [
        "patches",
        tmp_path / "a.ome.tif",
        "--out",
        tmp_path / "p",
        "--level",
        2,
        "--stride",
        50,
    ]
    main([*map(str, words), "--min-std", "0"], standalone_mode=False)
    assert "144" in capsys.readouterr().out  # 12 × 12 windows


def test_levels__of_a_pyramid_beside_a_label(tmp_path):
    with tifffile.TiffWriter(tmp_path / "a.tif") as file:
        file.write(BYTES, subifds=1, tile=(16, 16), metadata=None)
        file.write(BYTES[::2, ::2], subfiletype=1, tile=(16, 16), metadata=None)
        file.write(COLOR[:20, :20], photometric="rgb", metadata=None)
    assert len(open_images(tmp_path / "a.tif")) == 2
    (small,) = open_images(tmp_path / "a.tif", level=1)
    np.testing.assert_array_equal(small.pixels(), BYTES[::2, ::2])


APERIO = "Aperio Image Library v12.0.15\r\n101x70 (16x16) JPEG/RGB Q=70|AppMag = 20|MPP = 0.5"


def slide(path, n_planes=1, **options):
    """As Aperio writes it: a slide, a thumbnail, levels, a label and a macro, all plain pages."""
    options = {"photometric": "rgb", "metadata": None, "software": False} | options
    tiles = {"tile": (16, 16), "description": APERIO} | options
    with tifffile.TiffWriter(path, bigtiff=True) as file:
        file.write(COLOR, **tiles)
        file.write(COLOR[::9, ::9], **options)
        for plane in range(1, n_planes):
            file.write(COLOR + np.uint8(plane), **tiles)
        for step in (2, 4):
            for plane in range(n_planes):
                file.write(COLOR[::step, ::step] + np.uint8(plane), **tiles)
        file.write(COLOR[:20, :20], subfiletype=1, **options)
        file.write(COLOR[:30, :40], subfiletype=9, **options)


@pytest.mark.parametrize("name", ["a.svs", "a.tif"])
@pytest.mark.parametrize("n_planes", [1, 2])
def test_slide__of_aperio_is_one_pyramid(tmp_path, monkeypatch, name, n_planes):
    slide(tmp_path / name, n_planes)
    for most in (2**30, 0):  # as a whole, and by window
        monkeypatch.setattr(tiff, "WHOLE", most)
        os.utime(tmp_path / name, (most, 1))  # another file, which is looked at again
        for level, step in enumerate((1, 2, 4)):
            images = open_images(tmp_path / name, level=level)
            assert len(images) == n_planes
            for plane, image in enumerate(images):
                wanted = COLOR[::step, ::step] + np.uint8(plane)
                np.testing.assert_array_equal(image.pixels(), wanted)
    with pytest.raises(DscError, match="need at most 2"):
        open_images(tmp_path / name, level=3)


def test_slide__that_is_alone_is_one_image(tmp_path):
    options = {"photometric": "rgb", "metadata": None, "description": APERIO}
    tifffile.imwrite(tmp_path / "a.svs", COLOR, tile=(16, 16), **options)
    tifffile.imwrite(tmp_path / "strips.svs", COLOR, **options)  # as others may write it
    for name in ("a.svs", "strips.svs"):
        (image,) = open_images(tmp_path / name)
        np.testing.assert_array_equal(image.pixels(), COLOR)


# --- what cannot be read


def read_all(path):
    for image in open_images(path):
        image.whole()


def refusal(path):
    with pytest.raises(DscError) as caught:
        read_all(path)
    text = str(caught.value)
    assert path.name in text
    assert len(text) < 600
    return text


def test_limit__is_that_of_a_tile(tmp_path, monkeypatch):
    large(tmp_path / "a.tif", 10_000)
    monkeypatch.setenv("DSC_MAX_IMAGE_BYTES", str(512 * 512))
    assert open_images(tmp_path / "a.tif")[0].shape == (10_000, 10_000)
    monkeypatch.setenv("DSC_MAX_IMAGE_BYTES", str(512 * 512 - 1))
    os.utime(tmp_path / "a.tif", (1, 1))  # another file, which is looked at again
    assert "found tiles of 262 kB when decoded" in refusal(tmp_path / "a.tif")


def test_limit__one_huge_strip_is_refused(tmp_path):
    path = tmp_path / "a.tif"
    tifffile.imwrite(path, BYTES, compression="zlib", metadata=None)
    with tifffile.TiffFile(path, mode="r+b") as file:
        for name in ("ImageLength", "ImageWidth", "RowsPerStrip"):
            file.pages[0].tags[name].overwrite(65_535)
    text = refusal(path)
    assert "found an image of 4.29 GB" in text
    assert "Zarr or TIFF in smaller chunks or tiles" in text


def test_limit__of_a_compression_that_needs_imagecodecs(tmp_path, monkeypatch):
    if importlib.util.find_spec("imagecodecs"):
        pytest.skip("imagecodecs is there")
    path = tmp_path / "a.tif"
    Image.fromarray(BYTES).save(path, compression="tiff_lzw")
    monkeypatch.setattr(tiff, "WHOLE", 0)
    np.testing.assert_array_equal(open_images(path)[0].pixels(), BYTES)  # by Pillow, as a whole
    monkeypatch.setenv("DSC_MAX_IMAGE_BYTES", "1000")
    os.utime(path, (1, 1))
    text = refusal(path)
    assert "found an image (LZW) of 7.07 kB" in text
    assert "pip install 'dsc[formats]'" in text


@pytest.mark.parametrize("kind", ["tiles", "one strip", "zlib tiles", "differences", "planes"])
@pytest.mark.parametrize("whole", [False, True])
def test_broken__a_file_that_is_cut(tmp_path, monkeypatch, kind, whole):
    monkeypatch.setattr(tiff, "WHOLE", 2**30 if whole else 0)
    pixels, options = KINDS[kind]
    path = tmp_path / "a.tif"
    tifffile.imwrite(path, pixels, metadata=None, **options)
    path.write_bytes(path.read_bytes()[:-3000])
    text = refusal(path)
    if not whole:
        assert "fetch" in text


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("change", ["beyond", "fewer", "swapped", "garbage"])
def test_broken__tables_and_tiles(tmp_path, monkeypatch, change, whole):
    monkeypatch.setattr(tiff, "WHOLE", 2**30 if whole else 0)
    path = tmp_path / "a.tif"
    tifffile.imwrite(path, WORDS, compression="zlib", tile=(16, 32), metadata=None)
    with tifffile.TiffFile(path, mode="r+b") as file:
        tag = file.pages[0].tags["TileOffsets"]
        offsets = list(tag.value)
        if change == "beyond":
            tag.overwrite([*offsets[:-1], 2**31])
        elif change == "fewer":
            tag.overwrite(offsets[:9])
        elif change == "swapped":
            tag.overwrite([offset + 5 for offset in offsets])
    if change == "garbage":
        data = bytearray(path.read_bytes())
        data[offsets[3] : offsets[3] + 50] = bytes(50)
        path.write_bytes(data)
    refusal(path)


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(place=st.integers(0, 399), value=st.integers(0, 255), kind=st.sampled_from(sorted(KINDS)))
def test_broken__any_byte_of_a_header(tmp_path, by_window, monkeypatch, place, value, kind):
    monkeypatch.setenv("DSC_MAX_IMAGE_BYTES", "100000000")
    pixels, options = KINDS[kind]
    path = tmp_path / "a.tif"
    tifffile.imwrite(path, pixels, metadata=None, **options)
    data = bytearray(path.read_bytes())
    data[place % len(data)] = value
    path.write_bytes(data)
    said = "a.tif"
    try:
        for image in open_images(path):
            image.crop(*(n for size in image.shape for n in (size // 2, size // 2 + 1)))
    except DscError as error:
        said = str(error)
    assert "a.tif" in said


# --- memory

# The peak is VmHWM: ru_maxrss of a new process begins with what its parent had.
COMMAND = """
import atexit, re, sys
from pathlib import Path

def say():
    peak = re.search(r"VmHWM:\\s*(\\d+) kB", Path("/proc/self/status").read_text())[1]
    print(1024 * int(peak), file=sys.stderr)

atexit.register(say)
from dsc.cli.main import main
main(sys.argv[1:])
"""


def peak_of(*words):
    """Bytes that a command needs at most."""
    command = [sys.executable, "-c", COMMAND, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    peak = int(done.stderr.splitlines()[-1])
    print(f"{words[0]} {Path(words[1]).name}: {peak / 1e6:.0f} MB", flush=True)
    return peak


@pytest.mark.soak
@pytest.mark.skipif(not Path("/proc/self/status").is_file(), reason="the peak is read from /proc")
def test_memory__is_flat_in_the_size_of_a_page(tmp_path):
    peaks = []
    for side in (10_000, 20_000, 40_000):  # 0.1, 0.4 and 1.6 GB when decoded
        large(tmp_path / "a.tif", side)
        place = tmp_path / f"{side}-patches"
        peaks.append(peak_of("patches", tmp_path / "a.tif", "--out", place, "--stride", 64))
    assert max(peaks) < peaks[0] + 100e6
    model, small = tmp_path / "run", ("--n-atoms", 4, "--n-iterations", 1, "--sparsity", 1)
    words = ("learn", tmp_path / "10000-patches", "--out", model, *small)
    main([*map(str, words)], standalone_mode=False)
    peaks = []
    for side in (2_500, 5_000):  # 75 and 300 MB when decoded
        large(tmp_path / "a.tif", side, color=True)
        how = ("--out", tmp_path / f"{side}.zarr", "--memory-limit", "1GB")
        peaks.append(peak_of("orientation", tmp_path / "a.tif", model, *how))
    assert max(peaks) < peaks[0] + 100e6
