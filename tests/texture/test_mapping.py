"""Class maps: the same as of whole images, whatever the tiles; votes; stores with their key."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import dsc
from dsc.cli.main import main
from dsc.engine import schedulers
from dsc.errors import DscError
from dsc.texture import class_colours, class_map, label_map, mapping, paint
from dsc.texture.labelling import most_voted
from dsc.texture.mapping import MapStep, map_tile
from dsc.tiling import as_image, cut_window, machine

OPTIONS = {"n_components": 3, "diameter": 7, "max_iter": 1, "patches_per_image": 80, "stride": 3}


@pytest.fixture(scope="module")
def model():
    """Of three wavelengths."""
    rng = np.random.default_rng(0)
    y, _ = np.mgrid[:32, :32]
    waves = [
        np.sin(y * f + p) + 0.2 * rng.normal(size=y.shape) for f in (0.5, 1, 1.7) for p in (0, 1)
    ]
    return dsc.TextureClassifier(**OPTIONS).fit(waves, list("aabbcc")).model_


@pytest.fixture(scope="module")
def image():
    """Three of them side by side, and a flat corner: (y, x)."""
    rng = np.random.default_rng(1)
    y, x = np.mgrid[:150, :210]
    made = np.sin(np.choose(x // 70, [0.5, 1.0, 1.7]) * y) + 0.3 * rng.normal(size=y.shape)
    made[100:, 180:] = 0.5
    return made.astype(np.float32)


def with_stride(model, stride, **others):
    return replace(model, config=replace(model.config, stride=stride, **others))


@pytest.mark.parametrize("stride", [1, 2, 3, 5])
def test_map__without_a_window_is_that_of_the_whole_image(model, image, stride, monkeypatch):
    one = with_stride(model, stride)
    expected = label_map(one.labellers, as_image(image)) + 1
    for size in (64, 256):
        monkeypatch.setattr(machine, "TILE", size)
        found = class_map(image, one)
        assert found.dtype == np.uint8
        np.testing.assert_array_equal(found, expected)
    assert found.attrs["label_names"] == ["a", "b", "c"]
    assert found.attrs["n_pixels"] == [int((expected == k).sum()) for k in (1, 2, 3)]
    assert (expected == 0).sum() > 3 * (150 + 210)  # the rim, and the flat corner


@pytest.mark.parametrize("stride", [1, 3])
def test_map__patches_with_missing_pixels_have_no_class(model, image, stride, monkeypatch):
    one = with_stride(model, stride)
    holed = image.copy()
    holed[40:44, 60:65] = holed[90, 100] = np.nan
    found, whole = class_map(holed, one).to_numpy(), class_map(image, one).to_numpy()
    lost = (found == 0) & (whole != 0)
    assert (found[~lost] == whole[~lost]).all()
    y, x = np.nonzero(lost)
    gone = np.argwhere(np.isnan(holed))
    reach = np.hypot(y[:, None] - gone[:, 0], x[:, None] - gone[:, 1]).min(1)
    side = one.labellers.diameter
    assert reach.max() <= side / 2 + stride
    assert lost[np.isnan(holed) & (whole != 0)].all()
    if stride == 1:
        alone = lost[80:100, 90:110]
        basis = one.labellers.each[0].basis
        assert alone.sum() == basis.n_pixels  # one pixel: all disks that have it
    monkeypatch.setattr(machine, "TILE", 64)
    np.testing.assert_array_equal(class_map(holed, one), found)
    assert not class_map(holed, one, window=5).to_numpy()[np.isnan(holed)].any()


def test_map__of_several_atoms_per_patch_is_that_of_the_whole_image(model, image):
    one = with_stride(model, 4, sparsity=2)
    expected = label_map(one.labellers, as_image(image)) + 1
    np.testing.assert_array_equal(class_map(image, one, scheduler="synchronous"), expected)


@given(
    corner=st.tuples(st.integers(0, 140), st.integers(0, 200)),
    size=st.tuples(st.integers(1, 70), st.integers(1, 70)),
    stride=st.integers(1, 6),
    half=st.integers(0, 5),
)
def test_tile__any_part_is_that_part_of_the_whole(model, image, corner, size, stride, half):
    step = MapStep(with_stride(model, stride).labellers, half)
    shape = image.shape
    y, x = (slice(c, min(c + n, most)) for c, n, most in zip(corner, size, shape, strict=True))
    labels = np.pad(label_map(step.labellers, as_image(image)), half, constant_values=-1)
    found = map_tile(cut_window(as_image(image), y, x, step.margin), step)
    np.testing.assert_array_equal(found[0], most_voted([labels], step.labellers, half)[y, x] + 1)


@given(seed=st.integers(0, 99), half=st.integers(0, 4))
def test_vote__is_the_most_frequent_class_around(model, seed, half):
    rng = np.random.default_rng(seed)
    labels = rng.integers(-1, 3, (9 + 2 * half, 7 + 2 * half))
    labels[:3] = -1
    found = most_voted([labels], model.labellers, half)
    assert found.shape == (9, 7)
    for (y, x), label in np.ndenumerate(found):
        near = labels[y : y + 2 * half + 1, x : x + 2 * half + 1]
        count = np.array([(near == k).sum() for k in range(3)])
        if half == 0:
            assert label == near[0, 0]
        else:
            assert label == (count.argmax() if count.any() else -1)


def test_map__a_vote_knows_the_regions_better(model, image):
    truth = np.arange(210) // 70 + 1
    right = [
        (class_map(image, model, window=w).to_numpy()[:, :180] == truth[:180]) for w in (1, 21)
    ]
    assert right[0].mean() + 0.03 < right[1].mean()


def test_store__has_the_same_classes_and_their_key(model, image, tmp_path, monkeypatch):
    expected = class_map(image, model, window=5)
    monkeypatch.setattr(machine, "TILE", 64)
    found = class_map(image, model, tmp_path / "map.zarr", window=5)
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == np.uint8
    assert found.attrs.items() >= expected.attrs.items()
    attributes = json.loads((tmp_path / "map.zarr" / "zarr.json").read_text())["attributes"]
    key = attributes["ome"]["image-label"]
    assert key["properties"] == [
        {"label-value": 1, "class": "a"},
        {"label-value": 2, "class": "b"},
        {"label-value": 3, "class": "c"},
    ]
    colors = {one["label-value"]: one["rgba"] for one in key["colors"]}
    assert colors[0] == [0, 0, 0, 0]
    assert [colors[k + 1][:3] for k in range(3)] == class_colours(3).tolist()
    assert attributes["ome"]["omero"]["channels"][0]["label"] == "class"
    assert attributes["ome"]["multiscales"]


def test_store__is_continued_to_the_same_bits(model, image, tmp_path, monkeypatch):
    expected = class_map(image, model, window=3)
    monkeypatch.setattr(machine, "TILE", 64)
    calls, run_tile = [], machine.run_tile

    def some(part, shared):
        calls.append(part)
        if len(calls) > 4:
            raise RuntimeError("killed")
        return run_tile(part, shared)

    monkeypatch.setattr(machine, "run_tile", some)
    words = {"out": tmp_path / "map.zarr", "window": 3, "scheduler": "synchronous"}
    with pytest.raises(RuntimeError, match="killed"):
        class_map(image, model, **words)
    monkeypatch.setattr(machine, "run_tile", run_tile)
    with pytest.raises(DscError, match="begun with another identity"):
        class_map(image, model, **{**words, "window": 5}, resume=True)
    computed, whole = [], mapping.map_tile
    monkeypatch.setattr(mapping, "map_tile", lambda w, s: computed.append(w) or whole(w, s))
    found = class_map(image, model, **words, resume=True)
    assert len(computed) == 12 - 4
    np.testing.assert_array_equal(found, expected)
    assert found.attrs["n_pixels"] == expected.attrs["n_pixels"]


def test_memory__less_of_it_makes_smaller_tiles_of_the_same_bits(model, image, monkeypatch):
    widths, whole = [], mapping.map_tile
    monkeypatch.setattr(mapping, "map_tile", lambda w, s: widths.append(w.y.stop) or whole(w, s))
    one = with_stride(model, 1)
    first = class_map(image, one, scheduler="synchronous")
    tall = min(widths)
    widths.clear()
    monkeypatch.setattr(schedulers, "_free_memory", lambda _: 8_000_000)
    second = class_map(image, one, scheduler="synchronous")
    assert min(widths) < tall
    np.testing.assert_array_equal(first, second)
    monkeypatch.setattr(schedulers, "_free_memory", lambda _: 1_000_000)
    with pytest.raises(DscError, match="memory_limit: one tile of 64"):
        class_map(image, one, scheduler="synchronous")


def test_map__same_on_processes(model, image):
    expected = class_map(image, model, window=3)
    found = class_map(image, model, window=3, scheduler="processes", n_workers=2)
    np.testing.assert_array_equal(found, expected)


def test_map__of_many_classes_has_room_for_them(model, image):
    names = tuple(f"{k:03d}" for k in range(300))
    one = model.scales[0]
    some = replace(one, atoms=np.repeat(one.atoms, 100, axis=0))
    many = replace(model, scales=(some,), label_names=names)
    found = class_map(image[:20, :20], many)
    assert found.dtype == np.uint16
    assert set(np.unique(found)) <= {0, 1, 101, 201}


@pytest.mark.parametrize("window", [0, 2, -1, 1.5])
def test_map__refuses_other_windows(model, image, window):
    with pytest.raises(DscError, match="window: found"):
        class_map(image, model, window=window)


# --- as a command -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def place(model, image, tmp_path_factory):
    folder = tmp_path_factory.mktemp("place")
    model.save(folder / "model.zarr")
    levels = np.rint(255 * (image - image.min()) / np.ptp(image)).astype(np.uint8)
    Image.fromarray(levels).save(folder / "image.png")
    Image.fromarray(levels[:5, :5]).save(folder / "tiny.png")
    return folder


def command(place, *words):
    return CliRunner().invoke(main, ["texture", "map", str(place / "model.zarr"), *map(str, words)])


def test_command__png_and_store_are_the_same_map(place, model, tmp_path):
    words = [place / "image.png", "--window", 5, "--out"]
    told = [command(place, *words, tmp_path / name, "--json") for name in ("a.png", "a.zarr")]
    first, second = (json.loads(result.stdout) for result in told)
    assert first["classes"] == second["classes"]
    assert sum(row["share"] for row in first["classes"]) == pytest.approx(1)
    found = class_map(place / "image.png", model, window=5)
    stored = dsc.open(tmp_path / "a.zarr")["0"][0]
    np.testing.assert_array_equal(stored, found)
    expected = paint(found.to_numpy().astype(int) - 1, class_colours(3))[..., :3]
    np.testing.assert_array_equal(np.asarray(Image.open(tmp_path / "a.png")), expected)
    plain = command(place, *words, tmp_path / "b.png")
    assert re.search(r"^ +2  #e69f00  b  [\d.]+ %$", plain.stdout, re.M)


MISTAKES = {
    "suffix": (["image.png", "-o", "{}/a.bmp"], r"need a name that ends in .png or .zarr"),
    "exists": (["image.png", "-o", "{}/image.png"], "is the image itself"),
    "resume": (["image.png", "-o", "{}/a.png", "--resume"], "need an OME-Zarr"),
    "tiny": (["tiny.png", "-o", "{}/a.zarr"], "at least 7 × 7"),
    "window": (["image.png", "-o", "{}/a.zarr", "--window", "4"], "need an odd number"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_command__mistakes_leave_nothing(place, mistake):
    words, message = MISTAKES[mistake]
    before = sorted(place.rglob("*"))
    result = command(place, place / words[0], *(word.format(place) for word in words[1:]))
    assert result.exit_code == 2, result.output
    assert message in result.stderr
    assert sorted(place.rglob("*")) == before
