"""Writing and reading stores."""

from __future__ import annotations

import hashlib
import json
import pickle
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dsc
from dsc.errors import DscError
from dsc.store import FORMAT, create, is_finished, kinds, open_store, schema_of

CODES = {"patch": 10, "slot": 2}


def tree(path):
    """Hash of every file below a path, by name."""
    return {
        str(file.relative_to(path)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in path.rglob("*")
        if file.is_file()
    }


def codes_store(path, n_patches=10, chunk=4):
    return create(path, "codes", {"patch": n_patches, "slot": 2}, {"patch": chunk}, {})


def write_codes(store, n_patches=10):
    for name, variable in schema_of("codes").items():
        shape = (n_patches, 2)[: len(variable.dims)]
        store.write(name, 0, np.ones(shape, variable.dtype))


@pytest.mark.parametrize("kind", kinds())
def test_store__what_was_written_is_read(kind, finished, arrays):
    store = open_store(finished(kind), kind)
    assert set(store.variables) == set(arrays(kind))
    for name, values in arrays(kind).items():
        found = store.read(name)
        assert found.dtype == values.dtype
        np.testing.assert_array_equal(found, values)


def test_store__attributes_say_what_it_is(finished):
    attributes = open_store(finished()).attributes
    assert attributes == {
        "answer": 42,
        "dsc_kind": "codes",
        "dsc_format": FORMAT,
        "dsc_version": dsc.__version__,
    }


def test_store__optional_variables_are_there_only_if_wanted(tmp_path):
    for name, wanted in (("a", []), ("b", ["label"])):
        store = create(tmp_path / name, "patches", {"patch": 3}, {}, {}, wanted)
        for variable in ["image", "y", "x", *wanted]:
            store.write(variable, 0, np.zeros(3, np.int32))
        assert set(store.finish().variables) == {"image", "y", "x", *wanted}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=15)
@given(n=st.integers(1, 40), chunk=st.integers(1, 50), tasks=st.integers(1, 4), data=st.data())
def test_write__any_chunks_in_any_order_give_the_same_values(
    tmp_path_factory, n, chunk, tasks, data
):
    path = tmp_path_factory.mktemp("store") / "codes.zarr"
    store = codes_store(path, n, chunk)
    write_codes(store, n)
    values = np.random.default_rng(n).standard_normal((n, 2)).astype(np.float32)
    step = tasks * min(chunk, n)
    for start in data.draw(st.permutations(range(0, n, step))):
        store.write("coef", start, values[start : start + step])
    found = store.finish()
    np.testing.assert_array_equal(found.read("coef"), values)
    start, stop = sorted(data.draw(st.tuples(st.integers(0, n), st.integers(0, n))))
    np.testing.assert_array_equal(found.read("coef", slice(start, stop)), values[start:stop])


def test_write__again_gives_the_same_bytes(tmp_path):
    store = codes_store(tmp_path / "a")
    write_codes(store)
    before = tree(tmp_path / "a")
    write_codes(pickle.loads(pickle.dumps(store)))
    assert tree(tmp_path / "a") == before


def test_write__from_many_threads(tmp_path):
    store = codes_store(tmp_path / "a", 400, 4)
    write_codes(store, 400)
    values = np.arange(800, dtype=np.uint16).reshape(400, 2)
    with ThreadPoolExecutor(8) as pool:
        jobs = [pool.submit(store.write, "atom", i, values[i : i + 4]) for i in range(0, 400, 4)]
    for job in jobs:
        job.result()
    np.testing.assert_array_equal(store.finish().read("atom"), values)


@pytest.mark.parametrize(("start", "size"), [(1, 4), (0, 3), (4, 5), (8, 4), (-4, 4)])
def test_write__refuses_parts_of_chunks(tmp_path, start, size):
    store = codes_store(tmp_path / "a")
    with pytest.raises(DscError, match=r"atom: axis 0: found .* need"):
        store.write("atom", start, np.zeros((size, 2), np.uint16))


