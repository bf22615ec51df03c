"""The cache folder of bases: the same bits, and never an error."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dsc
from dsc.basis import build, cache, optimal

KEY = {"diameter": 9, "options": optimal.DEFAULT, "version": optimal.VERSION}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty cache folder, which is not made yet."""
    monkeypatch.setenv("DSC_CACHE_DIR", str(tmp_path / "of" / "dsc"))
    build._disk_basis.cache_clear()
    yield tmp_path / "of" / "dsc"
    build._disk_basis.cache_clear()


def built():
    """The basis of diameter 9 as a new process would get it."""
    build._disk_basis.cache_clear()
    return dsc.disk_basis(9)


def refuse(*_):
    raise AssertionError("computed again")


def test_cache__gives_the_same_bits_without_computing(folder, monkeypatch):
    first = built()
    assert len(list(folder.iterdir())) == 1
    monkeypatch.setattr(optimal, "wedge_basis", refuse)
    again = built()
    assert again is not first
    for name in ("frequency", "matrix", "level"):
        one, other = getattr(first, name), getattr(again, name)
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("place", [0, 5, 60, 300, -1])
def test_cache__a_flipped_bit_is_rebuilt(folder, place):
    first = built()
    (path,) = folder.iterdir()
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)
    np.testing.assert_array_equal(built().matrix, first.matrix)
    assert cache.load("disk", KEY) is not None  # whole again


@pytest.mark.parametrize("content", [b"", b"\n", b"{}\n", b"[]\n", b"\xff\xfe", b"no JSON\n1234"])
def test_cache__what_is_no_basis_is_rebuilt(folder, content):
    first = built()
    (path,) = folder.iterdir()
    path.write_bytes(content)
    np.testing.assert_array_equal(built().matrix, first.matrix)


@pytest.mark.parametrize("size", [10, 500, -8])
def test_cache__a_cut_file_is_rebuilt(folder, size):
    first = built()
    (path,) = folder.iterdir()
    path.write_bytes(path.read_bytes()[:size])
    np.testing.assert_array_equal(built().matrix, first.matrix)


def test_cache__a_file_of_another_key_is_not_used(folder):
    built()
    (path,) = folder.iterdir()
    for other in ({**KEY, "version": 0}, {**KEY, "diameter": 11}):
        cache._path("disk", other).write_bytes(path.read_bytes())
        assert cache.load("disk", other) is None


def test_cache__a_folder_in_the_place_of_the_file_is_no_error(folder):
    cache._path("disk", KEY).mkdir(parents=True)
    assert built().n_coords == 67
    assert sorted(folder.iterdir()) == [cache._path("disk", KEY)]  # nothing left beside it


@pytest.mark.parametrize("home", ["file", "/dev/null/x", "/proc/nothing"])
def test_cache__that_cannot_be_written_is_no_error(tmp_path, monkeypatch, home):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DSC_CACHE_DIR", str(tmp_path / home))
    assert built().n_coords == 67
    monkeypatch.undo()
    build._disk_basis.cache_clear()


def test_cache__without_a_home_is_none(monkeypatch):
    def nobody():
        raise RuntimeError("no home")

    for name in ("DSC_CACHE_DIR", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", nobody)
    assert cache.cache_folder() is None
    assert cache.load("disk", KEY) is None
    cache.save("disk", KEY, {})


@pytest.mark.skipif(sys.platform == "win32", reason="the rule of XDG")
def test_cache_folder__follows_xdg(monkeypatch):
    monkeypatch.delenv("DSC_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert cache.cache_folder() == Path("/somewhere/dsc")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", "/home/me")
    assert cache.cache_folder() == Path("/home/me/.cache/dsc")


def test_cache__many_processes_at_once_agree(folder):
    program = "import dsc, zlib; print(zlib.crc32(dsc.disk_basis(12).matrix.tobytes()))"
    started = [
        subprocess.Popen(
            [sys.executable, "-c", program], stdout=subprocess.PIPE, env={**os.environ}
        )
        for _ in range(3)
    ]
    assert len({process.communicate()[0] for process in started}) == 1
    assert not any(process.returncode for process in started)
    assert len(list(folder.iterdir())) == 1
