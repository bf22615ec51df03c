"""Locks: who holds one, who may take it, and that it goes."""

import json
import os
import time

import numpy as np
import pytest

import dsc
from dsc import locks
from dsc.errors import DscError
from dsc.locks import check_held, last_beat, lock, lock_path, locked, unlock


@pytest.fixture
def path(tmp_path):
    return lock_path(tmp_path / "run")


def other(path, **about):
    """A lock that another process on another host has made."""
    owner = {"pid": 1, "host": "elsewhere", "since": time.time(), "started": 0.0, "token": "x"}
    path.write_text(json.dumps({**owner, **about}))
    return path.read_text()


def test_lock__is_there_while_it_is_held_and_may_be_taken_again(path):
    with locked(path, "it"):
        with locked(path, "it"):
            assert path.is_file()
        assert path.is_file()
        assert time.time() - last_beat(path) < 60
    assert not path.exists()
    assert last_beat(path) == -np.inf


def test_lock__of_another_is_refused_until_it_is_silent_for_long(path):
    text = other(path)
    with pytest.raises(DscError, match="process 1 on elsewhere works on it"):
        lock(path, "it")
    assert path.read_text() == text
    os.utime(path, (0, time.time() - locks.STALE - 5))
    with locked(path, "it"):
        assert json.loads(path.read_text())["pid"] == os.getpid()


def test_unlock__leaves_the_lock_of_another(path):
    lock(path, "it")
    text = other(path)  # it was taken away meanwhile
    unlock(path)
    assert path.read_text() == text


def test_check_held__notices_that_another_has_taken_the_lock(path):
    check_held(path, "it")  # of a lock that is not ours nothing is said
    lock(path, "it")
    check_held(path, "it")
    text = other(path)
    with pytest.raises(DscError, match="it: process 1 on elsewhere has taken it over"):
        check_held(path, "it")
    with pytest.raises(DscError, match="process 1 on elsewhere works on it"):
        lock(path, "it")  # nor is it taken again
    path.unlink()
    with pytest.raises(DscError, match="it: somebody else has taken it over"):
        check_held(path, "it")
    path.write_text(text)
    unlock(path)
    assert path.read_text() == text


def test_lock_path__is_one_for_all_names_of_a_folder(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "run")
    assert lock_path(tmp_path / "link") == lock_path(tmp_path / "run")
    assert lock_path(tmp_path / "run" / "." / ".." / "run") == lock_path(tmp_path / "run")


def test_stores__an_error_leaves_no_lock(tmp_path):
    class Broken:
        def __call__(self, event):
            raise KeyboardInterrupt

        def close(self):
            pass

    patches = np.random.default_rng(0).random((300, 7, 7))
    model = dsc.learn(patches, 2, 1, n_iterations=1)
    with pytest.raises(KeyboardInterrupt):
        model.encode(patches, tmp_path / "codes.zarr", progress=Broken())
    assert not list(tmp_path.glob(".*.lock"))
    model.encode(patches, tmp_path / "codes.zarr")
    assert not list(tmp_path.glob(".*.lock"))
