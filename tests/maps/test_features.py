"""Feature maps: what atoms do, whichever way the image is rotated."""

import json

import numpy as np
import pytest
import zarr
from scipy.ndimage import gaussian_filter
from skimage.transform import rotate

import dsc
from dsc.errors import DscError
from dsc.maps.coding import code_disks, how_to_code
from dsc.tiling import as_image, cut_window, machine


@pytest.fixture(scope="module")
def crop(image):
    return image("coins")[20:110, 30:130].astype(np.float32)


def test_invariant__energy_and_use_of_every_atom(natural, crop):
    found = dsc.features(crop, natural)
    assert found.dims == ("channel", "y", "x")
    assert list(found.channel[:3]) == ["atom 0 energy", "atom 0 use", "atom 1 energy"]
    assert found.shape == (12, *crop.shape)
    side = natural.basis.diameter
    windows = np.lib.stride_tricks.sliding_window_view(crop, (side, side)).reshape(-1, side, side)
    codes = natural.encode(dsc.ArrayPatches(windows, center=True)).codes
    shape = (crop.shape[0] - side + 1, crop.shape[1] - side + 1)
    for atom in (0, 3):
        energy = np.where(codes.atom == atom, codes.coef.astype(float) ** 2, 0).sum(1)
        here = energy.reshape(shape)
        y, x = 40, 50  # a pixel with all of its disks
        away = np.arange(-5, 6)  # 2.5 standard deviations of a quarter of the diameter
        weight = np.exp(-(away**2) / (2 * (side / 4) ** 2))
        area = here[np.ix_(y - side // 2 + away, x - side // 2 + away)]
        total = weight @ area @ weight / weight.sum() ** 2
        assert float(found[2 * atom, y, x]) == pytest.approx(total, rel=1e-4)
    uses = found[1::2].sum("channel")
    assert float(uses.max()) <= 2 + 1e-5
    np.testing.assert_allclose(found.image_mean, found.mean(("y", "x")), rtol=1e-4)


def test_covariant__sums_to_the_energy_and_lies_along_structures(natural, crop):
    invariant = dsc.features(crop, natural)
    covariant = dsc.features(crop, natural, "covariant")
    assert list(covariant.channel[:2]) == ["atom 0 energy at 0°", "atom 0 energy at 45°"]
    by_atom = covariant.to_numpy().reshape(6, 4, *crop.shape)
    np.testing.assert_allclose(by_atom.sum(1), invariant[::2].to_numpy(), rtol=1e-4, atol=1e-6)
    along = covariant.image_mean.to_numpy().reshape(6, 4).sum(0)
    assert along[0] > 2 * along[2]


@pytest.mark.parametrize("kind", ["invariant", "covariant"])
def test_features__a_quarter_rotation_rotates_them(natural, crop, kind):
    expected = np.rot90(dsc.features(crop, natural, kind).to_numpy(), axes=(1, 2))
    found = dsc.features(np.rot90(crop), natural, kind).to_numpy()
    scale = np.abs(expected).max((1, 2), keepdims=True)
    gap = np.abs(found - expected) / scale
    assert np.median(gap) < 1e-5
    assert gap.mean() < 1e-3  # rounding may fork a pursuit


@pytest.mark.parametrize(("kind", "tolerance"), [("invariant", 0.15), ("covariant", 0.2)])
def test_features__by_30_degrees_within_a_tolerance(natural, image, kind, tolerance):
    smooth = gaussian_filter(image("coins")[:140, :140], 1.5)
    rotated = rotate(smooth, 30, order=5, mode="reflect")
    inner = np.s_[:, 40:100, 40:100]
    before = dsc.features(smooth, natural, kind).to_numpy()
    expected = np.stack([rotate(one, 30, order=1) for one in before])[inner]
    found = dsc.features(rotated, natural, kind).to_numpy()[inner]
    energy = slice(0, None, 2) if kind == "invariant" else slice(None)
    left = ((found - expected)[energy] ** 2).sum() / (expected[energy] ** 2).sum()
    assert np.sqrt(left) < tolerance


@pytest.mark.parametrize("kind", ["invariant", "covariant"])
def test_features__same_bits_for_all_tiles(natural, image, kind, monkeypatch):
    crop = image("coins")[:150, :140]
    expected = dsc.features(crop, natural, kind, scheduler="synchronous")
    for setting in ("TILE", "SMALL"):
        monkeypatch.setattr(machine, setting, 64)
    found = dsc.features(crop, natural, kind, n_workers=2)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(found.image_mean, expected.image_mean)


def test_features__written_as_an_ome_zarr_that_viewers_open(natural, crop, tmp_path):
    found = dsc.features(crop, natural, out=tmp_path / "a.zarr")
    expected = dsc.features(crop, natural)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(found.image_mean, expected.image_mean)
    assert list(found.channel) == list(expected.channel)
    group = zarr.open_group(tmp_path / "a.zarr", mode="r")
    ome = group.attrs["ome"]
    channels = ome["omero"]["channels"]
    assert [one["label"] for one in channels] == list(expected.channel)
    assert all({"label", "color", "active", "window"} <= set(one) for one in channels)
    assert all(set(one["window"]) == {"min", "max", "start", "end"} for one in channels)
    assert json.dumps(ome)
    assert group["0"].metadata.dimension_names == ("c", "y", "x")
    assert group["0"].shape == (12, *crop.shape)


@pytest.mark.parametrize("kind", ["invariant", "covariant"])
def test_features__of_missing_pixels_are_missing_and_others_do_not_see_them(
    natural, crop, kind, monkeypatch
):
    holed = crop.copy()
    holed[40:43, 50] = np.nan
    found = dsc.features(holed, natural, kind)
    np.testing.assert_array_equal(np.isnan(found[0]), np.isnan(holed))
    whole = dsc.features(crop, natural, kind)
    np.testing.assert_array_equal(found[:, :, 75:], whole[:, :, 75:])  # no disk reaches so far
    np.testing.assert_allclose(found.image_mean, found.mean(("y", "x")), rtol=1e-4)
    if kind == "invariant":  # a mean over the known disks around a pixel: constant stays constant
        flat = np.where(np.isnan(holed), np.nan, np.float32(0.5))
        uses = dsc.features(flat, natural)[1::2]
        assert float(np.nanmax(uses)) == 0
    for setting in ("TILE", "SMALL"):
        monkeypatch.setattr(machine, setting, 64)
    np.testing.assert_array_equal(dsc.features(holed, natural, kind, n_workers=2), found)


def test_features__are_means_over_known_disks(natural, crop):
    holed = crop.copy()
    holed[44, 58] = np.nan
    side = natural.basis.diameter
    windows = np.lib.stride_tricks.sliding_window_view(holed, (side, side))
    known = ~np.isnan(windows[..., natural.basis.mask]).any(2)
    rows = np.nan_to_num(windows).reshape(-1, side, side)
    codes = natural.encode(dsc.ArrayPatches(rows, center=True)).codes
    energy = np.where(codes.atom == 1, codes.coef.astype(float) ** 2, 0).sum(1).reshape(known.shape)
    y, x, away = 40, 50, np.arange(-5, 6)
    weight = np.exp(-(away**2) / (2 * (side / 4) ** 2))
    area = np.ix_(y - side // 2 + away, x - side // 2 + away)
    assert not known[area].all()
    weights = np.outer(weight, weight) * known[area]
    expected = (weights * energy[area]).sum() / weights.sum()
    assert float(dsc.features(holed, natural)[2, y, x]) == pytest.approx(expected, rel=1e-4)


def test_features__refuse_what_they_cannot_use(natural, tmp_path):
    with pytest.raises(DscError, match=r"kind: unknown 'invariants'.*did you mean"):
        dsc.features(np.ones((30, 30)), natural, "invariants")
    with pytest.raises(DscError, match="at least 9 × 9"):
        dsc.features(np.ones((30, 8)), natural, out=tmp_path / "a.zarr")
    bad = np.ones((30, 30))
    bad[2, 3] = np.inf
    with pytest.raises(DscError, match="found inf at row 2, column 3"):
        dsc.features(bad, natural, out=tmp_path / "a.zarr")
    assert not list(tmp_path.iterdir())


def test_features__of_a_dictionary_without_rotation_are_refused(natural_patches, crop):
    still = dsc.learn(natural_patches(7, 300), 3, 1, n_iterations=1, basis="pixels", progress=False)
    with pytest.raises(dsc.DscError, match="need atoms that rotate"):
        dsc.features(crop, still)


@pytest.mark.parametrize("kind", ["invariant", "covariant"])
def test_unit__features_do_not_depend_on_the_contrast(unit, natural, crop, kind):
    found, faint = (dsc.features(c * crop, unit, kind).to_numpy() for c in (1, 0.125))
    assert found.max() > 0.1
    np.testing.assert_array_equal(faint, found)  # an eighth is exact
    plain = [dsc.features(c * crop, natural, kind)[0].to_numpy().max() for c in (1, 0.125)]
    assert plain[1] < plain[0] / 10


def test_unit__codes_are_those_of_patches_prepared_as_the_model_says(unit, crop):
    side = unit.basis.diameter
    window = cut_window(as_image(crop), slice(0, crop.shape[0]), slice(0, crop.shape[1]), 0)
    found = code_disks(window, (range(40, 41), range(50, 53)), how_to_code(unit, unit.coder))
    squares = np.stack([crop[40 : 40 + side, x : x + side] for x in range(50, 53)])
    codes = unit.encode(squares).codes
    np.testing.assert_array_equal(found.coef[0], codes.coef)
    assert (found.coef**2).sum() <= 3.01


def test_unit__orientation_does_not_depend_on_the_contrast(unit, crop):
    first, faint = (dsc.orientation(c * crop, unit) for c in (1, 0.125))
    for name in ("angle", "energy", "coherence"):
        np.testing.assert_array_equal(first[name], faint[name])


def test_store__has_the_means_of_the_whole_image(natural, crop, tmp_path):
    crop = crop.copy()
    crop[4, 5] = np.nan
    found = dsc.features(crop, natural, out=tmp_path / "a.zarr")
    again = dsc.open(tmp_path / "a.zarr")
    assert again["image_mean"].dims == ("c",)
    np.testing.assert_array_equal(again["image_mean"], found.image_mean)
    np.testing.assert_allclose(found.image_mean, found.mean(("y", "x")), rtol=1e-4)
    assert again["c"].values[0] == "atom 0 energy"


@pytest.mark.parametrize("name", ["features", "orientation"])
def test_share__of_the_energy_of_all_disks_is_left_whatever_the_tiles(
    natural, crop, tmp_path, monkeypatch, name
):
    side, crop = natural.basis.diameter, crop[:80]
    windows = np.lib.stride_tricks.sliding_window_view(crop, (side, side)).reshape(-1, side, side)
    expected = natural.encode(dsc.ArrayPatches(windows, center=True)).share
    map_image = getattr(natural, name)
    found = map_image(crop)
    if name == "features":
        assert found.attrs["share"] == pytest.approx(expected, rel=1e-4)
    else:  # with refined angles
        assert 0.5 * expected < found.attrs["share"] < expected
    monkeypatch.setattr(machine, "TILE", 64)
    stored = map_image(crop, out=tmp_path / "a.zarr")
    assert stored.attrs["share"] == found.attrs["share"]
