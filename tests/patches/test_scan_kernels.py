"""The compiled loops of extraction, beside what they are in NumPy."""

import hashlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsc.patches import kernels
from dsc.patches.scan import SURVEYED, survey


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 99),
    first=st.integers(0, 50),
    n_windows=st.integers(1, 90),
    n_x=st.integers(1, 23),
    stride=st.integers(1, 5),
    margin=st.integers(0, 3),
    share=st.sampled_from([0.0, 0.1, 0.9, 1.0]),
)
def test_locate__is_flatnonzero_and_divmod(seed, first, n_windows, n_x, stride, margin, share):
    kept = np.random.default_rng(seed).random(n_windows) < share
    rows, columns = np.divmod(np.flatnonzero(kept) + first, n_x)
    y, x = np.full((2, len(rows)), -1, np.int32)
    kernels.locate(np.packbits(kept), first, n_x, margin, stride, y, x)
    np.testing.assert_array_equal(y, margin + stride * rows)
    np.testing.assert_array_equal(x, margin + stride * columns)


@pytest.mark.parametrize("stride", [1, 2, 3, 4, 5, 7, 9])
@pytest.mark.parametrize("side", [3, 4, 6, 7])
def test_keep_windows__is_numpys(side, stride):
    image = np.random.default_rng(side).random((41, 53), dtype=np.float32)
    windows = np.lib.stride_tricks.sliding_window_view(image, (side, side))[::stride, ::stride]
    deviation = windows.astype(np.float64).std(axis=(2, 3), ddof=1)
    limit = float(np.median(deviation)) + 1e-9
    found = np.empty(deviation.shape, np.bool_)
    kernels.keep_windows(image, side, stride, limit, found)
    np.testing.assert_array_equal(found, deviation > limit)


@pytest.mark.parametrize("width", [7, SURVEYED // 3, SURVEYED + 5])
def test_survey__is_of_the_whole_tile(width):
    large = np.random.default_rng(0).normal(size=(11, width + 4)).astype(np.float32)
    tile = large[:, 2 : width + 2]
    whole = hashlib.sha256(np.ascontiguousarray(tile).tobytes()).hexdigest()
    assert survey(tile) == (whole, tile.min(), tile.max())
    large[9, 5] = np.nan
    assert np.isnan(survey(tile)[1:]).all()
