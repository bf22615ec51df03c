"""Two scales: white noise keeps its variance, coarse structure comes from the halved image."""

import numpy as np
import pytest

from dsc.restore.scales import LOST, correct, halve


def slow_correct(fine, coarse):
    """The same, pixel by pixel."""
    halved = np.array(
        [
            [fine[2 * i : 2 * i + 2, 2 * j : 2 * j + 2].sum() / 2 for j in range(coarse.shape[1])]
            for i in range(coarse.shape[0])
        ]
    )
    difference = coarse - halved
    weights = {-1: 0.25, 0: 0.5, 1: 0.25}
    smooth = {
        (i, j): sum(
            weights[a] * weights[b] * difference[i + a, j + b] for a in weights for b in weights
        )
        for i in range(1, coarse.shape[0] - 1)
        for j in range(1, coarse.shape[1] - 1)
    }

    def around(k):
        """The squares next to a pixel, and their weights."""
        return {k // 2: 0.75, k // 2 + (1 if k % 2 else -1): 0.25}

    found = np.full(fine.shape, np.nan)
    for y in range(LOST, 2 * coarse.shape[0] - LOST):
        for x in range(LOST, 2 * coarse.shape[1] - LOST):
            more = sum(
                v * w * smooth[i, j] for i, v in around(y).items() for j, w in around(x).items()
            )
            found[y, x] = fine[y, x] + more / 2
    rows, columns = (slice(LOST, 2 * n - LOST) for n in coarse.shape)
    return found[rows, columns]


@pytest.mark.parametrize("shape", [(16, 20), (17, 15)])
def test_correct__is_the_sum_written_out(shape):
    random = np.random.default_rng(0)
    fine = random.normal(size=shape).astype(np.float32)
    coarse = random.normal(size=(shape[0] // 2, shape[1] // 2)).astype(np.float32)
    np.testing.assert_allclose(correct(fine, coarse), slow_correct(fine, coarse), atol=1e-5)


def test_correct__takes_ramps_from_the_halved_image_and_details_from_the_fine_one():
    y, x = np.mgrid[:32, :32].astype(np.float32)
    ramp, details = 3 * y + x, np.where((x + y) % 2, 1, -1).astype(np.float32)
    found = correct(details, halve(ramp))
    np.testing.assert_allclose(found, (ramp + details)[LOST:-LOST, LOST:-LOST], atol=1e-4)


def test_correct__changes_nothing_where_both_agree():
    fine = np.random.default_rng(0).normal(size=(20, 20, 2)).astype(np.float32)
    assert np.array_equal(correct(fine, halve(fine)), fine[LOST:-LOST, LOST:-LOST])


def test_halve__white_noise_keeps_its_variance():
    noise = np.random.default_rng(0).normal(size=(512, 512)).astype(np.float32)
    assert abs(halve(noise).std() - 1) < 0.01
