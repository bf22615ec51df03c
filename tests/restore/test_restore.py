"""Denoising and inpainting: what they gain, what they leave alone, and the same bits."""

import json

import numpy as np
import pytest
import xarray
import zarr
from skimage import data

import dsc
from dsc import DscError, denoise, inpaint
from dsc.restore import denoise_image, estimate_noise, inpaint_image, inpainting, pixels
from dsc.restore.pixels import Scale
from dsc.tiling import Output, machine
from dsc.tiling.opening import CHANNELS

FAST = {"diameter": 7, "n_atoms": 8, "n_iterations": 4}
SIGMA = 25


def psnr(found, true):
    return 10 * np.log10(255**2 / np.mean((found.astype(float) - true) ** 2))


def rings(side):
    """Smooth rings with an edge: structure in all orientations."""
    y, x = np.mgrid[:side, :side] - side / 2
    radius = np.hypot(y, x)
    return 127 + 80 * np.cos(radius / 3) * (radius < side / 2.5)


@pytest.fixture(scope="module")
def crop():
    return data.camera()[150:230, 200:290]


@pytest.fixture(scope="module")
def noisy(crop):
    return crop + np.random.default_rng(0).normal(0, SIGMA, crop.shape)


@pytest.fixture(scope="module")
def clean(noisy):
    return denoise(noisy, SIGMA, **FAST)


@pytest.fixture(scope="module")
def holes(crop):
    return np.random.default_rng(1).random(crop.shape) < 0.4


@pytest.fixture(scope="module")
def filled(crop, holes):
    return inpaint(crop, holes, **FAST)


# --- what they gain -----------------------------------------------------------------------------


def test_denoise__gains_on_a_real_crop(crop, noisy, clean):
    assert psnr(clean, crop) > psnr(noisy, crop) + 6


def test_denoise__gains_on_a_synthetic_image_more_than_a_standard_dictionary():
    true = rings(72)
    image = true + np.random.default_rng(0).normal(0, SIGMA, true.shape)
    ours = psnr(denoise(image, SIGMA, **FAST), true)
    assert ours > psnr(image, true) + 8
    assert ours > psnr(denoise(image, SIGMA, basis="pixels", **FAST), true) + 0.5


def test_denoise__estimates_the_noise(crop, noisy):
    assert estimate_noise(noisy) == pytest.approx(SIGMA, rel=0.1)
    assert psnr(denoise(noisy, **FAST), crop) > psnr(noisy, crop) + 5


def test_denoise__with_a_given_model(crop, noisy):
    squares = np.lib.stride_tricks.sliding_window_view(crop, (7, 7))[::3, ::3].reshape(-1, 7, 7)
    patches = dsc.ArrayPatches(squares.astype(np.float32), center=True)
    model = dsc.learn(patches, 8, 3, n_iterations=2, progress=False)
    assert psnr(denoise(noisy, SIGMA, model), crop) > psnr(noisy, crop) + 6


def test_denoise__does_not_depend_on_the_units(noisy, clean):
    shifted = denoise(noisy * 1e-6 - 3e-5, SIGMA * 1e-6, **FAST)
    np.testing.assert_allclose((shifted + 3e-5) * 1e6, clean, atol=0.5)


def test_inpaint__is_nearer_than_a_smooth_filling(crop, holes, filled):
    from scipy.ndimage import gaussian_filter

    known = (~holes).astype(float)
    smooth = gaussian_filter(crop * known, 1.0) / gaussian_filter(known, 1.0)
    assert psnr(filled[holes], crop[holes]) > psnr(smooth[holes], crop[holes]) + 1


# --- what they leave alone ----------------------------------------------------------------------


@pytest.mark.parametrize("sigma", [None, 0, 10])
@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32"])
def test_denoise__a_constant_image_stays(sigma, dtype):
    image = np.full((20, 30), 77, dtype)
    found = denoise(image, sigma, **FAST)
    assert found.dtype == image.dtype
    assert (found == image).all()


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32", "float64"])
def test_denoise__keeps_type_and_range(noisy, dtype):
    image = np.clip(noisy * 1.5 - 50, 0, 255).astype(dtype)  # much of it at the limits
    found = denoise(image, SIGMA, n_atoms=2, n_iterations=0, diameter=5)
    assert found.dtype == (np.float32 if np.dtype(dtype).kind == "f" else dtype)
    assert found.shape == image.shape


