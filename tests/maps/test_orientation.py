"""Orientation maps: angles as OrientationJ gives them, two where structures cross."""

import json

import numpy as np
import pytest

import dsc
from dsc.basis import disk_basis
from dsc.errors import DscError
from dsc.experiments.oriented import difference, fibres, inside, rings, sinusoid
from dsc.maps.directions import ROTATIONS, atom_directions
from dsc.maps.orientation import BINS, CROSSING, fold, histogram, two_peaks
from dsc.maps.pooling import Pool
from dsc.tiling import machine


@pytest.mark.parametrize("degrees", [-80, -45, -13, 0, 20, 45, 71, 90])
def test_atoms__a_line_runs_along_itself(degrees):
    basis = disk_basis(11)
    line = sinusoid(11, degrees, 8).image[basis.mask]
    atoms = basis.project((line - line.mean())[None])
    atoms /= np.linalg.norm(atoms, axis=1, keepdims=True)
    found = atom_directions(atoms, basis)
    assert difference(np.degrees(found.angle[0]), degrees) < 1.0
    assert found.coherence[0] > 0.95
    assert found.energy[0] == pytest.approx(1, abs=1e-6)


def test_atoms__their_direction_rotates_with_them_and_finer_than_differences(learned_atoms):
    basis = disk_basis(11)
    atoms = learned_atoms(basis)
    before = atom_directions(atoms, basis)
    after = atom_directions(basis.steer(atoms, 2 * np.pi * 5 / ROTATIONS), basis)
    gap = difference(np.degrees(after.angle - before.angle), 360 * 5 / ROTATIONS)
    assert gap[before.coherence > 0.1].max() < 0.01
    np.testing.assert_allclose(after.coherence, before.coherence, atol=1e-4)


def test_atoms__a_blob_and_a_constant_have_no_direction():
    basis = disk_basis(11)
    y, x = np.mgrid[-5:6, -5:6]
    blob = np.exp(-(y**2 + x**2) / 8)[basis.mask]
    atoms = basis.project(np.stack([blob - blob.mean(), np.ones_like(blob)]))
    atoms /= np.linalg.norm(atoms, axis=1, keepdims=True)
    found = atom_directions(atoms, basis)
    assert found.coherence[0] < 0.01
    assert found.energy[1] == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("degrees", [-67, 0, 13, 45, 90])
def test_orientation__of_a_sinusoid(lines, degrees):
    image = sinusoid(64, degrees, 9).image
    found = dsc.orientation(image, lines)
    assert set(found) == {"angle", "coherence", "energy"}
    assert found["angle"].dims == ("y", "x")
    assert found["angle"].attrs["units"] == "degrees"
    angle = found["angle"].to_numpy()
    assert np.abs(angle).max() <= 90
    assert difference(angle, degrees)[inside(64)].max() < 1.5
    assert difference(angle, degrees).max() < 5  # up to the corners
    assert found["coherence"].min() > 0.9
    assert found["coherence"].max() <= 1


def test_orientation__of_rings_with_noise(lines):
    drawn = rings(96)
    noisy = drawn.image + np.random.default_rng(1).normal(0, 0.2, drawn.image.shape)
    found = dsc.orientation(noisy, lines)
    assert difference(found["angle"].to_numpy(), drawn.angle)[drawn.judged].mean() < 1.0


def test_orientation__two_where_fibres_cross_and_one_elsewhere(crossed):
    right, n_places, alone = 0, 0, []
    for seed in range(50, 54):
        drawn, places = fibres(128, 5, seed)
        noisy = drawn.image + np.random.default_rng(seed).normal(0, 0.2, drawn.image.shape)
        found = dsc.orientation(noisy, crossed)
        first, second = found["angle"].to_numpy(), found["angle2"].to_numpy()
        assert (np.isnan(second) == (found["energy2"] == 0)).all()
        alone.append(np.isnan(second)[drawn.judged].mean())
        for y, x, (a, b) in places:
            pairs = [((a, b), (first[y, x], second[y, x])), ((b, a), (first[y, x], second[y, x]))]
            right += any((difference(np.array(t), np.array(f)) <= 5).all() for t, f in pairs)
            n_places += 1
    assert n_places >= 10
    assert right >= 0.9 * n_places
    assert min(alone) > 0.95


