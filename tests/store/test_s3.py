"""The same on an object store: a real S3 server, through fsspec."""

from __future__ import annotations

import fsspec
import numpy as np
import pytest

import dsc
from dsc.errors import DscError
from dsc.patches import PatchConfig, extract_patches, open_patches
from dsc.store import create, is_finished, open_dataset, open_store, schema_of


@pytest.fixture
def scene(image):
    """The image; `image` is the number of one in these tests."""
    return image


def write_codes(url, finish=True):
    store = create(url, "codes", {"patch": 10, "slot": 2}, {"patch": 4}, {"n_angles": 60})
    for name, variable in schema_of("codes").items():
        values = np.arange(20).reshape(10, 2).astype(variable.dtype)
        values = values if len(variable.dims) == 2 else values[:, 0]
        for start in (8, 0, 4):
            store.write(name, start, values[start : start + 4])
    return store.finish() if finish else store


def remove(url):
    fs, path = fsspec.core.url_to_fs(url)
    fs.rm(path)


def test_s3__what_was_written_is_read(s3):
    store = write_codes(s3("round.zarr"))
    np.testing.assert_array_equal(store.read("atom"), np.arange(20).reshape(10, 2))
    dataset = open_dataset(s3("round.zarr"), "codes")
    np.testing.assert_array_equal(dataset.coef[3:9], np.arange(6, 18).reshape(6, 2))
    assert is_finished(s3("round.zarr"))


def test_s3__is_absent_until_it_is_finished(s3):
    with pytest.raises(DscError, match=r"nothing is there"):
        open_store(s3("half.zarr"))
    write_codes(s3("half.zarr"), finish=False)
    with pytest.raises(DscError, match=r"unfinished store of codes"):
        open_store(s3("half.zarr"))
    write_codes(s3("half.zarr"))
    assert open_store(s3("half.zarr")).kind == "codes"
    with pytest.raises(DscError, match=r"it is not overwritten"):
        write_codes(s3("half.zarr"))


def test_s3__missing_and_damaged_chunks_are_errors(s3):
    write_codes(s3("broken.zarr"))
    remove(s3("broken.zarr/coef/c/1/0"))
    store = open_store(s3("broken.zarr"))
    with pytest.raises(DscError, match=r"chunk 1/0 of array 'coef' .* is missing"):
        store.read("coef")
    with pytest.raises(DscError, match=r"chunk 1/0 of array 'coef' .* is missing"):
        open_dataset(s3("broken.zarr")).coef.load()
    fs, path = fsspec.core.url_to_fs(s3("broken.zarr/atom/c/2/0"))
    content = bytearray(fs.cat_file(path))
    content[3] ^= 1
    fs.pipe_file(path, bytes(content))
    with pytest.raises(DscError, match=r"chunk 2/0 of array 'atom' .* is damaged"):
        store.read("atom")


def test_s3__a_missing_bucket_is_an_error(s3):
    with pytest.raises(DscError, match=r"nothing is there"):
        open_store("s3://no-such-bucket/a")
    with pytest.raises(DscError, match=r"s3://no-such-bucket/a: cannot be written: .*bucket"):
        write_codes("s3://no-such-bucket/a")


def test_s3__patches_have_the_same_bits_as_on_disk(s3, tmp_path, scene):
    image = scene("camera")[:60, :70]
    config = PatchConfig(center=True, unit=True, materialize="disk")
    local = extract_patches(image, tmp_path / "patches.zarr", config)
    remote = extract_patches(image, s3("patches.zarr"), config)
    assert remote.fingerprint == local.fingerprint
    basis = dsc.disk_basis(11)
    for a, b in ((0, 100), (777, 2000)):
        np.testing.assert_array_equal(remote.pixels(a, b), local.pixels(a, b))
        np.testing.assert_array_equal(remote.read(basis, a, b), local.read(basis, a, b))
    assert open_patches(s3("patches.zarr")).n_patches == 50 * 60
