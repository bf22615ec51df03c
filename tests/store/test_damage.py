"""Stores that are broken on purpose: always an error that names the part, never a number."""

from __future__ import annotations

import hashlib
import json
import shutil

import numpy as np
import pytest

from dsc.errors import DscError
from dsc.store import is_finished, kinds, open_dataset, open_store
from dsc.store.schema import NEWEST


def chunk_files(url):
    return sorted(p for p in url.rglob("*") if p.is_file() and "/c/" in str(p))


def edit_manifest(url, **changes):
    """A manifest that says something else, and is whole itself."""
    path = url / "manifest.json"
    content = json.loads(path.read_text()) | changes
    del content["sha256"]
    text = json.dumps(content, sort_keys=True).encode()
    path.write_text(json.dumps(content | {"sha256": hashlib.sha256(text).hexdigest()}))


@pytest.mark.parametrize("kind", kinds())
def test_chunk__a_flipped_bit_is_an_error_that_names_it(kind, finished, flip):
    url = finished(kind)
    for file in chunk_files(url):
        name, _, chunk = file.relative_to(url).as_posix().partition("/c/")
        for position in (0, -1):
            flip(file, position)
            message = rf"chunk {chunk} of array '{name}' \({name}/c/{chunk}\) is damaged"
            with pytest.raises(DscError, match=message):
                open_store(url).read(name)
            with pytest.raises(DscError, match=message):
                open_dataset(url)[name].load()
            flip(file, position)
        open_store(url).read(name)


@pytest.mark.parametrize("kind", kinds())
def test_chunk__a_missing_one_is_an_error_that_names_it(kind, finished):
    url = finished(kind)
    for file in chunk_files(url):
        name, _, chunk = file.relative_to(url).as_posix().partition("/c/")
        content = file.read_bytes()
        file.unlink()
        message = rf"chunk {chunk} of array '{name}' .* is missing"
        with pytest.raises(DscError, match=message):
            open_store(url).read(name)
        with pytest.raises(DscError, match=message):
            open_dataset(url)[name].load()
        file.write_bytes(content)


@pytest.mark.parametrize("content", [b"", b"abc", b"\0" * 100])
def test_chunk__a_cut_or_empty_one_is_an_error(finished, content):
    url = finished()
    (url / "coef" / "c" / "1" / "0").write_bytes(content)
    with pytest.raises(DscError, match=r"chunk 1/0 of array 'coef'"):
        open_store(url).read("coef")


def test_chunk__the_others_can_still_be_read(finished, arrays):
    url = finished()
    (url / "coef" / "c" / "1" / "0").unlink()
    store = open_store(url)
    np.testing.assert_array_equal(store.read("coef", slice(0, 4)), arrays("codes")["coef"][:4])
    with pytest.raises(DscError, match=r"chunk 1/0"):
        store.read("coef", slice(3, 5))


