"""`reconstruct`: overlapping coded disks averaged, without seams; compared with a slow oracle."""

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

import dsc
from dsc.dictionary import learn
from dsc.errors import DscError
from dsc.patches import ArrayPatches
from dsc.tiling import machine


@pytest.fixture(scope="module")
def centered(patches):
    return learn(ArrayPatches(patches, center=True), 4, 2, n_iterations=2)


@pytest.fixture(scope="module")
def unit(patches):
    return learn(
        ArrayPatches(patches, center=True, unit=True), 4, 2, n_iterations=2, tolerance=0.001
    )


@pytest.fixture(scope="module")
def crop(image):
    """Taller than two tiles."""
    return image("coins")[40:200, 50:90].astype(np.float32)


def coded_windows(model, image):
    """All windows of an image coded in one call, as decoded disks: (y, x, pixel)."""
    side = model.basis.diameter
    windows = sliding_window_view(image, (side, side))
    rows = windows.reshape(-1, side, side)[:, model.basis.mask].astype(np.float32)
    means = rows.mean(1, keepdims=True) if model.patches["center"] else np.float32(0)
    coords = model.basis.project(rows - means)
    codes = dsc.encode(coords, model.atoms, model.basis, model.config.sparsity, model.n_angles)
    pixels = model.basis.reconstruct(dsc.decode(codes, model.atoms, model.basis)) + means
    return pixels.reshape(*windows.shape[:2], -1)


def average(model, coded, shape, stride, origin):
    """The average of all disks that cover each pixel, disk by disk."""
    side = model.basis.diameter
    total, cover = np.zeros(shape), np.zeros(shape)
    for y in range(origin[0], coded.shape[0], stride):
        for x in range(origin[1], coded.shape[1], stride):
            window = np.s_[y : y + side, x : x + side]
            total[window][model.basis.mask] += coded[y, x]
            cover[window][model.basis.mask] += 1
    with np.errstate(invalid="ignore"):
        return total / cover


@pytest.mark.parametrize("kind", ["plain", "centered"])
def test_reconstruct__is_the_average_of_all_overlapping_disks(model, centered, crop, kind):
    used = {"plain": model, "centered": centered}[kind]
    found = used.reconstruct(crop)
    assert found.shape == crop.shape
    assert found.dtype == np.float32
    expected = average(used, coded_windows(used, crop), crop.shape, 1, (0, 0))
    inner = np.s_[7:-7, 7:-7]  # pixels that no window beyond the border reaches
    np.testing.assert_allclose(found[inner], expected[inner], atol=1e-5)


@pytest.mark.parametrize("stride", [2, 3])
def test_reconstruct__with_a_stride_averages_the_disks_of_a_grid(model, crop, stride):
    found = model.reconstruct(crop, stride=stride)
    assert found.shape == crop.shape
    assert np.isfinite(found).all()
    coded = coded_windows(model, crop)
    inner = np.s_[7:-7, 7:-7]
    gaps = []
    for y in range(stride):  # where the grid begins is not promised
        for x in range(stride):
            expected = average(model, coded, crop.shape, stride, (y, x))
            gaps.append(np.abs(found[inner] - expected[inner]).max())
    assert min(gaps) < 1e-5


@pytest.mark.parametrize("tile", [64, 128, 256])
def test_reconstruct__does_not_depend_on_the_tiles(model, image, monkeypatch, tile):
    crop = image("coins")[:150, :140]
    expected = model.reconstruct(crop, scheduler="synchronous")
    for name in ("TILE", "SMALL"):
        monkeypatch.setattr(machine, name, tile)
    assert (model.reconstruct(crop, n_workers=2) == expected).all()


def test_rebuild__says_how_much_is_left(model, crop):
    found = model.rebuild(crop)
    error = ((found.image - crop) ** 2).mean(dtype=np.float64)
    assert found.mse == pytest.approx(error, rel=1e-5)
    assert found.share == pytest.approx(error / crop.var(dtype=np.float64), rel=1e-5)
    assert found.psnr == pytest.approx(-10 * np.log10(error), rel=1e-5)
    assert "of the energy left, PSNR" in found.line()
    bytes_ = np.round(crop * 200)
    error = ((model.reconstruct(bytes_) - bytes_) ** 2).mean(dtype=np.float64)
    peak = bytes_.max() - bytes_.min()
    assert model.rebuild(bytes_).psnr == pytest.approx(10 * np.log10(peak**2 / error), rel=1e-5)
    flat = model.rebuild(np.zeros((20, 20)))
    assert (flat.share, flat.psnr) == (0, np.inf)


