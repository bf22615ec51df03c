"""`Dictionary`: kept in stores without losing a bit, used for coding and decoding."""

import matplotlib.image
import numpy as np
import oracles
import pytest
import xarray
from matplotlib.figure import Figure

import dsc
from dsc.dictionary import Dictionary, learn, load_dictionary
from dsc.dictionary import encode as coding
from dsc.errors import DscError
from dsc.patches import ArrayPatches, PatchConfig, extract_patches
from dsc.pursuit import EMPTY
from dsc.store import create, is_finished, open_dataset

FIELDS = ("atom", "angle", "coef", "error")


def assert_same_codes(one, other):
    assert one.n_angles == other.n_angles
    for name in FIELDS:
        found, expected = (np.asarray(getattr(codes, name)) for codes in (one, other))
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


def assert_same_model(one, other):
    assert one.sha256 == other.sha256
    assert one.config == other.config
    assert one.patches == other.patches
    assert one.numerics == other.numerics
    assert one.history.tolist() == other.history.tolist()
    assert one.count.tolist() == other.count.tolist()
    for name in ("matrix", "dual", "frequency", "level", "mask"):
        found, expected = getattr(one.basis, name), getattr(other.basis, name)
        assert found.dtype == expected.dtype
        assert found.tobytes() == expected.tobytes()


# --- keeping ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("basis", "update"), [("disk", "ksvd"), ("annular", "mod"), ("pixels", "ksvd")]
)
def test_save_load__every_bit_comes_back(patches, tmp_path, basis, update):
    source = ArrayPatches(patches, center=True)
    made = learn(source, 3, 2, n_iterations=1, basis=basis, update=update, replace_twins=0.9)
    made.save(str(tmp_path / "model.zarr"))
    back = Dictionary.load(str(tmp_path / "model.zarr"))
    assert_same_model(back, made)
    assert back.n_angles == made.n_angles
    assert_same_codes(back.encode(source).codes, made.encode(source).codes)


def test_save_load__takes_pathlib_paths(model, tmp_path):
    model.save(tmp_path / "model.zarr")
    assert Dictionary.load(tmp_path / "model.zarr").sha256 == model.sha256
    assert load_dictionary(tmp_path / "model.zarr").sha256 == model.sha256


def test_save_load__same_bits_through_s3(model, patches, s3_server):
    url = f"{s3_server}/deep/model.zarr"
    model.save(url)
    assert_same_model(Dictionary.load(url), model)
    assert load_dictionary(url).sha256 == model.sha256
    with pytest.raises(DscError, match="finished store of model"):
        model.save(url)


def test_save__refuses_what_is_there(model, tmp_path):
    url = str(tmp_path / "model.zarr")
    model.save(url)
    with pytest.raises(DscError, match="finished store of model; it is not overwritten"):
        model.save(url)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("do not lose me")
    with pytest.raises(DscError, match="no store of dsc"):
        model.save(str(tmp_path / "mine"))
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "do not lose me"


def test_save__replaces_an_unfinished_model(model, tmp_path):
    url = str(tmp_path / "model.zarr")
    model.save(url)
    (tmp_path / "model.zarr" / "manifest.json").unlink()
    with pytest.raises(DscError, match="unfinished"):
        Dictionary.load(url)
    model.save(url)
    assert Dictionary.load(url).sha256 == model.sha256


@pytest.mark.parametrize("what", ["codes", "nothing", "folder"])
def test_load__refuses_what_is_no_model(model, patches, tmp_path, what):
    path = tmp_path / what
    if what == "codes":
        model.encode(patches, out=str(path))
    elif what == "folder":
        path.mkdir()
        (path / "a.txt").write_text("a")
    message = {"codes": "found a store of codes", "nothing": "nothing", "folder": "no store of dsc"}
    with pytest.raises(DscError, match=message[what]):
        Dictionary.load(str(path))


def damage(file):
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 0x10
    file.write_bytes(bytes(data))


@pytest.mark.parametrize("how", [damage, lambda file: file.unlink()])
@pytest.mark.parametrize("array", ["atoms", "history", "count", "basis_matrix", "basis_dual"])
def test_load__a_damaged_or_missing_chunk_is_named(model, tmp_path, array, how):
    model.save(str(tmp_path / "model.zarr"))
    chunks = [p for p in (tmp_path / "model.zarr" / array / "c").rglob("*") if p.is_file()]
    how(chunks[-1])
    with pytest.raises(DscError, match=rf"chunk .*array '{array}'.*(damaged|missing)"):
        Dictionary.load(str(tmp_path / "model.zarr"))