def test_scale__rounds_and_clips_whole_numbers():
    values = np.array([-3.0, 1.6, 300.0], np.float32)
    assert Scale(0.0, 1.0).undo(values, np.dtype("uint8")).tolist() == [0, 2, 255]


def test_inpaint__keeps_known_pixels(crop, holes, filled):
    assert filled.dtype == crop.dtype
    assert (filled == crop)[~holes].all()


def test_inpaint__nan_is_missing(crop, holes, filled):
    values = crop.astype(np.float32)
    found = inpaint(np.where(holes, np.nan, values), **FAST)
    assert found.dtype == np.float32
    assert (found == values)[~holes].all()
    np.testing.assert_allclose(np.clip(found, 0, 255), filled, atol=0.6)  # rounded


def test_denoise__nan_is_missing_and_stays_so(crop, noisy, clean, capsys):
    missing = np.zeros(crop.shape, bool)
    missing[30:34, 40:46] = missing[0, 0] = missing[60] = True
    found = denoise(np.where(missing, np.nan, noisy), **FAST)
    np.testing.assert_array_equal(np.isnan(found), missing)
    near = psnr(found[~missing], crop[~missing])
    assert near > psnr(clean[~missing], crop[~missing]) - 0.5
    one = noisy.copy()
    one[40, 50] = np.nan
    far = np.abs(denoise(one, SIGMA, **FAST) - clean)[:20, :20]
    assert np.median(far) < 0.1 * SIGMA  # elsewhere much the same


def test_denoise__missing_pixels_give_the_same_bits_in_tiles(crop, noisy, tile, large):
    holed = np.where(np.random.default_rng(2).random(crop.shape) < 0.05, np.nan, noisy)
    holed[20:50, 10:40] = np.nan
    tile(machine.TILE)
    expected = denoise(holed, SIGMA, **FAST)
    tile(64)
    np.testing.assert_array_equal(denoise(holed, SIGMA, **FAST), expected)
    large()
    windows = denoise(holed, SIGMA, **FAST)  # another dictionary: of windows
    np.testing.assert_array_equal(np.isnan(windows), np.isnan(holed))
    tile(128)
    np.testing.assert_array_equal(denoise(holed, SIGMA, **FAST), windows)


def test_inpaint__does_not_look_at_missing_pixels(crop, holes, filled):
    other = np.where(holes, np.random.default_rng(2).integers(0, 255, crop.shape), crop)
    assert (inpaint(other.astype(np.uint8), holes, **FAST) == filled).all()


def test_inpaint__without_missing_pixels_and_of_a_constant(crop):
    events = []
    assert (inpaint(crop, np.zeros_like(crop), progress=events.append) == crop).all()
    assert any("found no missing pixel" in event.line() for event in events)
    with pytest.raises(DscError, match="found no missing pixel: say which ones with a mask"):
        inpaint(crop)
    holes = np.eye(30, dtype=bool)
    assert (inpaint(np.full((30, 30), 9, np.uint8), holes) == 9).all()


# --- the same bits ------------------------------------------------------------------------------


@pytest.fixture
def tile(monkeypatch):
    """tile(n): let tiles be n pixels across."""
    return lambda n: monkeypatch.setattr(machine, "TILE", n)


@pytest.fixture
def large(monkeypatch):
    """large(windows, across): let every image be large, and so many windows of it be looked at."""

    def make(windows=6, across=24):
        for name, value in {"SMALL": 0, "WINDOWS": windows, "ACROSS": across}.items():
            monkeypatch.setattr(pixels, name, value)

    return make


def test_tiles__give_the_bits_of_the_whole(crop, holes, noisy, clean, filled, tile):
    tile(64)
    assert (denoise(noisy, SIGMA, **FAST) == clean).all()
    assert (inpaint(crop, holes, **FAST) == filled).all()


@pytest.mark.parametrize("diameter", [6, 7])
def test_tiles__of_odd_sizes_give_the_bits_of_the_whole(noisy, tile, diameter):
    how = {**FAST, "diameter": diameter}
    odd = noisy[:71, :67]  # half a square of 2 × 2 pixels is left over
    whole = denoise(odd, SIGMA, **how)
    tile(64)
    assert (denoise(odd, SIGMA, **how) == whole).all()
    assert psnr(whole[64:], odd[64:]) > psnr(np.full_like(odd[64:], odd.mean()), odd[64:])


