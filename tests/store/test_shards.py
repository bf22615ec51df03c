"""Arrays in shards: fewer objects, the same values, and no damage that goes unnoticed."""

from __future__ import annotations

import asyncio
import json
import pickle
import shutil
import struct

import google_crc32c
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from zarr.abc.store import OffsetByteRequest, RangeByteRequest, SuffixByteRequest
from zarr.core.buffer import default_buffer_prototype

import dsc
from dsc.errors import DscError
from dsc.store import (
    FORMAT,
    NARROW,
    Layout,
    check_store,
    create,
    open_store,
    schema_of,
    shard_rows,
)
from dsc.store.shards import LEAST_SHARDS, MOST_CHUNKS, SHARD_BYTES
from dsc.store.strict import StrictStore

NAMES = tuple(schema_of("codes"))
N_ROWS, CHUNK, SHARD = 23, 2, 8  # three shards, the last one of four chunks but the last row


def values_of(name):
    variable = schema_of("codes")[name]
    rng = np.random.default_rng(NAMES.index(name))
    return rng.integers(0, 99, (N_ROWS, 3)[: len(variable.dims)]).astype(variable.dtype)


def begin(url, shard=SHARD):
    layout = Layout({"patch": CHUNK}, dict.fromkeys(NAMES, shard))
    return create(url, "codes", {"patch": N_ROWS, "slot": 3}, layout, {"n_angles": 60})


def fill(store, order=(2, 0, 1)):
    for name in NAMES:
        for start in (SHARD * i for i in order):
            store.write(name, start, values_of(name)[start : start + SHARD])
    return store


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    url = tmp_path_factory.mktemp("made") / "codes"
    fill(begin(url)).finish()
    return url


@pytest.fixture
def copied(made, tmp_path):
    shutil.copytree(made, tmp_path / "codes")
    return tmp_path / "codes"


def objects_of(url):
    return {
        str(path.relative_to(url)): path.read_bytes()
        for path in url.rglob("c/**/*")
        if path.is_file()
    }


# --- the rule -----------------------------------------------------------------------------------