def test_rebuild__to_a_store_is_the_same(model, crop, tmp_path):
    found = model.rebuild(crop, out=tmp_path / "a.zarr")
    expected = model.rebuild(crop)
    assert (found.image == expected.image).all()
    assert (found.mse, found.psnr) == (expected.mse, expected.psnr)
    assert (model.reconstruct(tmp_path / "a.zarr") == model.reconstruct(expected.image)).all()


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "uint16", "float32", "float64"])
def test_rebuild__a_store_has_the_type_and_range_of_the_image(centered, crop, tmp_path, dtype):
    most = {"bool": 1, "uint8": 255, "int16": 300, "uint16": 60000}.get(dtype, 254)
    image = np.stack([crop * 1.8 - 0.3, 1 - crop, crop / 2], 2).clip(0, 1) * most
    image = (image if "float" in dtype else np.rint(image)).astype(dtype)
    memory = centered.rebuild(image)
    found = centered.rebuild(image, out=tmp_path / "a.zarr")
    assert memory.image.dtype == np.float32  # not rounded
    kept = np.dtype("float32" if "float" in dtype else dtype)
    assert found.image.dtype == dsc.open(tmp_path / "a.zarr")["0"].dtype == kept
    expected = memory.image.astype(np.float64)
    if kept.kind != "f":
        assert np.ptp(memory.image) > np.ptp(image.astype(float))  # there is something to clip
        low, high = (0, 1) if dtype == "bool" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        expected = np.rint(expected.clip(low, high))
    np.testing.assert_array_equal(found.image, expected.astype(kept))
    np.testing.assert_array_equal(memory.pixels(kept), found.image)
    assert (found.mse, found.share, found.psnr) == (memory.mse, memory.share, memory.psnr)


def test_rebuild__a_store_of_a_file_is_its_pixels(model, image, tmp_path):
    deep = (image("coins")[:70, :80] * 65535).clip(100, 60000).astype(np.uint16)
    np.save(tmp_path / "deep.npy", deep)
    found = model.rebuild(tmp_path / "deep.npy", out=tmp_path / "a.zarr")
    memory = model.rebuild(tmp_path / "deep.npy")
    assert memory.image.max() <= 1.2  # a file is read as values from 0 to 1
    np.testing.assert_array_equal(
        found.image, np.rint(memory.image.astype(float).clip(0, 1) * 65535).astype(np.uint16)
    )
    np.testing.assert_array_equal(memory.pixels(np.dtype("uint16")), found.image)
    assert (found.mse, found.share, found.psnr) == (memory.mse, memory.share, memory.psnr)


def test_rebuild__resumed_has_the_numbers_before_rounding(model, image, tmp_path, monkeypatch):
    pixels = (image("coins")[:150, :140] * 255).astype(np.uint8)
    for setting in ("TILE", "SMALL"):
        monkeypatch.setattr(machine, setting, 64)
    expected = model.rebuild(pixels, out=tmp_path / "a.zarr")
    done, run_tile = [], machine.run_tile

    def some(part, shared):
        done.append(part)
        if len(done) > 5:
            raise RuntimeError("killed")
        return run_tile(part, shared)

    with monkeypatch.context() as patch:
        patch.setattr(machine, "run_tile", some)
        with pytest.raises(RuntimeError, match="killed"):
            model.rebuild(pixels, out=tmp_path / "b.zarr", scheduler="synchronous")
    with pytest.raises(DscError, match="begun with another identity"):  # the same values as floats
        model.rebuild(pixels.astype(np.float32), out=tmp_path / "b.zarr", resume=True)
    found = model.rebuild(pixels, out=tmp_path / "b.zarr", resume=True)
    np.testing.assert_array_equal(found.image, expected.image)
    assert (found.mse, found.share, found.psnr) == (expected.mse, expected.share, expected.psnr)


def test_reconstruct__every_pixel_up_to_the_border_is_close(centered, crop):
    found = centered.reconstruct(crop)
    assert np.isfinite(found).all()
    error = (found - crop) ** 2
    assert error.mean() < 0.2 * crop.var()
    edge = np.concatenate([error[0], error[-1], error[:, 0], error[:, -1]])
    assert edge.mean() < 10 * error.mean()


def test_reconstruct__more_atoms_per_patch_come_closer(patches, crop):
    errors = []
    for sparsity in (1, 3, 8):
        used = learn(patches, 6, sparsity, n_iterations=5)
        errors.append(((used.reconstruct(crop) - crop) ** 2).mean())
    assert errors[0] > errors[1] > errors[2]


