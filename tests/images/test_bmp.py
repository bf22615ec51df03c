"""BMP files in runs (RLE8) have the pixels that Pillow's own, slow decoder finds."""

import struct
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from dsc.errors import DscError
from dsc.images import open_images
from dsc.images.formats import FilePage, decode
from dsc.images.kernels import decode_rle8

GREYS = bytes(b for v in range(256) for b in (v, v, v, 0))
COLORS = bytes(b for v in range(256) for b in (v, 255 - v, v // 2, 0))


def bmp(stream, width, height, palette=GREYS, gap=0, compression=1, bits=8):
    """A BMP file; a negative height means that its first row is the upper one."""
    offset = 14 + 40 + len(palette) + gap
    head = struct.pack("<2sIHHI", b"BM", offset + len(stream), 0, 0, offset)
    sizes = (len(stream), 2834, 2834, len(palette) // 4, 0)
    about = struct.pack("<IiiHHIIiiII", 40, width, height, 1, bits, compression, *sizes)
    return head + about + palette + bytes(gap) + stream


def by_pillow(path):
    with Image.open(path) as image:
        image.load()
        return np.asarray(image if image.mode == "L" else image.convert("RGB"))


def same_as_pillow(content):
    """Whether Pillow takes it; what it gives is what is read, what it refuses is refused."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.bmp"
        path.write_bytes(content)
        try:
            wanted = by_pillow(path)
        except Exception:
            with pytest.raises(DscError, match=r"a\.bmp"):
                open_images(path)[0].whole()
            return False
        np.testing.assert_array_equal(decode(FilePage(path, 0)), wanted)
        return True


def runs_of(rows):
    """Rows in the order of the file: runs where values repeat, else single pixels."""
    stream = b""
    for row in rows:
        for part in np.split(row, np.flatnonzero(np.diff(row)) + 1):
            stream += b"".join(
                bytes([len(p), p[0]]) for p in np.split(part, range(255, len(part), 255))
            )
        stream += b"\0\0"
    return stream + b"\0\1"


byte = st.integers(0, 255)
words = st.one_of(
    st.tuples(st.integers(1, 255), byte).map(bytes),  # a run
    st.just(b"\0\0"),  # end of row
    st.just(b"\0\0"),
    st.just(b"\0\1"),  # end of image
    st.tuples(st.integers(0, 9), st.integers(0, 2)).map(lambda by: bytes((0, 2, *by))),
    st.binary(min_size=3, max_size=20).map(lambda b: bytes((0, len(b))) + b),  # without the padding
    st.binary(min_size=3, max_size=20).map(
        lambda b: bytes((0, len(b))) + b + bytes(len(b) % 2)  # with it
    ),
    st.binary(max_size=3),  # anything
)


@settings(max_examples=80, deadline=None)
@given(
    stream=st.lists(words, max_size=40).map(b"".join),
    full=st.booleans(),
    width=st.integers(1, 24),
    height=st.integers(1, 6),
    upright=st.booleans(),
    palette=st.sampled_from([GREYS, COLORS, COLORS[:80], GREYS[:16]]),
    gap=st.integers(0, 3),
)
def test_runs__of_any_kind_are_those_of_pillow(stream, full, width, height, upright, palette, gap):
    if full:  # so that it has a pixel for each place
        stream += (bytes((255, 7)) + b"\0\0") * height
    same_as_pillow(bmp(stream, width, -height if upright else height, palette, gap))


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 99), cut=st.integers(1, 40))
def test_runs__are_read_whole_and_refused_when_cut(seed, cut):
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 3, (5, 9), np.uint8).repeat(rng.integers(1, 60), axis=1)
    content = bmp(runs_of(rows), rows.shape[1], 5)
    assert same_as_pillow(content)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.bmp"
        path.write_bytes(content)
        np.testing.assert_array_equal(decode(FilePage(path, 0)), rows[::-1])
    same_as_pillow(content[:-cut])


def test_runs__are_not_decoded_by_pillow(tmp_path, monkeypatch):
    rows = np.arange(120, dtype=np.uint8).reshape(8, 15) // 3
    (tmp_path / "a.bmp").write_bytes(bmp(runs_of(rows), 15, 8, COLORS))
    wanted = by_pillow(tmp_path / "a.bmp")
    monkeypatch.setattr("PIL.BmpImagePlugin.BmpRleDecoder.decode", None)
    np.testing.assert_array_equal(decode(FilePage(tmp_path / "a.bmp", 0)), wanted)


def test_runs__of_4_bits_are_left_to_pillow(tmp_path):
    stream = (bytes((6, 0x12)) + b"\0\0") * 3 + b"\0\1"
    assert same_as_pillow(bmp(stream, 6, 3, COLORS[:64], compression=2, bits=4))


@settings(max_examples=80, deadline=None)
@given(
    data=st.binary(max_size=60),
    begin=st.integers(0, 70),
    width=st.integers(1, 9),
    height=st.integers(1, 5),
)
def test_kernel__stays_inside_its_arrays(data, begin, width, height):
    guarded = np.full(width * height + 1200, 99, np.uint8)
    pixels = guarded[600:-600]
    pixels[:] = 0
    n = decode_rle8(np.frombuffer(data, np.uint8), begin, width, pixels)
    assert 0 <= n <= pixels.size
    assert (guarded[:600] == 99).all()
    assert (guarded[-600:] == 99).all()
