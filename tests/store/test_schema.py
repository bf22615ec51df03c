"""Which kinds of stores there are: tables that their owners register."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from dsc.errors import DscError
from dsc.store import Variable, add_group, create, kinds, register, schema, schema_of


@pytest.mark.parametrize("kind", kinds())
def test_kind__is_known_before_its_room_is_imported(kind, finished):
    code = (
        "import sys; from dsc.store import open_dataset, open_store\n"
        "print(open_store(sys.argv[1]).kind, open_dataset(sys.argv[1]).attrs['answer'])"
    )
    run = [sys.executable, "-c", code, str(finished(kind))]
    assert subprocess.run(run, capture_output=True, text=True, check=True).stdout == f"{kind} 42\n"


def test_register__again_changes_nothing_and_another_table_is_refused():
    before = dict(schema_of("codes"))
    register("codes", *before.values())
    assert schema_of("codes") == before
    with pytest.raises(DscError, match=r"found another table of 'codes'"):
        register("codes", Variable("atom", ("patch",), "uint8", "something else"))


def test_register__a_new_kind_can_be_written_and_read(tmp_path, monkeypatch):
    monkeypatch.setattr(schema, "_schemas", dict(schema._schemas))
    register("notes", Variable("length", ("note",), "int32", "words of each"))
    assert "notes" in kinds()
    store = create(tmp_path / "a", "notes", {"note": 3}, {}, {})
    store.write("length", 0, np.arange(3, dtype=np.int32))
    np.testing.assert_array_equal(store.finish().read("length"), [0, 1, 2])


def test_kind__unknown_ones_get_a_suggestion():
    with pytest.raises(DscError, match=r"kind: unknown 'patch', .*did you mean 'patches'"):
        schema_of("patch")


def test_group__arrays_of_any_number_and_size(tmp_path):
    store = create(tmp_path / "a", "patches", {"patch": 1}, {}, {})
    sizes = {"one": ((2, 3, 4), (1, 3, 4)), "two": ((1, 5, 5), (1, 5, 5))}
    add_group(store, "images", sizes, {"answer": 42})
    for name in ("image", "y", "x"):
        store.write(name, 0, np.zeros(1, np.int32))
    for name, (shape, _) in sizes.items():
        store.write(f"images/{name}", 0, np.ones(shape, np.float32))
    done = store.finish()
    assert done.group_attributes("images") == {"answer": 42}
    assert done.read("images/two").shape == (1, 5, 5)
    for wrong in ("images", "image/one", "image/one"):
        with pytest.raises(DscError, match=r"variable of a store of patches: unknown"):
            done.read(wrong)
    with pytest.raises(DscError, match=r"variables: unknown 'images'"):
        create(tmp_path / "b", "patches", {"patch": 1}, {}, {}, ["images"])