def test_metadata__a_flipped_bit_is_an_error(finished, flip):
    url = finished("patches")
    for file in list(url.rglob("zarr.json")):
        name = file.relative_to(url).as_posix()
        flip(file, len(file.read_bytes()) // 2)
        for opener in (open_store, open_dataset):
            with pytest.raises(DscError, match=f"{name} is damaged"):
                opener(url)
        flip(file, len(file.read_bytes()) // 2)
    open_store(url)


def test_metadata__a_missing_one_is_an_error(finished):
    url = finished()
    (url / "coef" / "zarr.json").unlink()
    (url / "atom" / "zarr.json").unlink()
    with pytest.raises(DscError, match=r"atom/zarr.json is missing, coef/zarr.json is missing"):
        open_store(url)


def test_metadata__is_checked_again_where_it_is_read(finished, flip):
    url = finished()
    store = open_store(url)
    flip(url / "coef" / "zarr.json", 40)
    with pytest.raises(DscError, match=r"its metadata coef/zarr.json is damaged"):
        store.read("coef")


def test_manifest__without_it_there_is_no_store(finished):
    url = finished()
    (url / "manifest.json").unlink()
    assert not is_finished(url)
    for opener in (open_store, open_dataset):
        with pytest.raises(DscError, match=r"unfinished store of codes .* run it again"):
            opener(url)


def test_manifest__any_flipped_bit_is_an_error(finished, flip):
    url = finished()
    for position in range(0, len((url / "manifest.json").read_bytes()), 7):
        before = (url / "manifest.json").read_bytes()
        flip(url / "manifest.json", position)
        if json_or_none(url / "manifest.json") != json.loads(before):  # else only white space
            with pytest.raises(DscError):
                open_store(url)
        (url / "manifest.json").write_bytes(before)


def json_or_none(path):
    try:
        return json.loads(path.read_bytes())
    except ValueError:
        return None


def test_manifest__a_cut_one_is_an_error(finished):
    url = finished()
    content = (url / "manifest.json").read_bytes()
    (url / "manifest.json").write_bytes(content[: len(content) // 2])
    with pytest.raises(DscError, match=r"manifest\.json is damaged"):
        open_store(url)


def test_open__newer_formats_are_refused(finished):
    url = finished()
    edit_manifest(url, format=NEWEST + 1, dsc_version="9.0", news="a field nobody knows")
    with pytest.raises(DscError, match=r"found format \d, written by dsc 9.0.*install a newer dsc"):
        open_store(url)


def test_open__other_kinds_are_refused(finished):
    with pytest.raises(DscError, match=r"found a store of codes, need one of model"):
        open_store(finished(), "model")
    with pytest.raises(DscError, match=r"found a store of model, need one of patches"):
        open_dataset(finished("model", "m"), "patches")


def test_open__says_what_else_is_there(tmp_path):
    with pytest.raises(DscError, match=r"nothing is there: check the path"):
        open_store(tmp_path / "absent")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").write_text("a")
    with pytest.raises(DscError, match=r"no store of dsc"):
        open_store(tmp_path / "notes")
    with pytest.raises(DscError, match=r"empty"):
        open_store("")
    with pytest.raises(DscError, match=r"nosuch"):
        open_store("nosuch://bucket/a")


def test_schema__all_that_does_not_fit_is_named(finished):
    url = finished()
    shutil.rmtree(url / "rest")
    path = url / "error" / "zarr.json"
    metadata = json.loads(path.read_text())
    metadata["dimension_names"] = ["atom"]
    metadata["data_type"] = "float64"
    path.write_text(json.dumps(metadata))
    manifest = json.loads((url / "manifest.json").read_text())
    manifest["metadata"]["error/zarr.json"] = hashlib.sha256(path.read_bytes()).hexdigest()
    del manifest["metadata"]["rest/zarr.json"], manifest["chunks"]["rest"]
    edit_manifest(url, metadata=manifest["metadata"], chunks=manifest["chunks"])
    with pytest.raises(DscError) as error:
        open_store(url)
    for text in (
        "array 'rest' is missing",
        "array 'error' has dimensions ('atom',), need ('patch',)",
        "array 'error' has type float64, need float32",
    ):
        assert text in str(error.value)


def test_schema__sizes_must_agree(finished):
    url = finished()
    path = url / "error" / "zarr.json"
    metadata = json.loads(path.read_text())
    metadata["shape"] = [9]
    path.write_text(json.dumps(metadata))
    hashes = json.loads((url / "manifest.json").read_text())["metadata"]
    hashes["error/zarr.json"] = hashlib.sha256(path.read_bytes()).hexdigest()
    edit_manifest(url, metadata=hashes)
    with pytest.raises(
        DscError, match=r"array 'rest' has patch 10, others 9|has patch 9, others 10"
    ):
        open_store(url)


def test_read__other_arrays_do_not_exist(finished):
    store = open_store(finished())
    with pytest.raises(DscError, match=r"unknown 'atoms'.*did you mean 'atom'"):
        store.read("atoms")