def test_schedulers__give_the_same_bits(crop, holes, noisy, clean, filled, tile):
    tile(64)
    how = {"scheduler": "synchronous", **FAST}
    assert (denoise(noisy, SIGMA, **how) == clean).all()
    assert (inpaint(crop, holes, **how) == filled).all()
    how = {"scheduler": "processes", "n_workers": 1, **FAST}
    assert (denoise(noisy, SIGMA, **how) == clean).all()
    assert (inpaint(crop, holes, **how) == filled).all()


@pytest.mark.parametrize("side", [64, 256])
def test_large__tile_by_tile_is_what_the_whole_gives(
    crop, holes, noisy, clean, filled, tile, large, monkeypatch, side
):
    tile(side)
    monkeypatch.setattr(inpainting, "TILE", side)
    large(windows=1, across=1000)  # the one window is all of it
    assert (denoise(noisy, SIGMA, **FAST) == clean).all()
    assert (inpaint(crop, holes, **FAST) == filled).all()


def test_large__says_as_much_removed_as_the_whole(noisy, large, tile):
    both = np.dstack([noisy, 3 * noisy + 7, np.ones_like(noisy)]).astype(np.float32)
    both[3, 5, 1] = np.nan
    small = denoise_image(both, SIGMA, None, Output(), dict(FAST)).facts
    tile(64)
    large(windows=1, across=1000)  # the one window is all of it
    found = denoise_image(both, SIGMA, None, Output(), dict(FAST)).facts
    for name in ("share", "removed"):
        assert found[name] == pytest.approx(small[name], rel=1e-9)
    clean = denoise(both, SIGMA, **FAST)
    energy = sum(np.nanvar(both[..., c], dtype=np.float64) for c in range(3))
    share = np.nanmean((clean - both) ** 2, axis=(0, 1), dtype=np.float64).sum() / energy
    assert small["share"] == pytest.approx(share, rel=1e-3)  # but for the one pixel


def test_large__holes_beside_the_border_and_wide_ones_are_filled_as_in_the_whole(
    crop, large, monkeypatch
):
    holes = np.zeros(crop.shape, bool)
    holes[:30, 50:] = holes[70:, 3:5] = holes[40, 40] = True
    whole = inpaint(crop, holes, **FAST)
    monkeypatch.setattr(inpainting, "TILE", 64)
    large(windows=1, across=1000)
    assert (inpaint(crop, holes, **FAST) == whole).all()


def test_share__left_of_known_pixels_beside_holes_is_the_same_in_tiles(
    crop, large, tile, tmp_path, monkeypatch
):
    holes = np.zeros((80, 90), bool)
    holes[10:14, 60:66] = holes[63, 5:50] = holes[30:50, 63] = True
    image = np.dstack([crop, crop[::-1], np.full_like(crop, 7)])

    def share():
        return inpaint_image(image, holes, None, Output(), {"colors": "each", **FAST}).facts[
            "share"
        ]

    whole = share()
    assert 0 < whole < 0.2
    tile(64)
    assert share() == whole
    monkeypatch.setattr(inpainting, "TILE", 64)
    large(windows=1, across=1000)
    assert share() == pytest.approx(whole, rel=1e-12)
    out = Output(tmp_path / "a.zarr")
    stored = inpaint_image(image, holes, None, out, {"colors": "each", **FAST})
    assert stored.facts["share"] == pytest.approx(whole, rel=1e-12)


def test_image__may_be_an_xarray_and_a_mask_one_of_numbers(crop, holes, filled):
    image, mask = xarray.DataArray(crop, dims=("y", "x")), holes.astype(np.float32) * 0.5
    assert (inpaint(image, xarray.DataArray(mask, dims=("y", "x")), **FAST) == filled).all()


def test_large__windows_stand_for_the_image(crop, holes, noisy, large, tile):
    large(windows=12, across=30)
    gain = psnr(denoise(noisy, **FAST), crop) - psnr(noisy, crop)
    assert gain > 4
    found = denoise(noisy, 1, **FAST)  # far too low: no more than that is removed
    assert np.std(found - noisy) < 1.2
    found = inpaint(crop, holes, **FAST)
    assert (found == crop)[~holes].all()
    assert psnr(found[holes], crop[holes]) > 20