def test_load__damaged_metadata_is_an_error(model, tmp_path):
    for name in ("manifest.json", "zarr.json", "atoms/zarr.json"):
        folder = tmp_path / name.replace("/", "-")
        model.save(str(folder))
        damage(folder / name)
        with pytest.raises(DscError, match=r"manifest\.json|zarr\.json|no store of dsc"):
            Dictionary.load(str(folder))


def test_open__shows_a_model_with_named_dimensions(model, tmp_path):
    model.save(str(tmp_path / "model.zarr"))
    opened = dsc.open(tmp_path / "model.zarr")
    assert opened["atoms"].dims == ("atom", "coord")
    assert opened["atoms_pixels"].dims == ("atom", "y", "x")
    assert opened["history"].dims == ("iteration",)
    assert opened.attrs["atoms_sha256"] == model.sha256
    assert opened.attrs["config"]["n_atoms"] == 6
    np.testing.assert_array_equal(opened["atoms"], model.atoms)
    np.testing.assert_array_equal(opened["atoms_pixels"], model.atoms_pixels)


def test_stores__hold_no_pickle(model, patches, tmp_path):
    model.save(str(tmp_path / "model.zarr"))
    model.encode(patches, out=str(tmp_path / "codes.zarr"))
    for file in tmp_path.rglob("*"):
        assert file.is_dir() or file.suffix == ".json" or "/c/" in str(file)


# --- looking ------------------------------------------------------------------------------------


def test_to_xarray__has_all_with_named_dimensions(model):
    dataset = model.to_xarray()
    assert isinstance(dataset, xarray.Dataset)
    assert dict(dataset.sizes) == {
        "atom": 6,
        "coord": model.basis.n_coords,
        "y": 7,
        "x": 7,
        "iteration": 4,
    }
    np.testing.assert_array_equal(dataset["atoms"], model.atoms)
    np.testing.assert_array_equal(dataset["frequency"], model.basis.frequency)
    np.testing.assert_array_equal(dataset["count"], model.count)
    assert dataset.attrs["mse"] == model.mse
    assert dataset.attrs["basis"] == "disk"


def test_atoms_pixels__are_the_atoms_on_the_disk(model):
    images = model.atoms_pixels
    assert images.shape == (6, 7, 7)
    assert (np.isnan(images) == ~model.basis.mask).all()
    expected = model.atoms.astype(np.float64) @ model.basis.matrix.T
    np.testing.assert_allclose(images[:, model.basis.mask], expected, atol=1e-5)


