"""Codes in a store: in shards where there are many, in few bytes, open as Dask arrays."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

import dsc
from dsc.cli.main import main
from dsc.dictionary import describe
from dsc.dictionary import encode as coding
from dsc.dictionary.encode import create_codes, encode_parts
from dsc.engine import Engine
from dsc.engine.plan import Resources
from dsc.errors import DscError
from dsc.patches import as_source
from dsc.store import FORMAT, NARROW, is_finished, open_store, shards

ARRAYS = ("atom", "angle", "coef", "error", "rest")
N_PATCHES, CHUNK, SHARD = 1000, 32, 128


@pytest.fixture(scope="module")
def patches(natural_patches):
    return natural_patches(7, N_PATCHES)


@pytest.fixture(scope="module")
def model(patches):
    return dsc.learn(patches, 6, 3, n_iterations=2, progress=False)


@pytest.fixture
def many(monkeypatch):
    """As if the patches were many: chunks of 32, shards of four."""
    monkeypatch.setattr(coding, "CHUNK", CHUNK)
    monkeypatch.setattr(shards, "LEAST_SHARDS", 8)


def bytes_of(url):
    return {str(p.relative_to(url)): p.read_bytes() for p in url.rglob("*") if p.is_file()}


# --- shards -------------------------------------------------------------------------------------


def test_shards__hold_the_same_codes_for_any_number_of_workers(model, patches, tmp_path, many):
    expected = model.encode(patches)
    for n_workers in (1, 3):
        coded = model.encode(patches, tmp_path / f"{n_workers}", n_workers=n_workers)
        store = open_store(coded.url)
        assert store.shards("coef") == (SHARD, 3)
        assert store.chunks("coef") == (CHUNK, 3)
        assert coded.mse == pytest.approx(expected.mse, rel=1e-12)
        for name in ARRAYS[:-1]:
            wanted = getattr(expected.codes, name)
            np.testing.assert_array_equal(getattr(coded.codes, name), wanted)
            np.testing.assert_array_equal(dsc.open(coded.url)[name], wanted)
        np.testing.assert_array_equal(coded.rest, expected.rest)
    assert bytes_of(tmp_path / "1") == bytes_of(tmp_path / "3")


def test_shards__small_sets_have_none(model, patches, tmp_path):
    coded = model.encode(patches, tmp_path / "a")
    assert open_store(coded.url).attributes["dsc_format"] == FORMAT
    assert "shards" not in (tmp_path / "a/manifest.json").read_text()


class Large:
    """Says that it has many patches."""

    diameter, center, unit, fingerprint = 7, False, False, "0" * 64

    def __init__(self, n_patches):
        self.n_patches = n_patches

    def part(self, *_):
        return self


def test_objects__of_the_codes_of_a_hundred_million_patches(model, tmp_path):
    """The real store and tasks, of which none is run: 96 objects an array instead of 1,526."""
    engine, source = Engine("threads", Resources(4, 8 * 10**9)), Large(10**8)
    coder = replace(model.coder, sparsity=4)
    store = create_codes(tmp_path / "a", coder, source, engine)
    chunk, rows = store.chunks("coef")[0], store.shards("coef")[0]
    assert {store.shards(name)[0] for name in ARRAYS} == {rows}
    assert (-(-(10**8) // chunk), -(-(10**8) // rows)) == (1526, 96)
    assert rows * (8 * 4 + 8) == 40 * 2**20  # bytes that a task holds, at most twice
    parts = encode_parts(source, engine, store)
    assert all(part.start % rows == 0 and part.leaf_size == rows for part in parts)
    assert len(parts) >= 32
    assert parts[-1].stop == 10**8


def test_shards__are_smaller_where_memory_is(model, tmp_path):
    engine, source = Engine("threads", Resources(4, 400 * 10**6)), Large(10**8)
    store = create_codes(tmp_path / "a", replace(model.coder, sparsity=4), source, engine)
    held = store.shards("coef")[0] * 40
    assert store.shards("coef")[0] == 4 * 2**16
    assert 2 * held <= engine.resources.memory_per_thread / 4


KILLED = """
import os, signal, sys
import numpy as np
import dsc
from dsc.dictionary import encode as coding
from dsc.store import Store, shards
coding.CHUNK, shards.LEAST_SHARDS = 32, 8
write, seen = Store.write, []
def write_some(self, name, start, values):
    seen.append(name)
    if seen.count("coef") == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    write(self, name, start, values)