def test_reconstruct__a_centered_dictionary_keeps_brightness(centered, crop):
    plain = centered.reconstruct(crop)
    np.testing.assert_allclose(centered.reconstruct(crop + 5), plain + 5, atol=1e-3)
    flat = np.full((20, 20), 0.25, np.float32)
    np.testing.assert_allclose(centered.reconstruct(flat), flat, atol=1e-6)


def test_reconstruct__a_quarter_turn_of_the_image_turns_the_result(centered, crop):
    turned = centered.reconstruct(np.rot90(crop))
    expected = np.rot90(centered.reconstruct(crop))
    assert np.median(np.abs(turned - expected)) < 1e-5
    assert np.abs(turned - expected).mean() < 1e-3  # rounding may fork a pursuit


def test_reconstruct__takes_whole_numbers_and_does_not_write_to_them(model, crop):
    bytes_ = np.round(crop * 255).astype(np.uint8)
    bytes_.setflags(write=False)
    found = model.reconstruct(bytes_[:20, :20])
    np.testing.assert_allclose(found, model.reconstruct(bytes_[:20, :20].astype(np.float64)))


@pytest.mark.parametrize(
    ("shape", "stride", "message"),
    [
        ((20,), 1, r"image: found shape \(20,\)"),
        ((20, 20, 5), 1, r"image: found shape \(20, 20, 5\)"),
        ((6, 20), 1, r"at least 7 × 7"),
        ((20, 20), 0, "stride: found 0"),
        ((20, 20), 7, "stride: found 7"),
    ],
)
def test_reconstruct__refuses_what_it_cannot_use(model, shape, stride, message):
    with pytest.raises(DscError, match=message):
        model.reconstruct(np.zeros(shape), stride=stride)


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_reconstruct__refuses_infinite_pixels(model, crop, value):
    bad = crop.copy()
    bad[100, 20] = value
    with pytest.raises(DscError, match=r"found -?inf"):
        model.reconstruct(bad)


def test_reconstruct__leaves_out_disks_with_missing_pixels(model, crop, monkeypatch):
    holed = crop.copy()
    holed[100, 20] = holed[30:60, 10:12] = np.nan
    found = model.rebuild(holed)
    coded = coded_windows(model, np.nan_to_num(holed))
    side, disk = model.basis.diameter, model.basis.mask
    windows = sliding_window_view(holed, (side, side))[..., disk]
    coded[np.isnan(windows).any(2)] = np.nan  # of which nothing is known
    total, cover = np.zeros(crop.shape), np.zeros(crop.shape)
    for y, x in np.argwhere(~np.isnan(coded).any(2)):
        total[y : y + side, x : x + side][disk] += coded[y, x]
        cover[y : y + side, x : x + side][disk] += 1
    with np.errstate(invalid="ignore"):
        expected = total / cover
    inner = np.s_[7:-7, 7:-7]
    np.testing.assert_allclose(found.image[inner], expected[inner], atol=1e-5)
    np.testing.assert_array_equal(np.isnan(found.image[inner]), np.isnan(holed[inner]))
    known = ~np.isnan(found.image)
    error = (found.image - holed)[known].astype(float) ** 2
    assert found.mse == pytest.approx(error.mean(), rel=1e-4)
    about = ((holed[known] - holed[known].mean()).astype(float) ** 2).sum()
    assert found.share == pytest.approx(error.sum() / about, rel=1e-4)
    for setting in ("TILE", "SMALL"):
        monkeypatch.setattr(machine, setting, 64)
    np.testing.assert_array_equal(model.reconstruct(holed, n_workers=2), found.image)


def test_reconstruct__refuses_an_image_without_a_whole_disk(model, crop, tmp_path):
    holed = np.where(np.arange(crop.shape[1]) % 3, crop, np.nan)
    for out in (None, tmp_path / "a.zarr"):
        with pytest.raises(DscError, match=r"missing pixels \(NaN\) in every disk.*inpaint"):
            model.rebuild(holed, out=out)
    assert not (tmp_path / "a.zarr/manifest.json").exists()


def test_reconstruct__a_color_that_is_missing_leaves_out_all(model, crop):
    colors = np.stack([crop, crop / 2, 1 - crop], 2)
    colors[50, 20, 1] = np.nan
    found = model.reconstruct(colors)
    assert np.isnan(found[50, 20]).all()
    assert np.isfinite(np.delete(found.reshape(-1, 3), 50 * crop.shape[1] + 20, 0)).all()


def test_reconstruct__of_a_unit_dictionary_scales_with_the_image(unit, crop):
    found = unit.reconstruct(crop)
    np.testing.assert_array_equal(unit.reconstruct(crop / 8) * 8, found)  # exact
    assert np.mean((found - crop) ** 2) < 0.3 * crop.var()
