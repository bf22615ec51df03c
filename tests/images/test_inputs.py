"""Which images are meant by files, folders, classes and globs."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from dsc.errors import DscError
from dsc.images import open_images


@pytest.fixture
def put(tmp_path):
    """put(name): an image at that path below a new folder; returns the folder."""

    def write(*names):
        for name in names:
            path = tmp_path / "in" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(np.zeros((12, 12), np.uint8)).save(path)
        return tmp_path / "in"

    return write


def found(inputs):
    return [(image.name, image.label) for image in open_images(inputs)]


def test_folder__images_sorted_without_labels(put):
    folder = put("b.png", "a.png", "c.bmp")
    (folder / "notes.txt").write_text("not an image")
    (folder / ".hidden.png").write_text("not an image")
    assert found(folder) == [("a.png", None), ("b.png", None), ("c.bmp", None)]


def test_folder__of_folders_gives_classes(put):
    folder = put("grass/2.png", "brick/1.png", "grass/1.png")
    assert found(folder) == [
        ("brick/1.png", "brick"),
        ("grass/1.png", "grass"),
        ("grass/2.png", "grass"),
    ]


def test_folders__several_are_classes(put):
    folder = put("grass/1.png", "brick/1.png")
    expected = [("brick/1.png", "brick"), ("grass/1.png", "grass")]
    assert found([folder / "grass", folder / "brick"]) == expected
    assert found(f"{folder}/*") == expected


def test_classes__count_only_if_all_have_one(put):
    folder = put("grass/1.png", "brick/1.png", "loose.png")
    labels = [
        label for _, label in found([folder / "grass", folder / "brick", folder / "loose.png"])
    ]
    assert labels == [None, None, None]
    assert found(put("only/one/a.png") / "only") == [("a.png", None)]


def test_glob__takes_what_matches(put):
    folder = put("a1.png", "a2.png", "b1.png", "deep/down/a3.png")
    assert [name for name, _ in found(f"{folder}/a*.png")] == ["a1.png", "a2.png"]
    assert len(found(f"{folder}/**/a*.png")) == 3


def test_inputs__order_and_repetition_do_not_matter(put):
    folder = put("a.png", "b.png")
    once = found(folder)
    assert found([folder / "b.png", folder / "a.png", f"{folder}/*", folder / "a.png"]) == once


def test_folder__with_images_in_it_and_below_is_refused(put):
    folder = put("a.png", "masks/a.png")
    with pytest.raises(DscError, match=r"in it and in its folders masks: say which.*\*\.png"):
        open_images(folder)


def test_inputs__nothing_found_is_said(put, tmp_path):
    put("a.png")
    (tmp_path / "empty").mkdir()
    (tmp_path / "a.xyz").write_text("")
    bad = [tmp_path / "empty", tmp_path / "a.xyz", tmp_path / "none", f"{tmp_path}/*.png"]
    with pytest.raises(DscError) as error:
        open_images(bad)
    for text in ("no images in it", "unknown type of file", "does not exist", "nothing matches"):
        assert text in str(error.value)
    with pytest.raises(DscError, match=r"found no input"):
        open_images([])


def test_arrays__of_dask_xarray_and_zarr_are_images(tmp_path):
    import dask.array
    import xarray
    import zarr

    one, two = np.random.default_rng(0).random((2, 20, 24)).astype(np.float32)
    stored = zarr.create_array(tmp_path / "a.zarr", data=two, chunks=(8, 8))
    given = [dask.array.from_array(one, chunks=7), xarray.DataArray(two, dims=("y", "x")), stored]
    images = open_images([one, *given])
    assert len(images) == 4
    for image, expected in zip(images, (one, one, two, two), strict=True):
        np.testing.assert_array_equal(image.whole(), expected)
    assert [image.in_memory for image in images] == [True, True, True, False]
    stack = dask.array.from_array(np.stack([one, two]), chunks=(1, 20, 24))
    np.testing.assert_array_equal(open_images(stack)[1].whole(), two)
    in_memory = zarr.create_array({}, data=two)
    np.testing.assert_array_equal(open_images(in_memory)[0].whole(), two)
    with pytest.raises(DscError, match="found an xarray dataset, need one array"):
        open_images(given[1].to_dataset(name="a"))


def test_arrays__of_many_channels_are_one_image_if_channels_are_named(tmp_path):
    array = np.random.default_rng(0).random((20, 24, 6)).astype(np.float32)
    np.save(tmp_path / "a.npy", array)
    for given in (array, tmp_path / "a.npy"):
        images = open_images(given, channel="5,0")
        assert [image.n_channels for image in images] == [2, 2]
        for image, channel in zip(images, (5, 0), strict=True):
            np.testing.assert_array_equal(image.whole(), array[..., channel])
        assert len(open_images(given, channel="all")) == 6
