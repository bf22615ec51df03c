"""Files of microscopes, where the extra `formats` is installed; elsewhere one line says so.

There is no test of a valid ND2 file: nothing writes one, and none was free to keep here.
"""

import importlib.util
import os
import struct

import numpy as np
import pytest

from dsc.errors import DscError
from dsc.images import microscopes, open_images
from dsc.patches import PatchConfig, extract_patches

HERE = importlib.util.find_spec("bioio_czi") is not None
STACK = np.random.default_rng(0).integers(0, 4096, (2, 3, 40, 50), np.uint16)  # t, c, y, x


@pytest.fixture
def czi(tmp_path):
    """A CZI file with two times and three named channels."""
    writer = pytest.importorskip("pylibCZIrw.czi")
    with writer.create_czi(str(tmp_path / "a.czi")) as file:
        for t, c in np.ndindex(2, 3):
            file.write(STACK[t, c, :, :, None], plane={"T": t, "C": c, "Z": 0}, scene=0)
        file.write_metadata("a", channel_names={0: "DAPI", 1: "GFP", 2: "RFP"})
    return tmp_path / "a.czi"


def lif(stack):
    """The bytes of a LIF file with one scene: (c, z, y, x)."""
    _, n_z, n_y, n_x = stack.shape
    steps = stack.strides
    dimensions = "".join(
        f'<DimensionDescription DimID="{axis}" NumberOfElements="{n}" Origin="0" Length="1" '
        f'Unit="m" BytesInc="{step}" BitInc="0"/>'
        for axis, n, step in ((1, n_x, steps[3]), (2, n_y, steps[2]), (3, n_z, steps[1]))
    )
    channels = "".join(
        f'<ChannelDescription DataType="0" ChannelTag="0" Resolution="16" Min="0" Max="65535" '
        f'NameOfMeasuredQuantity="" Unit="" LUTName="{name}" IsLUTInverted="0" '
        f'BytesInc="{number * steps[0]}" BitInc="0"/>'
        for number, name in enumerate(("Green", "Red"))
    )
    about = f"<Channels>{channels}</Channels><Dimensions>{dimensions}</Dimensions>"
    text = (
        '<LMSDataContainerHeader Version="2"><Element Name="a.lif" UniqueID="u0"><Data/>'
        '<Memory Size="0" MemoryBlockID="MemBlock_0"/><Children><Element Name="b" UniqueID="u1">'
        f"<Data><Image><ImageDescription>{about}</ImageDescription></Image></Data>"
        f'<Memory Size="{stack.nbytes}" MemoryBlockID="MemBlock_1"/><Children/></Element>'
        "</Children></Element></LMSDataContainerHeader>"
    )
    parts = [
        struct.pack("<IIBI", 0x70, 2 * len(text) + 5, 0x2A, len(text)),
        text.encode("utf-16-le"),
    ]
    for name, data in (("MemBlock_0", b""), ("MemBlock_1", stack.tobytes())):
        sizes = (0x70, 14 + 2 * len(name), 0x2A, len(data), 0x2A, len(name))
        parts += [struct.pack("<IIBQBI", *sizes), name.encode("utf-16-le"), data]
    return b"".join(parts)


@pytest.mark.skipif(not os.environ.get("CI"), reason="a choice of whoever installs it here")
@pytest.mark.parametrize("name", ["bioio_czi", "bioio_lif", "bioio_nd2", "imagecodecs"])
def test_extra__is_there_in_ci_so_that_its_tests_run(name):
    assert importlib.util.find_spec(name) is not None


@pytest.mark.skipif(HERE, reason="bioio is there")
@pytest.mark.parametrize("suffix", [".czi", ".nd2", ".LIF"])
def test_absent__is_said_in_one_line(tmp_path, suffix):
    (tmp_path / f"a{suffix}").write_bytes(b"anything")
    with pytest.raises(
        DscError, match=r"need bioio for it: pip install 'dsc\[formats\]'"
    ) as caught:
        open_images(tmp_path / f"a{suffix}")
    assert len(str(caught.value).splitlines()) == 2  # how many problems, and this one


def test_czi__every_plane_is_an_image(czi):
    images = open_images(czi)
    assert [image.shape for image in images] == [(40, 50)] * 6
    found = np.stack([image.pixels() for image in images]).reshape(STACK.shape)
    np.testing.assert_array_equal(found, STACK)
    np.testing.assert_array_equal(images[4].crop(3, 9, 5, 50), STACK[1, 1, 3:9, 5:])


@pytest.mark.parametrize("channel", ["2", "RFP"])
def test_czi__channels_have_numbers_and_names(czi, channel):
    found = open_images(czi, channel=channel, range=(0, 4095))
    wanted = (STACK[:, 2] / 4095).astype("f4")
    np.testing.assert_array_equal([image.whole() for image in found], wanted)
    patches = extract_patches(czi, czi.parent / "p", PatchConfig(diameter=7, channel="all"))
    assert patches.n_channels == 3


def test_czi__has_one_level_only(czi):
    with pytest.raises(DscError, match="level: found 1, need 0"):
        open_images(czi, level=1)


@pytest.mark.parametrize("suffix", [".czi", ".nd2", ".lif"])
def test_broken__files_are_refused_by_their_name(tmp_path, suffix):
    (tmp_path / f"a{suffix}").write_bytes(b"anything" * 99)
    with pytest.raises(DscError, match=rf"a\{suffix}: "):
        open_images(tmp_path / f"a{suffix}")


@pytest.mark.parametrize("most", [0, 2**30])
def test_czi__tiles_of_a_mosaic_are_joined(tmp_path, monkeypatch, most):
    writer = pytest.importorskip("pylibCZIrw.czi")
    plane = STACK[0, 0]
    with writer.create_czi(str(tmp_path / "a.czi")) as file:
        for x in (0, 20, 40):  # they overlap by 5, the last one is cut
            part = np.ascontiguousarray(plane[:, x : x + 25, None])
            file.write(part, plane={"C": 0}, scene=0, location=(x, 0))
        file.write_metadata("a", channel_names={0: "DAPI"})
    monkeypatch.setattr(microscopes, "WHOLE", most)
    (image,) = open_images(tmp_path / "a.czi")
    np.testing.assert_array_equal(image.pixels(), plane)
    np.testing.assert_array_equal(image.crop(7, 30, 15, 45), plane[7:30, 15:45])
    assert (microscopes.open_mosaic(tmp_path / "a.czi", 0) is None) == (most > 0)


def test_lif__planes_and_channels(tmp_path):
    pytest.importorskip("bioio_lif")
    planes = np.ascontiguousarray(STACK.swapaxes(0, 1)[:2].repeat(2, axis=1))  # (c, z, y, x)
    (tmp_path / "a.lif").write_bytes(lif(planes))
    found = [image.pixels() for image in open_images(tmp_path / "a.lif")]
    np.testing.assert_array_equal(np.reshape(found, planes.shape), planes)
    red = [image.pixels() for image in open_images(tmp_path / "a.lif", channel="Red")]
    np.testing.assert_array_equal(red, planes[1])
