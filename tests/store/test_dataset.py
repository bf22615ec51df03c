"""Stores as xarray datasets."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import dsc
from dsc.errors import DscError
from dsc.store import (
    basis_sizes,
    basis_variables,
    create,
    kinds,
    open_dataset,
    read_basis,
    schema_of,
)


@pytest.mark.parametrize("kind", kinds())
def test_dataset__has_named_dimensions_and_descriptions(kind, finished, arrays):
    dataset = open_dataset(finished(kind))
    assert dataset.attrs["dsc_kind"] == kind
    assert dataset.attrs["answer"] == 42
    assert set(dataset.variables) == set(arrays(kind))
    for name in dataset.variables:
        variable = schema_of(kind)[name]
        assert dataset[name].dims == variable.dims
        assert dataset[name].dtype == variable.dtype
        assert dataset[name].attrs["description"] == variable.description
        assert dataset[name].attrs.get("units", "") == variable.units
        np.testing.assert_array_equal(dataset[name].values, arrays(kind)[name])


def test_dataset__empty_slots_stay_whole_numbers(tmp_path):
    store = create(tmp_path / "a", "codes", {"patch": 4, "slot": 1}, {}, {"n_angles": 60})
    store.write("atom", 0, np.full((4, 1), 65535, np.uint16))
    store.write("angle", 0, np.zeros((4, 1), np.uint16))
    store.write("coef", 0, np.zeros((4, 1), np.float32))
    for name in ("error", "rest"):
        store.write(name, 0, np.zeros(4, np.float32))
    store.finish()
    atom = open_dataset(tmp_path / "a").atom.load()
    assert atom.dtype == np.uint16
    assert (atom == 65535).all()


def test_dataset__is_read_only_when_asked(finished):
    url = finished()
    (url / "coef" / "c" / "1" / "0").unlink()
    dataset = open_dataset(url)
    assert dataset.coef[:4].load().shape == (4, 2)
    assert dataset.atom.load().shape == (10, 2)
    with pytest.raises(DscError, match=r"chunk 1/0 of array 'coef'"):
        dataset.coef.load()


def test_dataset__can_be_sent(finished, arrays):
    dataset = pickle.loads(pickle.dumps(open_dataset(finished())))
    np.testing.assert_array_equal(dataset.coef, arrays("codes")["coef"])


def test_basis__comes_back_to_the_bit(tmp_path):
    basis = dsc.annular_basis(9)
    sizes = {"patch": 1, **basis_sizes(basis)}
    arrays = basis_variables(basis)
    attributes = {"basis": basis.name, "diameter": 9}
    store = create(tmp_path / "a", "patches", sizes, {}, attributes, list(arrays))
    for name in ("image", "y", "x"):
        store.write(name, 0, np.zeros(1, np.int32))
    for name, values in arrays.items():
        store.write(name, 0, values)
    found = read_basis(store.finish())
    assert (found.name, found.diameter) == ("annular", 9)
    for name in ("mask", "frequency", "matrix", "level", "dual"):
        np.testing.assert_array_equal(getattr(found, name), getattr(basis, name))