@pytest.mark.parametrize("is_large", [False, True])
def test_out__has_the_bits_and_the_type_of_the_image_in_memory(
    crop, noisy, holes, tmp_path, large, tile, is_large
):
    if is_large:
        large()
    image = noisy.clip(0, 255).astype(np.uint16)
    expected, full = denoise(image, SIGMA, **FAST), inpaint(crop, holes, **FAST)
    tile(64)
    zarr.create_array(tmp_path / "in.zarr", data=image, chunks=(50, 60))
    zarr.create_array(tmp_path / "crop.zarr", data=crop, chunks=(30, 90))
    np.save(tmp_path / "holes.npy", holes)
    found = denoise(tmp_path / "in.zarr", SIGMA, out=tmp_path / "a.zarr", **FAST)
    assert found.dtype == np.uint16
    assert found.dims == ("channel", "y", "x")
    assert (found.values[0] == expected).all()
    done = inpaint(
        tmp_path / "crop.zarr", tmp_path / "holes.npy", out=tmp_path / "b.zarr", **FAST,
        scheduler="synchronous",
    )  # fmt: skip
    assert done.dtype == np.uint8
    assert (done.values[0] == full).all()
    assert dsc.check(tmp_path / "a.zarr").good
    with pytest.raises(DscError, match="finished store of maps; it is not overwritten"):
        denoise(image, SIGMA, out=tmp_path / "a.zarr", **FAST)
    denoise(image, SIGMA, out=tmp_path / "a.zarr", overwrite=True, **FAST)


@pytest.mark.parametrize("restore", ["denoise", "inpaint"])
def test_resume__keeps_tiles_and_ends_in_the_same_bytes(
    noisy, holes, tmp_path, large, tile, monkeypatch, restore
):
    large()
    tile(64)
    monkeypatch.setattr(inpainting, "TILE", 64)
    image = noisy.astype(np.float32)

    def run(name, **more):
        how = {"out": tmp_path / name, "scheduler": "synchronous", **FAST, **more}
        if restore == "denoise":
            return denoise(image, SIGMA, **how)
        return inpaint(image, holes, **how)

    run("right.zarr")
    run_tile, n_calls = machine.run_tile, []

    def some(part, shared):
        n_calls.append(part)
        if len(n_calls) == 3:
            raise RuntimeError("killed")
        return run_tile(part, shared)

    monkeypatch.setattr(machine, "run_tile", some)
    with pytest.raises(RuntimeError, match="killed"):
        run("a.zarr")
    assert not dsc.check(tmp_path / "a.zarr").good
    with pytest.raises(DscError, match="begun with another identity"):
        run("a.zarr", resume=True, seed=1)
    run("a.zarr", resume=True)
    chunks = sorted(
        p.relative_to(tmp_path / "a.zarr") for p in (tmp_path / "a.zarr/0/c").rglob("?")
    )
    assert len([one for one in chunks if (tmp_path / "a.zarr" / one).is_file()]) == 4
    for one in chunks:
        if (tmp_path / "a.zarr" / one).is_file():
            same = (tmp_path / "right.zarr" / one).read_bytes()
            assert (tmp_path / "a.zarr" / one).read_bytes() == same


@pytest.mark.parametrize("n_channels", [2, 3, 4])
@pytest.mark.parametrize("is_large", [False, True])
def test_colors__are_restored_by_themselves_and_alpha_stays(
    noisy, holes, large, tmp_path, n_channels, is_large
):
    if is_large:
        large()
    grey = noisy.clip(0, 255).astype(np.uint8)
    image = np.stack([grey, grey[::-1], grey[:, ::-1], np.arange(80)[:, None] + 0 * grey], axis=2)
    image = image[:, :, [0, 3] if n_channels == 2 else slice(n_channels)].astype(np.uint8)
    how = {"n_atoms": 4, "n_iterations": 1, "diameter": 5, "colors": "each"}
    found, full = denoise(image, 20, **how), inpaint(image, holes, **how)
    stored = denoise(image, 20, out=tmp_path / "a.zarr", **how)
    assert (np.moveaxis(stored.values, 0, 2) == found).all()
    assert list(stored.channel.values) == list(CHANNELS[n_channels])
    for color in range(n_channels):
        if n_channels != 3 and color == n_channels - 1:
            assert (found[..., color] == image[..., color]).all()
            assert (full[..., color] == image[..., color]).all()
        else:
            assert (found[..., color] == denoise(image[..., color], 20, **how)).all()
            assert (full[..., color] == inpaint(image[..., color], holes, **how)).all()
    ome = json.loads((tmp_path / "a.zarr/zarr.json").read_text())["attributes"]["ome"]
    labels = [one["label"] for one in ome["omero"]["channels"]]
    assert labels == list(CHANNELS[n_channels])
    assert ome["multiscales"][0]["name"] == "remove the noise"
    shown = [one["window"] for one in ome["omero"]["channels"] if one["label"] != "alpha"]
    colors = stored.values[: len(shown)]
    assert all((one["start"], one["end"]) == (colors.min(), colors.max()) for one in shown)