@pytest.mark.parametrize("columns", [1, 4, 10])
def test_plot__is_a_figure_with_a_disk_per_atom(model, tmp_path, columns):
    figure = model.plot(columns)
    assert isinstance(figure, Figure)
    drawn = figure.axes[0].images[0].get_array()
    step = model.basis.diameter + 1
    n_columns = min(columns, 6)
    assert drawn.shape == (-(-6 // n_columns) * step, n_columns * step, 4)
    assert (drawn[..., 3] > 0).sum() == 6 * model.basis.n_pixels
    atom = model.atoms_pixels[model.count.argmax()]  # the most used is the first
    grey = 255 * (atom / np.nanmax(np.abs(atom)) + 1) / 2
    inside = model.basis.mask
    assert np.abs(drawn[: step - 1, : step - 1, 0][inside] - grey[inside]).max() <= 0.51
    figure.savefig(tmp_path / "atoms.png")
    assert matplotlib.image.imread(tmp_path / "atoms.png").std() > 0.05


def test_repr__says_the_main_facts(model):
    assert repr(model).startswith("Dictionary(6 atoms, disk basis, diameter 7, sparsity 3, 60")


# --- coding -------------------------------------------------------------------------------------


def test_encode__equals_the_numeric_core(model, patches):
    coded = model.encode(patches)
    coords, rest = model.basis.project_with_rest(patches)
    assert_same_codes(coded.codes, dsc.encode(coords, model.atoms, model.basis, 3))
    np.testing.assert_array_equal(coded.rest, rest)
    assert coded.n_patches == len(patches)
    assert coded.mse == model.mse  # the final pass of learning, over the same patches
    assert coded.url is None


@pytest.mark.parametrize("chunk", [256, 1024, 2**16])
def test_encode__to_a_store_equals_in_memory(model, patches, tmp_path, monkeypatch, chunk):
    expected = model.encode(patches)
    monkeypatch.setattr(coding, "CHUNK", chunk)
    coded = model.encode(patches, out=str(tmp_path / "codes.zarr"))
    for name in FIELDS:
        np.testing.assert_array_equal(getattr(coded.codes, name), getattr(expected.codes, name))
    np.testing.assert_array_equal(coded.rest, expected.rest)
    assert coded.url == str(tmp_path / "codes.zarr")
    assert coded.mse == pytest.approx(expected.mse, rel=1e-12)
    stored = open_dataset(tmp_path / "codes.zarr", "codes")
    assert stored["atom"].dims == ("patch", "slot")
    assert stored["atom"].dtype == stored["angle"].dtype == np.uint16
    assert stored["coef"].dtype == np.float32
    for name in FIELDS:
        np.testing.assert_array_equal(stored[name], getattr(expected.codes, name))
    np.testing.assert_array_equal(stored["rest"], expected.rest)
    assert stored.attrs["atoms_sha256"] == model.sha256
    assert stored.attrs["n_angles"] == 60


def test_encode__mse_has_the_same_bits_on_any_number_of_workers(model, patches, monkeypatch):
    monkeypatch.setattr(coding, "CHUNK", 256)
    monkeypatch.setattr(coding, "TASKS_PER_THREAD", 1)
    found = [model.encode(patches, n_workers=n).mse for n in (1, 2, 3, 4)]
    assert found == [found[0]] * 4


def test_encode__to_s3(model, patches, s3_server):
    coded = model.encode(patches[:500], out=f"{s3_server}/codes.zarr")
    stored = open_dataset(coded.url)
    np.testing.assert_array_equal(stored["coef"], model.encode(patches[:500]).codes.coef)


def test_encode__an_empty_slot_is_65535_and_stays_a_whole_number(model, tmp_path):
    zeros = np.zeros((3, 7, 7))
    model.encode(zeros, out=str(tmp_path / "codes.zarr"))
    stored = open_dataset(tmp_path / "codes.zarr")
    assert stored["atom"].dtype == np.uint16
    assert (stored["atom"] == EMPTY).all()
    assert "_FillValue" not in stored["atom"].attrs
    assert "_FillValue" not in stored["atom"].encoding
    assert (stored["coef"] == 0).all()


def test_encode__refuses_a_finished_store_and_replaces_an_unfinished_one(model, patches, tmp_path):
    out = str(tmp_path / "codes.zarr")
    model.encode(patches[:10], out=out)
    with pytest.raises(DscError, match="finished store of codes; it is not overwritten"):
        model.encode(patches[:20], out=out)
    (tmp_path / "codes.zarr" / "manifest.json").unlink()
    assert not is_finished(out)
    model.encode(patches[:20], out=out)
    assert open_dataset(out).sizes["patch"] == 20


def test_encode__a_failure_in_the_middle_leaves_no_finished_store(model, patches, tmp_path):
    bad = patches[:600].copy()
    bad[599] = np.nan
    with pytest.raises(DscError, match="599"):
        model.encode(bad, out=str(tmp_path / "codes.zarr"))
    assert not is_finished(tmp_path / "codes.zarr")
    model.encode(patches[:600], out=str(tmp_path / "codes.zarr"))


def test_encode__refuses_another_diameter(model, natural_patches):
    with pytest.raises(DscError, match="found diameter 5, need 7"):
        model.encode(natural_patches(5, 10))


def test_encode__refuses_before_it_writes(model, natural_patches, tmp_path):
    with pytest.raises(DscError, match="diameter"):
        model.encode(natural_patches(5, 10), out=str(tmp_path / "codes.zarr"))
    assert not (tmp_path / "codes.zarr").exists()


def test_encode__refuses_a_set_materialised_in_another_basis(model, image, tmp_path):
    config = PatchConfig(diameter=7, materialize="annular")
    made = extract_patches(image("camera")[:30, :30], tmp_path / "p.zarr", config)
    with pytest.raises(DscError, match="coordinates of the annular basis"):
        model.encode(made)


def test_decode__equals_the_sum_of_turned_atoms(model, patches):
    codes = model.encode(patches[:50]).codes
    images = model.decode(codes)
    assert images.shape == (50, 7, 7)
    assert (np.isnan(images) == ~model.basis.mask).all()
    expected = oracles.decode(codes, model.atoms, model.basis.frequency) @ model.basis.matrix.T
    np.testing.assert_allclose(images[:, model.basis.mask], expected, atol=2e-5)


def test_decode__refuses_codes_of_a_larger_dictionary(model, patches):
    larger = learn(patches, 12, 1, n_iterations=0)
    with pytest.raises(DscError, match="another dictionary"):
        model.decode(larger.encode(patches).codes)


def test_create__is_what_a_killed_encode_leaves(tmp_path, model):
    """An unfinished codes store is said to be one."""
    create(tmp_path / "codes.zarr", "codes", {"patch": 5, "slot": 3}, {}, {})
    with pytest.raises(DscError, match="unfinished store of codes"):
        open_dataset(tmp_path / "codes.zarr")
