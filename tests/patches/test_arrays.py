"""Arrays that a user already has, as patches."""

from __future__ import annotations

import pickle

import dask.array
import numpy as np
import pytest
import xarray
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st

import dsc
from dsc.basis.grid import disk_mask
from dsc.errors import DscError
from dsc.patches import ArrayPatches, as_source, extract_patches

VALUES = np.random.default_rng(0).integers(0, 256, (300, 11, 11)).astype(np.float32)


@pytest.fixture(scope="module")
def kinds(tmp_path_factory):
    """The same patches as every kind of array."""
    path = tmp_path_factory.mktemp("arrays") / "a.zarr"
    stored = zarr.create_array(path, data=VALUES, chunks=(70, 11, 11))
    dims = ("patch", "y", "x")
    lazy = dask.array.from_array(VALUES, chunks=((90, 10, 200), 11, 11))
    made = {
        "numpy": VALUES,
        "big-endian": VALUES.astype(">f4"),
        "float64": VALUES.astype(np.float64),
        "uint8": VALUES.astype(np.uint8),
        "int32": VALUES.astype(np.int32),
        "fortran": np.asfortranarray(VALUES),
        "strided": np.repeat(VALUES, 2, axis=0)[::2],
        "dask": lazy,
        "zarr": stored,
        "xarray": xarray.DataArray(VALUES, dims=dims),
        "xarray of dask": xarray.DataArray(lazy, dims=dims),
        "xarray of zarr": xarray.open_zarr(
            _dataset(path.parent), consolidated=False, chunks=None
        ).v,
        "list": VALUES.tolist(),
    }
    made["numpy"].setflags(write=False)
    return made


def _dataset(folder):
    xarray.Dataset({"v": (("patch", "y", "x"), VALUES)}).to_zarr(
        folder / "d.zarr", consolidated=False, zarr_format=3
    )
    return folder / "d.zarr"


KINDS = ["numpy", "big-endian", "float64", "uint8", "int32", "fortran", "strided", "dask", "zarr",
         "xarray", "xarray of dask", "xarray of zarr", "list"]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_kinds__all_give_the_same_bits(kinds, kind):
    source = as_source(kinds[kind])
    assert (source.n_patches, source.diameter) == (300, 11)
    expected = VALUES[:, disk_mask(11)]
    np.testing.assert_array_equal(source.pixels(0, 300), expected)
    np.testing.assert_array_equal(source.pixels(85, 105), expected[85:105])
    assert source.pixels(7, 7).shape == (0, 97)
    basis = dsc.disk_basis(11)
    for found, wanted in zip(
        source.read_with_rest(basis, 60, 250),
        basis.project_with_rest(expected[60:250]),
        strict=True,
    ):
        np.testing.assert_array_equal(found, wanted)
    assert source.fingerprint == ArrayPatches(VALUES).fingerprint


@settings(max_examples=60)
@given(kind=st.sampled_from(KINDS), data=st.data())
def test_part__any_span_of_any_part_has_the_same_bits(kinds, kind, data):
    source = as_source(kinds[kind])
    a, b, c, d = sorted(data.draw(st.lists(st.integers(0, 300), min_size=4, max_size=4)))
    part = pickle.loads(pickle.dumps(source.part(a, d)))
    np.testing.assert_array_equal(part.pixels(b, c), VALUES[b:c][:, disk_mask(11)])
    inner = part.part(b, c)
    np.testing.assert_array_equal(inner.pixels(b, c), VALUES[b:c][:, disk_mask(11)])
    assert inner.n_patches == 300
    with pytest.raises(DscError, match=r"need a part of"):
        part.pixels(0, 301)


@pytest.mark.parametrize("kind", ["numpy", "strided", "dask", "xarray", "xarray of dask", "zarr"])
def test_part__only_its_rows_are_sent(kinds, kind):
    part = as_source(kinds[kind]).part(30, 40)
    assert len(pickle.dumps(part)) < 12 * VALUES[0].nbytes + 6000 + 90 * VALUES[0].nbytes * (
        "dask" in kind  # a chunk of Dask travels whole
    )