@pytest.mark.parametrize("name", ["lines", "crossed"])
def test_orientation__same_bits_for_all_tiles(name, request, image, monkeypatch):
    model = request.getfixturevalue(name)
    crop = image("coins")[:150, :140]
    expected = dsc.orientation(crop, model, scheduler="synchronous")
    for setting in ("TILE", "SMALL"):
        monkeypatch.setattr(machine, setting, 64)
    found = dsc.orientation(crop, model, n_workers=2)
    for variable in expected:
        np.testing.assert_array_equal(found[variable], expected[variable])


@pytest.mark.parametrize("name", ["lines", "crossed"])
def test_orientation__of_an_image_with_missing_pixels(name, request, tmp_path):
    model = request.getfixturevalue(name)
    drawn = rings(128)
    holed = drawn.image.copy()
    holed[60:64, 20:100] = np.nan
    found = dsc.orientation(holed, model, tmp_path / "a.zarr")
    for variable in ("angle", "coherence", "energy"):
        np.testing.assert_array_equal(np.isnan(found[variable]), np.isnan(holed))
    known = ~np.isnan(holed) & drawn.judged
    if name == "lines":
        assert difference(found["angle"].to_numpy(), drawn.angle)[known].mean() < 1.0
        assert found["coherence"].to_numpy()[known].max() <= 1 + 1e-6


def test_orientation__quarter_rotations_of_the_image(lines, image):
    crop = image("coins")[20:90, 30:110]
    angle = dsc.orientation(crop, lines)["angle"].to_numpy()
    rotated = dsc.orientation(np.rot90(crop), lines)["angle"].to_numpy()
    gap = difference(rotated, np.rot90(angle) + 90)
    assert np.median(gap) < 1e-3
    assert gap.mean() < 0.5  # where nothing is, rounding may fork a pursuit


def test_orientation__written_is_the_same_and_opens_as_ome_zarr(crossed, image, tmp_path):
    crop = image("coins")[:80, :90]
    found = dsc.orientation(crop, crossed, tmp_path / "a.zarr")
    expected = dsc.orientation(crop, crossed)
    for variable in expected:
        np.testing.assert_array_equal(found[variable], expected[variable])
    ome = json.loads((tmp_path / "a.zarr/zarr.json").read_text())["attributes"]["ome"]
    assert [one["label"] for one in ome["omero"]["channels"]] == list(expected)
    with pytest.raises(DscError, match="not overwritten"):
        dsc.orientation(crop, crossed, tmp_path / "a.zarr")
    dsc.orientation(crop[:40], crossed, tmp_path / "a.zarr", overwrite=True)
    assert dsc.open(tmp_path / "a.zarr")["0"].shape == (5, 40, 90)


def test_bins__means_and_peaks_are_exact():
    angle = np.radians(np.array([[[20.3, 81.2]], [[-89.0, -30.0]], [[10.0, 14.0]]]))
    weight = np.array([[[2.0, 1.0]], [[1.0, 0.1]], [[1.0, 1.0]]])
    bins = histogram(weight, angle)
    assert bins.shape == (3, 1, BINS)
    np.testing.assert_allclose(bins.sum(2), weight.sum(2), rtol=1e-6)
    first, second, weight2 = two_peaks(bins)
    np.testing.assert_allclose(first[0, 0], 20.3, atol=1e-4)
    np.testing.assert_allclose([second[0, 0], weight2[0, 0]], [81.2, 1], atol=1e-4)
    assert difference(first[1, 0], -89) < 1e-3
    assert weight2[1, 0] == 0  # too weak
    np.testing.assert_allclose(first[2, 0], 12, atol=1e-4)
    assert weight2[2, 0] == 0  # too near