def test_sigma__is_checked_on_all_colors_at_once():
    faint = np.random.default_rng(0).normal(100, 20, (30, 40))
    image = np.stack([faint, 0.01 * faint, 0 * faint], axis=2)
    found = denoise(image, 10, n_atoms=2, n_iterations=1, diameter=5)
    assert (found[..., 2] == 0).all()
    with pytest.raises(DscError, match="sigma: found 1000, need at most"):
        denoise(image, 1000)


def test_bool__is_rounded_to_bool(crop, holes):
    image = crop > 100
    for found in (denoise(image, 0.2, **FAST), inpaint(image, holes, **FAST)):
        assert found.dtype == bool
        assert (found == image).mean() > 0.9


# --- mistakes -----------------------------------------------------------------------------------

IMAGE = np.random.default_rng(0).normal(100, 20, (30, 40))
WITH_NAN = np.where(np.arange(40) % 2, np.nan, IMAGE)
WITH_INF = np.where(np.eye(30, 40), np.inf, IMAGE)


@pytest.mark.parametrize(
    ("image", "sigma", "options", "message"),
    [
        (IMAGE, -1, {}, r"sigma: found -1, need a number ≥ 0"),
        (IMAGE, np.nan, {}, r"sigma: found nan"),
        (IMAGE, "25", {}, r"sigma: found '25'"),
        (IMAGE, 1e6, {}, r"sigma: found 1e\+06, need at most \d+"),
        (IMAGE[:8], 20, {}, r"image: found shape \(8, 40\), need at least 11 × 11"),
        (IMAGE[None], 20, {}, r"image: found shape \(1, 30, 40\), need \(y, x\)"),
        (IMAGE + 1j, 20, {}, r"image: found values of type complex128"),
        (WITH_INF, 20, {}, r"image: found infinite values"),
        (WITH_NAN[:, :12], None, {}, r"sigma: no pixel is known with all that surround it"),
        (IMAGE * np.nan, 20, {}, r"found all pixels missing"),
        (IMAGE, 20, {"n_atom": 3}, r"n_atom.*did you mean 'n_atoms'\?"),
        (IMAGE, 20, {"diameter": 2}, r"diameter: found 2"),
        (IMAGE, 20, {"resume": True}, r"out: found none"),
        (IMAGE, 20, {"basis": "disc"}, r"basis: unknown 'disc'"),
    ],
)
def test_denoise__refuses(tmp_path, image, sigma, options, message):
    with pytest.raises(DscError, match=message):
        denoise(image, sigma, **options)
    if "resume" not in options:
        with pytest.raises(DscError, match=message):
            denoise(image, sigma, out=tmp_path / "a.zarr", **options)
        assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("image", "mask", "message"),
    [
        (IMAGE, np.zeros((30, 41)), r"mask: found shape \(30, 41\), need \(30, 40\)"),
        (IMAGE, np.ones((30, 40)), r"mask: found all pixels missing"),
        (IMAGE * np.nan, None, r"mask: found all pixels missing"),
        (WITH_INF, None, r"image: found infinite values"),
        (IMAGE[:8], None, r"image: found shape"),
    ],
)
def test_inpaint__refuses(tmp_path, image, mask, message):
    with pytest.raises(DscError, match=message):
        inpaint(image, mask)
    with pytest.raises(DscError, match=message):
        inpaint(image, mask, out=tmp_path / "a.zarr")
    assert not any(tmp_path.iterdir())


def test_inpaint__writes_no_store_without_missing_pixels(tmp_path):
    with pytest.raises(DscError, match="no missing pixel"):
        inpaint(IMAGE, IMAGE < 0, out=tmp_path / "a.zarr")
    assert not any(tmp_path.iterdir())