def test_write__names_all_axes_that_do_not_fit(tmp_path):
    store = codes_store(tmp_path / "a")
    with pytest.raises(DscError, match=r"axis 0.*axis 1"):
        store.write("atom", 1, np.zeros((4, 1), np.uint16))


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("atom", np.zeros((4, 2), np.int64), "found values of type int64, need uint16"),
        ("coef", np.zeros((4, 2), np.complex64), "found values of type complex64"),
        ("coef", np.zeros(4, np.float32), "need 2-D"),
        ("atoms", np.zeros((4, 2)), "unknown 'atoms', need one of .* did you mean 'atom'"),
    ],
)
def test_write__refuses_other_values(tmp_path, name, values, message):
    with pytest.raises(DscError, match=message):
        codes_store(tmp_path / "a").write(name, 0, values)


def test_write__finished_stores_are_not_changed(finished):
    with pytest.raises(DscError, match=r"is finished and cannot be changed"):
        open_store(finished()).write("error", 0, np.zeros(10))


def test_chunks__empty_ones_are_written_with_checksums(tmp_path):
    store = codes_store(tmp_path / "a")
    write_codes(store)
    store.write("atom", 0, np.zeros((10, 2), np.uint16))
    store.write("error", 0, np.full(10, np.nan, np.float32))
    store.finish()
    for name in schema_of("codes"):
        metadata = json.loads((tmp_path / "a" / name / "zarr.json").read_text())
        assert metadata["codecs"][-1]["name"] == "crc32c"
        assert "_FillValue" not in metadata["attributes"]
        assert metadata["fill_value"] == ("NaN" if "float" in metadata["data_type"] else 0)
        assert {p.name for p in (tmp_path / "a" / name / "c").iterdir()} == {"0", "1", "2"}


def test_finish__lists_missing_chunks(tmp_path):
    store = codes_store(tmp_path / "a")
    write_codes(store)
    (tmp_path / "a" / "coef" / "c" / "1" / "0").unlink()
    (tmp_path / "a" / "error" / "c" / "2").unlink()
    with pytest.raises(DscError, match=r"2 of 15 chunks .*\(coef/c/1/0, error/c/2\)"):
        store.finish()
    assert not is_finished(tmp_path / "a")


def test_finish__twice_is_once(tmp_path):
    store = codes_store(tmp_path / "a")
    write_codes(store)
    first = store.finish()
    assert first.finish() == first


def test_create__refuses_what_is_there(finished, tmp_path):
    with pytest.raises(DscError, match=r"a finished store of codes; it is not overwritten"):
        codes_store(finished())
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "mine.txt").write_text("keep me")
    (tmp_path / "file").write_text("keep me")
    for name in ("notes", "file"):
        with pytest.raises(DscError, match=r"no store of dsc; it is not overwritten"):
            codes_store(tmp_path / name)
    assert (tmp_path / "notes" / "mine.txt").read_text() == "keep me"


def test_create__takes_an_empty_folder(tmp_path):
    (tmp_path / "a").mkdir()
    codes_store(tmp_path / "a")


def test_create__takes_a_folder_of_which_a_kill_left_no_more_than_an_unnamed_file(tmp_path):
    unnamed = "zarr.feb26a6417e94a648debc45707ea565a.partial"  # how Zarr writes before it renames
    for name, others in {"a": [], "b": ["mine.txt"], "c": ["mine.partial"]}.items():
        (tmp_path / name).mkdir()
        for file in [unnamed, *others]:
            (tmp_path / name / file).write_text("{")
    store = codes_store(tmp_path / "a")
    write_codes(store)
    assert open_store(store.finish().url).kind == "codes"
    assert not (tmp_path / "a" / unnamed).exists()
    for name in "bc":
        with pytest.raises(DscError, match=r"no store of dsc; it is not overwritten"):
            codes_store(tmp_path / name)
        assert len(list((tmp_path / name).iterdir())) == 2


KILLED_AT_FIRST = """
import os, signal, sys
from pathlib import Path
from dsc.store import create
Path.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
create(sys.argv[1], "codes", {"patch": 10, "slot": 2}, {"patch": 4}, {})
"""


