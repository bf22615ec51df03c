"""Stores that somebody made on purpose: all checksums fit, and the content does not."""

from __future__ import annotations

import json
import math
import shutil
import time

import numpy as np
import pytest
import zarr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dsc
from dsc.dictionary import describe, load_dictionary
from dsc.dictionary.checkpoint import load_checkpoint
from dsc.errors import DscError
from dsc.images import CACHE, open_images
from dsc.patches import PatchConfig, extract_patches, open_patches
from dsc.store import manifest
from dsc.texture import TextureConfig, TextureModel, fit_texture, read_inputs

GREY = np.random.default_rng(0).random((2, 40, 50)).astype(np.float32)
NOT_JSON = "[" * 100_000


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with a store of every kind."""
    folder = tmp_path_factory.mktemp("crafted")
    config = PatchConfig(diameter=7, stride=3, center=True)
    patches = extract_patches(list(GREY), folder / "patches", config)
    rotated = PatchConfig(diameter=7, stride=3, rotate=(0.0, 45.0))
    extract_patches(list(GREY), folder / "rotated", rotated)
    solid = PatchConfig(diameter=7, stride=3, materialize="disk")
    extract_patches(list(GREY), folder / "solid", solid)
    zarr.create_array(folder / "in.zarr", data=GREY[0], chunks=(20, 20))
    extract_patches(folder / "in.zarr", folder / "referred", config)
    model = dsc.learn(patches, run=folder / "run", n_atoms=4, sparsity=2, n_iterations=2)
    model.encode(patches, folder / "codes")
    shutil.copytree(folder / "run" / "model.zarr", folder / "model")
    shutil.copytree(folder / "run" / "checkpoints" / "000002.zarr", folder / "checkpoint")
    data = read_inputs([*GREY, *(GREY**3)], labels=["a", "a", "b", "b"])
    options = {"n_atoms": 3, "diameter": 7, "patches_per_image": 50, "n_iterations": 1}
    with dsc.engine.open_engine(progress=False) as engine:
        fit_texture(data, TextureConfig(**options), engine).save(folder / "texture")
    return folder


def craft(url, attributes=None, arrays=None, metadata=None, group=""):
    """Change a finished store and sign it again, as somebody with bad intentions would."""
    kind = json.loads((url / "manifest.json").read_text())["kind"]
    path = url / group / "zarr.json"
    found = json.loads(path.read_text())
    found["attributes"] = {**found["attributes"], **(attributes or {})}
    gone = [name for name, value in found["attributes"].items() if value is KeyError]
    found["attributes"] = {n: v for n, v in found["attributes"].items() if n not in gone}
    path.write_text(json.dumps(found))
    for name, change in (arrays or {}).items():
        array = zarr.open_array(url / name, mode="r+")
        values = array[...]
        change(values)
        array[...] = values
    for name, changes in (metadata or {}).items():
        path = url / name / "zarr.json"
        text = changes
        if isinstance(changes, dict):
            text = json.dumps({**json.loads(path.read_text()), **changes})
        path.write_text(text)
    sign(url, kind)
    CACHE.clear()


def sign(url, kind):
    (url / "manifest.json").unlink()
    try:
        manifest.write_manifest(str(url), kind)
    except Exception:  # what we would never write: by hand, then
        hashes = {
            str(path.relative_to(url)): manifest.sha256(path.read_bytes())
            for path in url.rglob("zarr.json")
        }
        chunks, checksums = {}, {}
        for key in hashes:
            name = key.removesuffix("/zarr.json")
            if (url / name / "c").exists():
                try:
                    chunks[name] = manifest.chunk_counts(json.loads((url / key).read_text()))
                except Exception:
                    chunks[name] = [1]
                checksums[name] = "0" * min(10_000, 8 * math.prod(chunks[name]))
        content = {"kind": kind, "format": manifest.FORMAT, "dsc_version": "0", "metadata": hashes}
        content |= {"chunks": chunks, "checksums": checksums}
        rewrite(url, content)


def rewrite(url, content):
    content.pop("sha256", None)
    content["sha256"] = manifest._own_hash(content)
    (url / "manifest.json").write_text(json.dumps(content))


def use(url, kind):
    """Everything that is done with a store of a kind."""
    describe(url)
    if kind in ("patches", "rotated", "solid", "referred"):
        patches = open_patches(url)
        patches.labels(0, patches.n_patches)
        assert np.isfinite(patches.pixels(0, patches.n_patches)).all()
        patches.card()
        dsc.learn(patches, n_atoms=2, sparsity=1, n_iterations=1, progress=False)
    elif kind == "model":
        model = load_dictionary(url)
        model.card()
        model.encode(GREY[:, :7, :7], progress=False)
    elif kind == "texture":
        model = TextureModel.load(url)
        model.card()
        with dsc.engine.open_engine(progress=False) as engine:
            model.predict(open_images(list(GREY)), engine)
    elif kind == "checkpoint":
        load_checkpoint(url)
    else:
        dsc.open(url).load()


def at(place, value):
    return lambda array: array.__setitem__(place, value)


def runs(made, kind, **changes):
    table = json.loads((made / kind / "images" / "zarr.json").read_text())["attributes"]["runs"]
    plane = changes.pop("plane", None)
    table[0] |= changes
    if plane:
        table[0]["plane"] |= plane
    return {"group": "images", "attributes": {"runs": table}}


def grid(*shape):
    return {"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(shape)}}}


CRAFTED = {
    "y outside": ("patches", {"arrays": {"y": at(5, 5000)}}, "found patch 5 at row 5000"),
    "y below 0": ("patches", {"arrays": {"y": at(5, -1)}}, "found patch 5 at row -1"),
    "x outside": ("patches", {"arrays": {"x": at(0, 44)}}, "found patch 0 at"),
    "x largest": ("patches", {"arrays": {"x": at(0, 2**31 - 1)}}, "found patch 0 at"),
    "image outside": ("patches", {"arrays": {"image": at(7, 2)}}, "of image 2"),
    "image below 0": ("patches", {"arrays": {"image": at(7, -3)}}, "of image -3"),
    "rotated at the edge": ("rotated", {"arrays": {"y": at(1, 0)}}, "found patch 1"),
    "rotation": ("rotated", {"arrays": {"rotation": at(1, np.nan)}}, "found patch 1"),
    "materialised": ("solid", {"arrays": {"coords": at((3, 2), np.nan)}}, "found nan"),
    "materialised basis": ("solid", {"arrays": {"basis_frequency": at(-1, 10**12)}}, "frequenc"),
    "n_patches large": ("patches", {"attributes": {"n_patches": 10**9}}, "n_patches: found 10000"),
    "n_patches below 0": ("patches", {"attributes": {"n_patches": -1}}, "n_patches: found -1"),
    "n_patches word": ("patches", {"attributes": {"n_patches": "9"}}, "n_patches: found '9'"),
    "n_patches none": ("patches", {"attributes": {"n_patches": KeyError}}, "n_patches"),
    "diameter": ("patches", {"attributes": {"diameter": 9}}, "found patch"),
    "diameter huge": ("patches", {"attributes": {"diameter": 10**9}}, "diameter: found"),
    "diameter word": ("patches", {"attributes": {"diameter": "7"}}, "diameter: found '7'"),
    "center": ("patches", {"attributes": {"center": "yes"}}, "center: found 'yes'"),
    "rotated": ("patches", {"attributes": {"rotated": True}}, "'rotation' is missing"),
    "labels": ("patches", {"attributes": {"label_names": ["a"]}}, "'label' is missing"),
    "labels 5": ("patches", {"attributes": {"label_names": 5}}, "is not as dsc writes"),
    "basis": ("patches", {"attributes": {"basis": "disk"}}, "'coords' is missing"),
    "no arrays": ("patches", {"metadata": {"y": NOT_JSON}}, "is not as dsc writes"),
    "y shape": ("patches", {"metadata": {"y": {"shape": [10**6]}}}, "damaged|others|missing"),
    "y chunks": ("patches", {"metadata": {"y": grid(0)}}, "is no|damaged"),
    "y node": ("patches", {"metadata": {"y": {"node_type": "group"}}}, "y"),
    "y codecs": ("patches", {"metadata": {"y": {"codecs": [{"name": "x"}]}}}, "y"),
    "no model": ("model", {"attributes": {"config": {"n_atom": 3}}}, "n_atom"),
    "sparsity": ("model", {"attributes": {"config": {"sparsity": 10**6}}}, "sparsity"),
    "model config": ("model", {"attributes": {"config": []}}, "config|dsc writes|mapping"),
    "model diameter": ("model", {"attributes": {"diameter": 9}}, "basis_matrix: found shape"),
    "model patches": ("model", {"attributes": {"patches": 3}}, "is not as dsc writes"),
    "atoms": ("model", {"arrays": {"atoms": at(1, np.nan)}}, "atoms: found nan"),
    "atoms zero": ("model", {"arrays": {"atoms": at(1, 0)}}, "norm"),
    "frequency": ("model", {"arrays": {"basis_frequency": at(-1, 2**62)}}, "basis_frequency"),
    "frequency -1": ("model", {"arrays": {"basis_frequency": at(0, -1)}}, "basis_frequency"),
    "matrix": ("model", {"arrays": {"basis_matrix": at(0, np.inf)}}, "basis_matrix"),
    "history": ("model", {"arrays": {"history": at(-1, np.nan)}}, "history"),
    "count": ("model", {"arrays": {"count": at(0, -5)}}, "count"),
    "huge chunk": (
        "model",
        {"metadata": {"history": {"shape": [10**13], **grid(10**13)}}},
        "fit into the memory",
    ),
    "checkpoint basis": ("checkpoint", {"arrays": {"basis": at(0, 7)}}, "basis: found"),
    "checkpoint atoms": ("checkpoint", {"arrays": {"n_atoms": at(0, 10**12)}}, "atoms: found"),
    "checkpoint -1": ("checkpoint", {"arrays": {"n_entries": at(0, -1)}}, "history: found"),
    "checkpoint bases": ("checkpoint", {"attributes": {"bases": [{}]}}, "is not as dsc writes"),
    "checkpoint coords": (
        "checkpoint",
        {"attributes": {"bases": [{"name": "disk", "diameter": 7, "n_coords": 10**9}]}},
        "basis|dsc writes",
    ),
    "texture labels": ("texture", {"arrays": {"image_label": at(0, 9)}}, "image_label: found"),
    "texture names": ("texture", {"attributes": {"label_names": ["a"]}}, "label_names: found 1"),
    "texture numbers": ("texture", {"attributes": {"label_names": [1, 2]}}, "need words"),
    "texture count": ("texture", {"arrays": {"image_count": at(0, -9)}}, "image_count"),
    "texture contents": (
        "texture",
        {"attributes": {"image_contents": ["a"]}},
        "image_contents: found 1, need 4",
    ),
    "texture images": ("texture", {"attributes": {"image_names": []}}, "image_names: found 0"),
    "codes metadata": ("codes", {"metadata": {"atom": "{}"}}, "codes"),
}  # fmt: skip


@pytest.mark.parametrize("name", CRAFTED)
def test_crafted__is_refused_with_the_name_of_the_store(made, tmp_path, name):
    kind, changes, message = CRAFTED[name]
    url = tmp_path / "store.zarr"
    shutil.copytree(made / kind, url)
    craft(url, **changes)
    begin = time.perf_counter()
    with pytest.raises(DscError, match=message) as caught:
        use(url, kind)
    assert time.perf_counter() - begin < 10
    assert len(str(caught.value)) < 1500


TABLES = {
    "another shape": ("patches", {"shape": [4000, 5000]}),
    "no first": ("patches", {"first": 3}),
    "no tile": ("patches", {"tile": [0, 0]}),
    "too many": ("patches", {"count": 10**12}),
    "another stack": ("patches", {"stack": "y"}),
    "no plane": ("referred", {"plane": {"url": 5}}),
    "no digests": ("referred", {"digests": []}),
    "an unknown word": ("referred", {"plane": {"word": 1}}),
}


@pytest.mark.parametrize("name", TABLES)
def test_crafted__tables_of_images(made, tmp_path, name):
    kind, changes = TABLES[name]
    url = tmp_path / "store.zarr"
    shutil.copytree(made / kind, url)
    craft(url, **runs(made, kind, **changes))
    with pytest.raises(DscError, match=r"store\.zarr"):
        use(url, kind)


@pytest.mark.parametrize("place", ["http://127.0.0.1:9/a.zarr", "simplecache::http://h/a", "x::y"])
def test_crafted__no_url_is_fetched_that_nobody_gave(made, tmp_path, monkeypatch, place):
    url = tmp_path / "store.zarr"
    shutil.copytree(made / "referred", url)
    craft(url, **runs(made, "referred", plane={"url": place}))
    monkeypatch.setattr("dsc.images.planes.read_object", lambda *_: pytest.fail("was fetched"))
    with pytest.raises(DscError, match=r"not fetched unasked.*DSC_IMAGE_URLS"):
        open_patches(url)
    monkeypatch.setenv("DSC_IMAGE_URLS", f"s3://b/ {place}")
    assert open_patches(url).n_patches


def test_not_crafted__is_used(made):
    for kind in ("patches", "rotated", "solid", "referred", "model", "texture", "checkpoint"):
        use(made / kind, kind)
    use(made / "codes", "codes")


VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5),
    st.lists(st.integers(), max_size=3), st.dictionaries(st.text(max_size=3), st.none()),
)  # fmt: skip


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_crafted__any_attribute_may_be_anything(made, tmp_path_factory, data):
    kind = data.draw(st.sampled_from(["patches", "model", "texture", "checkpoint"]))
    url = tmp_path_factory.mktemp("any") / "store.zarr"
    shutil.copytree(made / kind, url)
    names = sorted(json.loads((url / "zarr.json").read_text())["attributes"])
    craft(url, attributes={data.draw(st.sampled_from(names)): data.draw(VALUES)})
    begin = time.perf_counter()
    try:
        use(url, kind)
    except DscError as error:
        assert "store.zarr" in str(error)  # noqa: PT017
    assert time.perf_counter() - begin < 10


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_crafted__any_entry_of_the_manifest_may_be_anything(made, tmp_path_factory, data):
    url = tmp_path_factory.mktemp("any") / "store.zarr"
    shutil.copytree(made / "model", url)
    content = json.loads((url / "manifest.json").read_text())
    content[data.draw(st.sampled_from(sorted(content)))] = data.draw(VALUES)
    rewrite(url, content)
    try:
        use(url, "model")
    except DscError as error:
        assert "store.zarr" in str(error) or "kind" in str(error)  # noqa: PT017
