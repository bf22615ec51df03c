"""Continuing an unfinished store, and what a process leaves that died while it wrote."""

import shutil

import numpy as np
import pytest
import zarr

from dsc.errors import DscError
from dsc.store import check_free, create, creation, objects, reopen
from dsc.store.folder import Folder
from dsc.store.objects import is_occupied

SIZES = {"c": 1, "y": 4, "x": 4}


@pytest.fixture
def begun(tmp_path):
    store = create(tmp_path / "a.zarr", "maps", SIZES, {"y": 2}, {}, {"0": "uint8"})
    store.write("0", (0, 0, 0), np.ones((1, 2, 4), np.uint8))
    return store


def test_reopen__keeps_chunks_and_clears_what_has_no_name_yet(begun, tmp_path):
    rest = tmp_path / "a.zarr/0/c" / f"1.{'0' * 32}.partial"
    rest.write_bytes(b"half")
    again = reopen(begun.url, "maps")
    assert not rest.exists()
    again.write("0", (0, 2, 0), np.full((1, 2, 4), 2, np.uint8))
    found = again.finish().read("0")
    assert found.dtype == np.uint8
    assert found[0, :, 0].tolist() == [1, 1, 2, 2]


def test_reopen__a_store_without_its_array_is_made_anew(begun, tmp_path):
    (tmp_path / "a.zarr/0/zarr.json").unlink()
    assert reopen(begun.url, "maps") is None
    check_free(begun.url)


def test_place__with_nothing_but_half_written_files_is_free(tmp_path):
    folder = tmp_path / "a.zarr/0/c"
    folder.mkdir(parents=True)
    (folder / f"0.{'a' * 32}.partial").write_bytes(b"half")
    assert not is_occupied(str(tmp_path / "a.zarr"))
    (folder / "mine").touch()
    assert is_occupied(str(tmp_path / "a.zarr"))


def test_write__into_a_removed_store_leaves_no_folder(begun, tmp_path, monkeypatch):
    make_folders = Folder._make_folders

    def remove_first(self, key):
        shutil.rmtree(tmp_path / "a.zarr")
        (tmp_path / "a.zarr").mkdir()  # as if somebody were still removing it
        make_folders(self, key)

    shutil.rmtree(tmp_path / "a.zarr/0/c")
    monkeypatch.setattr(Folder, "_make_folders", remove_first)
    with pytest.raises(DscError, match="was removed while it was written"):
        begun.write("0", (0, 0, 0), np.ones((1, 2, 4), np.uint8))
    assert not (tmp_path / "a.zarr").exists()


def test_create__a_folder_that_is_removed_meanwhile_is_no_store_without_its_mark(
    tmp_path, monkeypatch
):
    add = creation._add

    def remove_first(group, *arguments):
        shutil.rmtree(tmp_path / "a.zarr")
        (tmp_path / "a.zarr").mkdir()
        other = zarr.create_group(objects.zarr_store(str(tmp_path / "a.zarr"), read_only=False))
        add(other, *arguments)

    monkeypatch.setattr(creation, "_add", remove_first)
    with pytest.raises(DscError, match="was removed while it was written"):
        create(tmp_path / "a.zarr", "maps", SIZES, {}, {})
    check_free(tmp_path / "a.zarr")