def test_create__killed_at_its_first_file_can_begin_again(tmp_path):
    place = tmp_path / "a"
    done = subprocess.run([sys.executable, "-c", KILLED_AT_FIRST, str(place)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert [path.suffix for path in place.iterdir()] == [".partial"]
    write_codes(codes_store(place))


def test_create__says_what_the_file_system_says(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DscError, match=r"file/a: cannot be \w+: .*(Not a directory|File exists)"):
        codes_store(tmp_path / "file" / "a")


def test_create__names_all_problems(tmp_path):
    with pytest.raises(DscError) as error:
        create(tmp_path / "a", "codes", {"patch": -1}, {"patch": 0}, {})
    for text in ("size of slot is missing", "size of patch: found -1", "chunk of patch: found 0"):
        assert text in str(error.value)
    with pytest.raises(DscError, match=r"did you mean 'codes'"):
        create(tmp_path / "a", "code", {}, {}, {})
    with pytest.raises(DscError, match=r"did you mean 'label'"):
        create(tmp_path / "a", "patches", {"patch": 1}, {}, {}, ["labels"])
    assert not (tmp_path / "a").exists()


KILLED = """
import os, signal, sys
import numpy as np
from dsc.store import create
store = create(sys.argv[1], "codes", {"patch": 10, "slot": 2}, {"patch": 4}, {})
store.write("atom", 0, np.zeros((4, 2), np.uint16))
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_create__replaces_what_a_killed_writer_left(tmp_path):
    path = tmp_path / "a"
    killed = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    assert killed.returncode == -9
    assert (path / "atom" / "c" / "0" / "0").exists()
    assert not is_finished(path)
    with pytest.raises(DscError, match=r"unfinished store of codes"):
        open_store(path)
    store = codes_store(path)
    assert not (path / "atom" / "c").exists()
    write_codes(store)
    assert open_store(store.finish().url, "codes").kind == "codes"


def test_write__a_store_that_was_removed_is_not_made_again(tmp_path):
    path = tmp_path / "codes.zarr"
    store = codes_store(path)
    shutil.rmtree(path)
    with pytest.raises(DscError, match="was removed while it was written: repeat"), store.writing():
        write_codes(store)
    assert not list(tmp_path.iterdir())
    with pytest.raises(DscError, match="was removed while it was written"):
        store.finish()
    store = codes_store(path)
    write_codes(store)
    assert is_finished(store.finish().url)


def test_write__of_a_half_removed_store_only_what_we_wrote_goes(tmp_path):
    path = tmp_path / "codes.zarr"
    store = codes_store(path)
    write_codes(store)
    mine, swapped = path / "thesis.tex", next(path.glob("*/c/0"))
    mine.write_text("mine")
    swapped.unlink()
    swapped.write_text("mine, too")
    (path / "zarr.json").unlink()
    with pytest.raises(DscError, match="was removed while it was written"), store.writing():
        write_codes(store)
    assert {file for file in path.rglob("*") if file.is_file()} == {mine, swapped}
    with pytest.raises(DscError, match="exists and is no store of dsc"):
        codes_store(path)
    assert mine.read_text() == "mine"


def test_finish__refuses_a_store_whose_lock_another_has_taken(tmp_path):
    path = tmp_path / "codes.zarr"
    store = codes_store(path)
    write_codes(store)
    lock = tmp_path / ".codes.zarr.lock"
    theirs = {**json.loads(lock.read_text()), "host": "elsewhere", "pid": 7, "token": "x"}
    lock.write_text(json.dumps(theirs))
    with pytest.raises(DscError, match="process 7 on elsewhere has taken it over"), store.writing():
        store.finish()
    assert not is_finished(path)
    assert json.loads(lock.read_text()) == theirs


def test_handle__is_small_and_works_elsewhere(finished):
    store = open_store(finished())
    message = pickle.dumps(store)
    assert len(message) < 1000
    code = "import pickle, sys; print(pickle.load(sys.stdin.buffer).read('coef').sum())"
    run = subprocess.run([sys.executable, "-c", code], input=message, capture_output=True)
    assert float(run.stdout) == store.read("coef").sum()


def test_handle__notices_another_store_in_its_place(tmp_path, finished):
    url = finished()
    old = open_store(url)
    (url / "manifest.json").unlink()
    store = codes_store(url, 6)
    write_codes(store, 6)
    store.finish()
    with pytest.raises(DscError, match=r"was replaced after it was opened"):
        old.read("coef")
