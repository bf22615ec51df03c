"""Denoising and inpainting: what they gain, what they leave alone, and the same bits."""

import numpy as np
import pytest
from skimage import data

import dsc
from dsc import DscError, denoise, inpaint
from dsc.restore import estimate_noise
from dsc.restore.pixels import Scale
from dsc.restore.tiles import tile_places, with_margin

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


def test_inpaint__does_not_look_at_missing_pixels(crop, holes, filled):
    other = np.where(holes, np.random.default_rng(2).integers(0, 255, crop.shape), crop)
    assert (inpaint(other.astype(np.uint8), holes, **FAST) == filled).all()


def test_inpaint__without_missing_pixels_and_of_a_constant(crop):
    assert (inpaint(crop, np.zeros_like(crop)) == crop).all()
    holes = np.eye(30, dtype=bool)
    assert (inpaint(np.full((30, 30), 9, np.uint8), holes) == 9).all()


# --- the same bits ------------------------------------------------------------------------------


@pytest.mark.parametrize("tile", [23, 64])
def test_tiles__give_the_bits_of_the_whole(crop, holes, noisy, clean, filled, tile):
    assert (denoise(noisy, SIGMA, tile=tile, **FAST) == clean).all()
    assert (inpaint(crop, holes, tile=tile, **FAST) == filled).all()


def test_schedulers__give_the_same_bits(crop, holes, noisy, clean, filled):
    how = {"scheduler": "synchronous", "tile": 50, **FAST}
    assert (denoise(noisy, SIGMA, **how) == clean).all()
    assert (inpaint(crop, holes, **how) == filled).all()
    how = {"scheduler": "processes", "n_workers": 1, "tile": 50, **FAST}
    assert (denoise(noisy, SIGMA, **how) == clean).all()


@pytest.mark.parametrize("margin", [0, 3, 20])
def test_with_margin__is_a_window_of_the_mirrored_image(margin):
    image = np.random.default_rng(0).random((9, 13))
    padded = np.pad(image, margin, mode="symmetric")
    for y, x in tile_places(image.shape, 4):
        window = padded[y.start : y.stop + 2 * margin, x.start : x.stop + 2 * margin]
        assert (with_margin(image, (y, x), margin) == window).all()


# --- mistakes -----------------------------------------------------------------------------------

IMAGE = np.random.default_rng(0).normal(100, 20, (30, 40))
WITH_NAN = np.where(np.eye(30, 40), np.nan, IMAGE)
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
        (IMAGE > 100, 20, {}, r"image: found pixels of type bool"),
        (WITH_INF, 20, {}, r"image: found infinite values"),
        (WITH_NAN, 20, {}, r"image: found missing values \(NaN\).*inpaint"),
        (IMAGE, 20, {"tiles": 3}, r"tiles.*did you mean 'tile'\?"),
        (IMAGE, 20, {"tile": 0}, r"tile: found 0"),
        (IMAGE, 20, {"basis": "disc"}, r"basis: unknown 'disc'"),
    ],
)
def test_denoise__refuses(image, sigma, options, message):
    with pytest.raises(DscError, match=message):
        denoise(image, sigma, **options)


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
def test_inpaint__refuses(image, mask, message):
    with pytest.raises(DscError, match=message):
        inpaint(image, mask)
