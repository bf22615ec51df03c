"""The one cutter: grids of windows."""

from __future__ import annotations

import numpy as np
import pytest

from dsc.basis import disk_mask
from dsc.patches import ArrayPatches, PatchConfig, cut_grid, extract_patches


@pytest.mark.parametrize("stride", [1, 2, 5])
@pytest.mark.parametrize("diameter", [3, 8, 11])
@pytest.mark.parametrize("order", ["C", "F"])
def test_cut_grid__is_plain_slicing(image, diameter, stride, order):
    pixels = np.asarray(image("camera")[:30, :41], np.float32, order=order)
    before = pixels.copy()
    windows = np.lib.stride_tricks.sliding_window_view(pixels, (diameter, diameter))
    expected = windows[::stride, ::stride][:, :, disk_mask(diameter)]
    found = cut_grid(pixels, diameter, stride)
    np.testing.assert_array_equal(found, expected.reshape(-1, expected.shape[-1]))
    np.testing.assert_array_equal(pixels, before)


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("unit", [False, True])
def test_cut__same_bits_from_a_grid_a_store_and_an_array(tmp_path, image, center, unit):
    pixels = image("camera")[:40, :50].astype(np.float32)
    config = PatchConfig(stride=3, center=center, unit=unit)
    stored = extract_patches(pixels, tmp_path / "a", config)
    windows = np.lib.stride_tricks.sliding_window_view(pixels, (11, 11))[::3, ::3]
    array = ArrayPatches(windows.reshape(-1, 11, 11), center=center, unit=unit)
    found = cut_grid(pixels, 11, 3, center, unit)
    np.testing.assert_array_equal(found, stored.pixels(0, stored.n_patches))
    np.testing.assert_array_equal(found, array.pixels(0, array.n_patches))