@given(center=st.booleans(), unit=st.booleans(), scale=st.sampled_from([1e-12, 1.0, 1e6]))
def test_normalisation__is_that_of_stored_patches(tmp_path_factory, center, unit, scale):
    image = (np.random.default_rng(1).random((20, 20)) * scale).astype(np.float32)
    from dsc.patches import PatchConfig

    path = tmp_path_factory.mktemp("stored") / "a"
    stored = extract_patches(image, path, PatchConfig(center=center, unit=unit))
    windows = np.lib.stride_tricks.sliding_window_view(image, (11, 11)).reshape(-1, 11, 11)
    array = ArrayPatches(windows, center=center, unit=unit)
    np.testing.assert_array_equal(array.pixels(0, 100), stored.pixels(0, 100))


def test_fingerprint__is_of_values_and_normalisation(kinds):
    changed = VALUES.copy()
    changed[299, 0, 0] += 1
    found = {
        ArrayPatches(VALUES).fingerprint,
        ArrayPatches(changed).fingerprint,
        ArrayPatches(VALUES, center=True).fingerprint,
        ArrayPatches(VALUES, unit=True).fingerprint,
        ArrayPatches(VALUES[:200]).fingerprint,
    }
    assert len(found) == 5


def test_fingerprint__a_part_has_that_of_the_whole():
    source = ArrayPatches(VALUES)
    with pytest.raises(DscError, match=r"ask the whole one"):
        _ = source.part(0, 10).fingerprint
    whole = source.fingerprint
    assert source.part(0, 10).fingerprint == whole
    assert pickle.loads(pickle.dumps(source.part(0, 10).part(2, 4))).fingerprint == whole


def test_dask__chunks_are_computed_once_for_many_blocks():
    computed = []

    def load(block):
        computed.append(len(block))
        return block

    lazy = dask.array.from_array(VALUES, chunks=(100, 11, 11)).map_blocks(
        load, dtype=np.float32, meta=VALUES[:0]
    )
    source = as_source(lazy)
    for start in range(0, 300, 10):
        source.pixels(start, start + 10)
    assert sum(computed) == 300


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros((5, 11)), r"found shape \(5, 11\), need \(patch, diameter, diameter\)"),
        (np.zeros((5, 11, 12)), r"found shape \(5, 11, 12\)"),
        (np.zeros((0, 11, 11)), r"found 0 of them"),
        (np.zeros((5, 2, 2)), r"diameter: found 2"),
        (np.zeros((5, 11, 11), complex), r"found dtype complex128, need real numbers"),
        (np.zeros((5, 11, 11), "datetime64[s]"), r"found dtype datetime64"),
        (xarray.Dataset({"a": ("x", [1])}), r"found an xarray dataset, need one array"),
        ([["a", "b"]], r"found shape|found dtype"),
    ],
)
def test_bad__arrays_are_refused(array, message):
    with pytest.raises(DscError, match=message):
        as_source(array)


def test_arrays__of_unknown_chunks_say_what_to_do():
    array = dask.array.from_array(np.ones((8, 5, 5), np.float32), chunks=4)
    some = array[dask.array.from_array(np.arange(8) > 2, chunks=4)]
    with pytest.raises(DscError, match=r"unknown sizes.*compute_chunk_sizes"):
        ArrayPatches(some)
    some.compute_chunk_sizes()
    assert ArrayPatches(some).n_patches == 5


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e300])
def test_bad__values_are_named_by_patch(value):
    values = VALUES.astype(np.float64)
    values[123, 5, 5] = value
    for options in ({}, {"center": True, "unit": True}):
        source = ArrayPatches(values, **options)
        with pytest.raises(DscError, match=r"patches: found (nan|inf) in row 123"):
            source.pixels(100, 200)
    values[123, 5, 5] = 0
    values[:, 0, 0] = np.nan  # outside the disk
    assert np.isfinite(ArrayPatches(values).pixels(0, 300)).all()


def test_basis__of_another_diameter_is_refused():
    for read in (ArrayPatches(VALUES).read, ArrayPatches(VALUES).read_with_rest):
        with pytest.raises(DscError, match=r"basis: found diameter 9, need 11"):
            read(dsc.disk_basis(9), 0, 10)