@given(
    n_rows=st.integers(0, 10**10),
    log_chunk=st.integers(0, 20),
    row_bytes=st.integers(1, 10**4),
    memory=st.none() | st.integers(1, 2**36),
)
def test_rule__leaves_enough_shards_and_bounds_what_a_writer_holds(
    n_rows, log_chunk, row_bytes, memory
):
    chunk = 2**log_chunk
    rows = shard_rows(n_rows, chunk, row_bytes, memory)
    n_chunks = rows // chunk
    assert rows % chunk == 0
    assert n_chunks & (n_chunks - 1) == 0  # so that shards of any two arrays fit into each other
    if n_chunks > 1:
        assert n_chunks <= MOST_CHUNKS
        assert -(-n_rows // rows) >= LEAST_SHARDS
        assert rows * row_bytes <= SHARD_BYTES
        assert memory is None or 8 * rows * row_bytes <= memory


@pytest.mark.parametrize(("row_bytes", "before", "after"), [(40, 1526, 96), (4, 1526, 96)])
def test_rule__objects_of_an_array_of_a_hundred_million_rows(row_bytes, before, after):
    n_rows, chunk = 10**8, 2**16
    assert -(-n_rows // chunk) == before
    assert -(-n_rows // shard_rows(n_rows, chunk, row_bytes)) == after


@pytest.mark.parametrize("n_rows", [1, 10**5, 127 * 2**16])
def test_rule__small_arrays_have_none(n_rows):
    assert shard_rows(n_rows, 2**16, 4) == 2**16


# --- the format ---------------------------------------------------------------------------------


def test_create__shards_of_a_chunk_are_none_and_change_no_byte(tmp_path):
    plain = create(
        tmp_path / "a", "codes", {"patch": N_ROWS, "slot": 3}, {"patch": CHUNK}, {"n_angles": 60}
    )
    for store in (plain, begin(tmp_path / "b", CHUNK)):
        fill(store).finish()
    assert objects_of(tmp_path / "a") == objects_of(tmp_path / "b")
    for name in ("zarr.json", "manifest.json", "coef/zarr.json"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    manifest = json.loads((tmp_path / "a/manifest.json").read_text())
    assert manifest["format"] == FORMAT
    assert "shards" not in manifest


def test_format__is_one_that_earlier_versions_refuse(made):
    manifest = json.loads((made / "manifest.json").read_text())
    assert manifest["format"] == dsc.open(made).attrs["dsc_format"] == NARROW > FORMAT
    assert manifest["shards"] == dict.fromkeys(NAMES, SHARD // CHUNK)


def test_objects__are_one_for_each_shard(made):
    assert len(objects_of(made)) == 3 * len(NAMES)
    store = open_store(made)
    assert (store.chunks("coef"), store.shards("coef")) == ((CHUNK, 3), (SHARD, 3))


# --- reading and writing ------------------------------------------------------------------------


@given(start=st.integers(0, N_ROWS), stop=st.integers(0, N_ROWS))
def test_read__any_rows_are_those_that_were_written(made, start, stop):
    store = open_store(made)
    for name in NAMES:
        np.testing.assert_array_equal(
            store.read(name, slice(start, stop)), values_of(name)[start:stop]
        )


def test_read__a_part_fetches_only_the_index_and_its_chunks(made, monkeypatch):
    asked = []
    fetch = StrictStore._fetch

    async def recorded(self, key, prototype, byte_range):
        asked.append((key, byte_range))
        return await fetch(self, key, prototype, byte_range)

    monkeypatch.setattr(StrictStore, "_fetch", recorded)
    open_store(made).read("coef", slice(10, 12))
    parts = [byte_range for key, byte_range in asked if "/c/" in key]
    size = CHUNK * 3 * 4 + 4
    assert parts == [SuffixByteRequest(16 * 4 + 4), RangeByteRequest(size, 2 * size)]


def test_write__in_any_order_and_again_gives_the_same_bytes(made, tmp_path):
    store = fill(begin(tmp_path / "a"), (1, 2, 0))
    first = objects_of(tmp_path / "a")
    fill(pickle.loads(pickle.dumps(store)))
    assert objects_of(tmp_path / "a") == first == objects_of(made)


def test_write__takes_the_place_of_a_shard_of_which_a_part_was_written(made, tmp_path):
    store = fill(begin(tmp_path / "a"))
    place = tmp_path / "a/coef/c/0/0"
    place.write_bytes(place.read_bytes()[:31])
    with pytest.raises(DscError, match=r"cannot be finished.* coef/c/0/0"):
        store.finish()
    store.write("coef", 0, values_of("coef")[:SHARD])
    store.finish()
    assert objects_of(tmp_path / "a") == objects_of(made)


@pytest.mark.parametrize(("start", "size"), [(0, CHUNK), (CHUNK, SHARD), (16, 4)])
def test_write__refuses_parts_of_shards(tmp_path, start, size):
    with pytest.raises(DscError, match=r"atom: axis 0: found .* need whole chunks: multiples of 8"):
        begin(tmp_path / "a").write("atom", start, np.zeros((size, 3), np.uint16))


def test_read__of_a_store_that_is_being_written_is_as_strict(tmp_path, flip):
    store = begin(tmp_path / "a")
    with pytest.raises(DscError, match=r"shard 0/0 of array 'coef' .* is missing"):
        store.read("coef", slice(0, 1))
    fill(store)
    np.testing.assert_array_equal(store.read("coef"), values_of("coef"))
    flip(tmp_path / "a/coef/c/0/0", 5)
    for rows in (slice(0, 1), slice(0, SHARD)):
        with pytest.raises(DscError, match=r"shard 0/0 of array 'coef' .* is damaged"):
            store.read("coef", rows)


# --- damage -------------------------------------------------------------------------------------


def read_parts(store, name, stop=N_ROWS):
    """Read rows chunk by chunk, which fetches byte ranges."""
    for start in range(0, stop, CHUNK):
        store.read(name, slice(start, start + CHUNK))


def notices(url, name, message):
    """Both ways to read an array say so: whole shards, and parts of them."""
    store = open_store(url)
    with pytest.raises(DscError, match=message):
        store.read(name)
    with pytest.raises(DscError, match=message):
        read_parts(store, name)
    with pytest.raises(DscError, match=message):
        dsc.open(url)[name].compute()
    assert any(name in line for line in check_store(url).bad)


@pytest.mark.parametrize("name", ["atom", "error"])
def test_damage__any_flipped_bit_is_noticed(copied, flip, name):
    place = sorted((copied / name / "c").rglob("0" if name == "error" else "0/0"))[0]
    whole = open_store(copied)
    for position in range(len(place.read_bytes())):
        flip(place, position)
        message = rf"shard .* of array '{name}' .* is damaged"
        with pytest.raises(DscError, match=message):
            whole.read(name, slice(0, SHARD))
        with pytest.raises(DscError, match=message):
            read_parts(whole, name, SHARD)
        flip(place, position)


@pytest.mark.parametrize("length", [0, 3, 20, 60, -1])
def test_damage__a_cut_shard_is_noticed(copied, length):
    place = copied / "coef/c/0/0"
    place.write_bytes(place.read_bytes()[:length])
    notices(copied, "coef", r"shard 0/0 of array 'coef' .* is damaged")


def test_damage__a_missing_shard_is_noticed(copied):
    (copied / "coef/c/1/0").unlink()
    notices(copied, "coef", r"shard 1/0 of array 'coef' .* is missing")


def test_damage__shards_that_changed_places_are_noticed(copied):
    """Their indices are the same, and every checksum in them fits."""
    first, second = copied / "coef/c/0/0", copied / "coef/c/1/0"
    swapped = first.read_bytes(), second.read_bytes()
    assert swapped[0][-68:] == swapped[1][-68:]
    second.write_bytes(swapped[0])
    first.write_bytes(swapped[1])
    notices(copied, "coef", r"shard [01]/0 .* is damaged \(chunk 0 in it: it is another chunk's")


def crafted_index(place, change):
    """Another index, with the checksum that it should have."""
    data = place.read_bytes()
    table = np.frombuffer(data[-68:-4], "<u8").reshape(4, 2).copy()
    change(table)
    text = table.tobytes()
    place.write_bytes(data[:-68] + text + struct.pack("<I", google_crc32c.value(text)))


@pytest.mark.parametrize(
    "change",
    [
        lambda table: table.__setitem__(2, 2**64 - 1),  # a chunk is left out
        lambda table: table.__setitem__(2, table[1]),  # a chunk twice
        lambda table: table.__setitem__([0, 1], table[[1, 0]]),  # two chunks exchanged
        lambda table: table.__setitem__((3, 1), 10**9),
    ],
)
def test_damage__an_index_that_leaves_out_or_exchanges_chunks_is_noticed(copied, change):
    crafted_index(copied / "coef/c/0/0", change)
    notices(copied, "coef", r"shard 0/0 of array 'coef' .* is damaged \((its index|chunk 3 in it)")


def test_damage__other_shards_and_chunks_can_be_read(copied, flip):
    flip(copied / "coef/c/0/0", 0)
    store = open_store(copied)
    np.testing.assert_array_equal(store.read("coef", slice(CHUNK, None)), values_of("coef")[CHUNK:])


def test_damage__check_counts_the_chunks_in_shards(made):
    found = check_store(made)
    assert found.good
    assert found.n_checked == 1 + 6 + len(NAMES) * 12  # manifest, metadata, chunks


# --- byte ranges --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "request_",
    [
        RangeByteRequest(3, 40),
        OffsetByteRequest(90),
        SuffixByteRequest(7),
        SuffixByteRequest(10**6),
        None,
    ],
)
def test_range__any_other_one_is_of_an_object_that_was_checked(copied, flip, request_):
    store, key = open_store(copied).zarr(), "coef/c/0/0"
    data = (copied / key).read_bytes()

    def ask():
        return asyncio.run(store.get(key, default_buffer_prototype(), request_)).to_bytes()

    expected = {
        RangeByteRequest: data[3:40], OffsetByteRequest: data[90:], type(None): data,
        SuffixByteRequest: data[-7:] if request_ == SuffixByteRequest(7) else data,
    }[type(request_)]  # fmt: skip
    assert ask() == expected
    flip(copied / key, 50)
    with pytest.raises(DscError, match="is damaged"):
        ask()


def test_range__of_plain_chunks_and_of_many_keys(finished):
    store = open_store(finished()).zarr()
    wanted = [("coef/c/0/0", RangeByteRequest(1, 5)), ("coef/c/1/0", None)]
    found = asyncio.run(store.get_partial_values(default_buffer_prototype(), wanted))
    assert [len(part) for part in found] == [4, 4 * 2 * 4 + 4]


@pytest.mark.parametrize("is_sync", [False, True])
def test_range__a_run_of_chunks_is_fetched_alone_and_checked_chunk_by_chunk(copied, flip, is_sync):
    """As newer versions of zarr ask, which join the ranges of neighbors."""
    store, key = open_store(copied).zarr(), "coef/c/0/0"
    size = CHUNK * 3 * 4 + 4
    place, kind = store._store, default_buffer_prototype()

    async def ask_one(byte_range):
        groups = store.get_ranges(key, [byte_range], prototype=kind)
        ((_, part),) = [pair async for group in groups for pair in group]
        return part

    def ask(byte_range):
        if is_sync:
            return store.get_sync(key, prototype=kind, byte_range=byte_range)
        return asyncio.run(ask_one(byte_range))

    if is_sync:  # what some stores of zarr have
        place.get_sync = lambda key, prototype, byte_range: asyncio.run(
            place.get(key, prototype, byte_range)
        )
    data = (copied / key).read_bytes()
    assert ask(SuffixByteRequest(68)).to_bytes() == data[-68:]
    wanted = RangeByteRequest(size, 3 * size)
    assert ask(wanted).to_bytes() == data[size : 3 * size]
    flip(copied / key, 0)  # of the first chunk, which is not asked for
    assert ask(wanted).to_bytes() == data[size : 3 * size]
    flip(copied / key, 2 * size)
    with pytest.raises(DscError, match=r"is damaged \(chunk 2 in it"):
        ask(wanted)


def test_s3__shards_are_read_in_parts_and_checked(s3):
    import fsspec

    store = fill(begin(s3("shards.zarr"))).finish()
    np.testing.assert_array_equal(store.read("coef"), values_of("coef"))
    np.testing.assert_array_equal(store.read("coef", slice(9, 13)), values_of("coef")[9:13])
    fs, path = fsspec.core.url_to_fs(s3("shards.zarr/coef/c/1/0"))
    content = fs.cat_file(path)
    fs.pipe_file(path, content[:40])
    with pytest.raises(DscError, match=r"shard 1/0 of array 'coef' .* (is damaged|cannot be read)"):
        store.read("coef", slice(9, 13))
    fs.rm(path)
    with pytest.raises(DscError, match=r"shard 1/0 of array 'coef' .* is missing"):
        store.read("coef", slice(9, 13))


# --- as a dataset -------------------------------------------------------------------------------


def test_open__reads_only_metadata_and_is_cut_into_shards(made, monkeypatch):
    asked = []
    fetch = StrictStore._fetch

    async def recorded(self, key, prototype, byte_range):
        asked.append(key)
        return await fetch(self, key, prototype, byte_range)

    monkeypatch.setattr(StrictStore, "_fetch", recorded)
    codes = dsc.open(made)
    assert asked
    assert not [key for key in asked if "/c/" in key]
    assert codes.coef.chunks == ((8, 8, 7), (3,))
    assert codes.error.chunks == ((8, 8, 7),)
    np.testing.assert_array_equal(codes.coef[8:16].compute(), values_of("coef")[8:16])
    assert {key for key in asked if "/c/" in key} == {"coef/c/1/0"}