Store.write = write_some
dsc.Dictionary.load(sys.argv[1]).encode(np.load(sys.argv[2]), sys.argv[3], n_workers=1)
"""


def test_shards__a_killed_writer_and_the_same_again_end_in_the_same_bytes(
    model, patches, tmp_path, many
):
    model.save(tmp_path / "model")
    np.save(tmp_path / "patches.npy", patches)
    out = tmp_path / "codes"
    run = [
        sys.executable,
        "-c",
        KILLED,
        *map(str, (tmp_path / "model", tmp_path / "patches.npy", out)),
    ]
    assert subprocess.run(run, check=False).returncode == -signal.SIGKILL
    written = list((out / "coef/c").glob("*/0"))
    assert len(written) == 2
    assert not is_finished(out)
    written[0].write_bytes(b"half a shard")
    model.encode(patches, out)
    model.encode(patches, tmp_path / "other")
    assert bytes_of(out) == bytes_of(tmp_path / "other")


# --- few bytes ----------------------------------------------------------------------------------


@pytest.mark.parametrize("basis", ["disk", "annular"])  # orthonormal, and not
def test_float16__costs_little_error_and_saves_two_bytes_a_slot(patches, tmp_path, basis):
    model = dsc.learn(patches, 6, 3, basis=basis, n_iterations=1, progress=False)
    wide = model.encode(patches, tmp_path / "wide")
    narrow = model.encode(patches, tmp_path / "narrow", coef_type="float16")
    assert wide.bytes_per_patch - narrow.bytes_per_patch == pytest.approx(2 * 3)
    assert narrow.codes.coef.dtype == np.float32
    # |δa| ≤ 2⁻¹¹ |a| for each atom of norm 1 in coordinates
    change = np.abs(wide.codes.coef).sum(axis=1) * 2**-11
    bound = (np.sqrt(wide.codes.error) + change) ** 2
    assert (narrow.codes.error <= bound * (1 + 1e-4) + 1e-10).all()
    assert wide.mse * (1 - 1e-6) <= narrow.mse <= 1.001 * wide.mse
    assert narrow.share == pytest.approx(wide.share, rel=1e-3)


def test_float16__errors_are_those_of_the_rounded_coefficients(model, patches, tmp_path):
    coded = model.encode(patches, tmp_path / "a", coef_type="float16")
    stored = dsc.open(coded.url)
    assert stored.coef.dtype == np.float16
    assert stored.attrs["dsc_format"] == NARROW
    np.testing.assert_array_equal(coded.codes.coef, stored.coef)
    images, mask = model.decode(coded.codes), model.basis.mask
    error = (patches - images)[:, mask].astype(np.float64) ** 2
    assert coded.mse == pytest.approx(error.mean(), rel=1e-4)
    coords = model.basis.project(patches)
    residual = coords - model.coder.decode(coded.codes)
    np.testing.assert_allclose(coded.codes.error, (residual**2).sum(axis=1), rtol=1e-4, atol=1e-9)
    in_memory = model.encode(patches, coef_type="float16")
    np.testing.assert_array_equal(in_memory.codes.coef, coded.codes.coef)
    assert in_memory.mse == coded.mse
    assert in_memory.bytes_per_patch is None


def test_float16__refuses_what_it_cannot_hold(model, patches, tmp_path):
    with pytest.raises(
        DscError, match=r"coef_type: .*\(patch \d+\), need at most 65504.*use float32"
    ):
        model.encode(1e6 * patches, tmp_path / "a", coef_type="float16")
    assert not is_finished(tmp_path / "a")
    assert model.encode(1e6 * patches, tmp_path / "a").n_patches == N_PATCHES
    with pytest.raises(DscError, match=r"coef_type: unknown 'float8'"):
        model.encode(patches, tmp_path / "b", coef_type="float8")
    assert not (tmp_path / "b").exists()


def test_bytes__are_those_of_the_arrays(model, patches, tmp_path):
    coded = model.encode(patches, tmp_path / "a")
    stored = sum(len(data) for key, data in bytes_of(tmp_path / "a").items() if "/c/" in key)
    assert coded.bytes_per_patch == stored / N_PATCHES
    assert describe(coded.url)["bytes_per_patch"] == coded.bytes_per_patch
    assert f"{coded.bytes_per_patch:.1f}" in coded._repr_html_()


def test_command__says_bytes_per_patch_and_takes_the_type(model, image, tmp_path):
    config = dsc.PatchConfig(diameter=7)
    dsc.extract_patches(image("camera")[:40, :40], tmp_path / "p", config)
    model.save(tmp_path / "model")

    def run(*words):
        done = CliRunner().invoke(main, [str(word) for word in words], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.stdout

    encode = ["encode", tmp_path / "p", tmp_path / "model"]
    wide = json.loads(run(*encode, "--out", tmp_path / "wide", "--json"))
    narrow = run(*encode, "--out", tmp_path / "narrow", "--coef-type", "float16")
    about = json.loads(run("info", tmp_path / "narrow", "--json"))
    assert wide["bytes_per_patch"] - about["bytes_per_patch"] == pytest.approx(6)
    assert f"{about['bytes_per_patch']:.1f} bytes per patch" in narrow
    assert "bytes_per_patch" in run("info", tmp_path / "wide")


# --- open ---------------------------------------------------------------------------------------


def test_open__codes_are_dask_arrays_with_what_is_known_of_them(model, patches, tmp_path):
    coded = model.encode(patches, tmp_path / "a")
    codes = dsc.open(tmp_path / "a", "codes")
    assert set(codes) == set(ARRAYS)
    assert all(codes[name].chunks is not None for name in ARRAYS)
    assert codes.sizes == {"patch": N_PATCHES, "slot": 3}
    assert codes.attrs["n_angles"] == 60
    mean = codes.coef.mean("patch").compute()
    np.testing.assert_allclose(mean, coded.codes.coef.mean(axis=0), rtol=1e-5)


def test_open__models_have_what_to_xarray_gives(model, tmp_path):
    model.save(tmp_path / "model")
    opened, given = dsc.open(tmp_path / "model"), model.to_xarray()
    for name in given:
        assert opened[name].dims == given[name].dims
        np.testing.assert_array_equal(opened[name], given[name])


def test_open__maps_have_named_channels(model, image, tmp_path):
    given = model.features(image("camera")[:40, :50], out=tmp_path / "maps")
    opened = dsc.open(tmp_path / "maps")["0"]
    assert opened.chunks is not None
    assert opened.c.values.tolist() == given.channel.values.tolist()
    np.testing.assert_array_equal(opened, given)


def test_open__patch_sets_have_positions(image, tmp_path):
    made = dsc.extract_patches(
        image("camera")[:30, :40], tmp_path / "p", dsc.PatchConfig(diameter=7)
    )
    opened = dsc.open(tmp_path / "p")
    at = as_source(tmp_path / "p").positions(0, made.n_patches)
    for name in ("image", "y", "x"):
        assert opened[name].chunks is not None
        np.testing.assert_array_equal(opened[name], getattr(at, name))