def test_fold__to_half_a_circle():
    np.testing.assert_allclose(
        fold(np.array([0.0, 89.0, 91.0, 270.0, -91.0])), [0, 89, -89, -90, 89]
    )


@pytest.mark.parametrize(("diameter", "sigma"), [(11, 2.75), (10, 2.5), (7, 0.4), (5, 9.0)])
def test_pool__is_a_weighted_mean_of_the_disks_that_exist(diameter, sigma):
    pool, shape = Pool(diameter, sigma), (23, 19)
    tops = [range(size - diameter + 1) for size in shape]
    values = np.random.default_rng(0).random([len(one) for one in tops])
    whole = pool.mean(values, tuple(tops), (slice(0, 23), slice(0, 19)))
    middle = (diameter - 1) / 2
    y, x = 3, 18
    weights = np.array(
        [
            [
                np.exp(-((y - t - middle) ** 2 + (x - s - middle) ** 2) / (2 * sigma**2))
                * (max(abs(y - t - middle), abs(x - s - middle)) <= pool.reach)
                for s in tops[1]
            ]
            for t in tops[0]
        ]
    )
    assert whole[y, x] == pytest.approx((weights * values).sum() / weights.sum())
    part = (slice(4, 12), slice(6, 19))
    some = tuple(pool.tops(one, size) for one, size in zip(part, shape, strict=True))
    cut = values[some[0].start : some[0].stop, some[1].start : some[1].stop]
    assert (pool.mean(cut, some, part) == whole[part]).all()
    np.testing.assert_allclose(pool.mean(np.ones_like(values), tuple(tops), part), 1)


def test_orientation__refuses_what_it_cannot_use(lines, natural_patches, tmp_path):
    out = tmp_path / "a.zarr"
    bad = np.ones((40, 40))
    bad[30, 7] = np.inf
    with pytest.raises(DscError, match="found inf at row 30, column 7"):
        dsc.orientation(bad, lines, out)
    with pytest.raises(DscError, match="at least 11 × 11"):
        dsc.orientation(np.ones((10, 40)), lines, out)
    for sigma in (0, -1, np.nan, np.inf, 1000):
        with pytest.raises(DscError, match="sigma: found"):
            dsc.orientation(np.ones((40, 40)), lines, out, sigma=sigma)
    with pytest.raises(DscError, match="does not exist"):
        dsc.orientation(tmp_path / "nothing.png", lines, out)
    still = dsc.learn(natural_patches(7, 200), 3, 1, n_iterations=1, basis="pixels", progress=False)
    with pytest.raises(DscError, match="found one of the pixels basis, need atoms that rotate"):
        dsc.orientation(np.ones((40, 40)), still, out)
    assert not list(tmp_path.iterdir())


def test_orientation__of_nothing_is_zero(lines):
    found = dsc.orientation(np.zeros((30, 30)), lines)
    assert (found["energy"] == 0).all()
    assert (found["coherence"] == 0).all()
    assert np.isfinite(found["angle"]).all()


def test_crossing__is_where_the_second_orientation_is_strong(crossed, image):
    rng = np.random.default_rng(1)
    at, away = [], []
    for seed in range(10, 14):
        drawn, crossings = fibres(128, 6, seed)
        maps = dsc.orientation(drawn.image + rng.normal(0, 0.1, drawn.image.shape), crossed)
        ratio = (maps["energy2"] / maps["energy"]).to_numpy()
        at += [ratio[one.y, one.x] > CROSSING for one in crossings]
        away.append(ratio[drawn.judged] > CROSSING)
    assert np.mean(at) >= 0.9
    assert np.concatenate(away).mean() < 0.001
    maps = dsc.orientation(image("camera")[100:180, 200:290], crossed)
    assert float((maps["energy2"] > CROSSING * maps["energy"]).mean()) < 0.15
