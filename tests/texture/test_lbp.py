"""Local binary patterns, against a loop over pixels."""

import numpy as np
import pytest

from dsc.errors import DscError
from dsc.texture.lbp import N_BINS, SCALES, lbp_histogram


def slow_histogram(levels, n_points, radius):
    """Uniform patterns: bilinear values on the circle, compared with the middle."""
    counts = np.zeros(n_points + 2)
    angles = 2 * np.pi * np.arange(n_points) / n_points
    dy, dx = np.round(-radius * np.sin(angles), 5), np.round(radius * np.cos(angles), 5)
    n_y, n_x = levels.shape
    for y in range(radius, n_y - radius):
        for x in range(radius, n_x - radius):
            bits = []
            for py, px in zip(y + dy, x + dx, strict=True):
                y0, x0 = int(np.floor(py)), int(np.floor(px))
                y1, x1 = int(np.ceil(py)), int(np.ceil(px))
                ty, tx = py - y0, px - x0
                top = (1 - tx) * levels[y0, x0] + tx * levels[y0, x1]
                bottom = (1 - tx) * levels[y1, x0] + tx * levels[y1, x1]
                bits.append(int((1 - ty) * top + ty * bottom >= levels[y, x]))
            changes = sum(a != b for a, b in zip(bits, bits[1:] + bits[:1], strict=True))
            counts[sum(bits) if changes <= 2 else n_points + 1] += 1
    return counts / counts.sum()


def test_lbp__equals_the_loop_inside_the_image():
    grey = np.random.default_rng(0).random((17, 15)).astype(np.float32)
    levels = np.rint(255 * grey.astype(np.float64))
    expected = np.concatenate([slow_histogram(levels, *scale) for scale in SCALES]) / len(SCALES)
    found = lbp_histogram(grey)
    assert found.shape == (N_BINS,)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert found.sum() == pytest.approx(1)


def test_lbp__of_a_flat_image_is_all_ones():
    found = lbp_histogram(np.full((16, 16), 0.3, np.float32))
    starts = np.cumsum([0] + [n_points + 2 for n_points, _ in SCALES])[:-1]
    expected = np.zeros(N_BINS)
    expected[[start + n_points for start, (n_points, _) in zip(starts, SCALES, strict=True)]] = 1
    np.testing.assert_allclose(found, expected / len(SCALES))


def test_lbp__quarter_turns_change_next_to_nothing(image):
    grey = image("brick")[:150, :130].astype(np.float32)
    for k in (1, 2, 3):  # values on the circle that equal the middle but for rounding may flip
        np.testing.assert_allclose(lbp_histogram(np.rot90(grey, k)), lbp_histogram(grey), atol=1e-3)


def test_lbp__values_of_one_level_are_equal(image):
    levels = np.rint(255 * image("grass")[:64, :64])
    shaken = levels + np.random.default_rng(0).uniform(-0.4, 0.4, levels.shape)
    np.testing.assert_array_equal(
        lbp_histogram((shaken / 255).clip(0, 1).astype(np.float32)),
        lbp_histogram((levels / 255).astype(np.float32)),
    )


def test_lbp__tells_textures_apart(image):
    brick, grass = image("brick").astype(np.float32), image("grass").astype(np.float32)
    halves = [lbp_histogram(p) for p in (brick[:, :256], brick[:, 256:], grass[:, :256])]
    assert np.abs(halves[0] - halves[1]).sum() < 0.3 * np.abs(halves[0] - halves[2]).sum()


@pytest.mark.parametrize(
    ("grey", "expected"),
    [
        (np.zeros((6, 20), np.float32), r"found shape \(6, 20\), need .* at least 7 × 7"),
        (np.zeros((20, 20, 3), np.float32), r"found shape \(20, 20, 3\)"),
        (np.full((20, 20), 100, np.float32), "outside 0 to 1"),
        (np.full((20, 20), np.nan, np.float32), "or NaN"),
    ],
)
def test_lbp__refuses_what_is_no_grey_image(grey, expected):
    with pytest.raises(DscError, match=expected):
        lbp_histogram(grey)
