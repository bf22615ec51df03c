"""The rule of `texture-choices`, and the views that it judges by."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from dsc.experiments import texture_suites as views
from dsc.experiments.texture_choices import (
    DEFAULT,
    FLOOR,
    Choice,
    Tally,
    joined,
    judge,
    judge_weights,
)
from dsc.texture import chi_square, histograms_of, read_inputs

CHEAP = Choice((7,), False, "both", "nearest")
DEAR = Choice((7, 15), False, "both", "nearest")
MACHINE = Choice((15,), False, "both", "svm")
CHOICES = (DEFAULT, CHEAP, DEAR, MACHINE)
N = 40
ONCE = np.array([1])


def tally(suite="suite", **n_wrong):
    """Of a view, the first so many images being wrong once."""
    wrong = np.zeros((len(CHOICES), 1, N), int)
    for place, name in enumerate(("default", "cheap", "dear", "machine")):
        some = n_wrong.get(name, ())
        wrong[place, 0, list(some)] = 1
    return Tally(suite, CHOICES, wrong, ONCE)


def test_loss__is_relative_to_the_default_in_every_view():
    rng = np.random.default_rng(0)
    wrong = rng.integers(0, 3, (4, 2, N))
    found = Tally("suite", CHOICES, wrong, np.array([2, 5])).losses()
    assert found.shape == (4, N)
    for choice, image in product(range(4), range(N)):
        expected = sum(
            wrong[choice, v, image] / (wrong[0, v].sum() + FLOOR * n * N)
            for v, n in enumerate((2, 5))
        )
        assert found[choice, image] == pytest.approx(expected)


def test_rule__the_default_stays_within_one_standard_error_of_the_best():
    found = judge([tally(default=range(5), cheap=range(4), dear=range(9), machine=range(9))])
    assert (found.best, found.chosen) == (CHEAP, DEFAULT)
    more, error = found.more[DEFAULT]
    d = np.zeros(N)
    d[4] = 1 / (5 + FLOOR * N)
    assert (more, error) == (pytest.approx(d.sum()), pytest.approx(np.sqrt(N) * d.std(ddof=1)))
    assert more <= error


def test_rule__of_those_near_the_best_the_cheapest_is_taken():
    found = judge([tally(default=range(20), cheap=range(5), dear=range(4), machine=range(30))])
    assert (found.best, found.chosen) == (DEAR, CHEAP)


def test_rule__what_loses_clearly_on_one_suite_is_not_taken():
    good = tally(default=range(20), cheap=(), dear=range(3))
    bad = tally("other", default=range(3), cheap=range(9), dear=range(3))
    found = judge([good, bad])
    assert CHEAP in found.refused
    assert found.chosen == found.best == DEAR


def test_rule__a_machine_is_no_default():
    found = judge([tally(default=range(20), cheap=range(30), dear=range(30), machine=())])
    assert MACHINE in found.refused
    assert found.chosen == DEFAULT
    assert found.more[MACHINE][0] < 0


def test_rule__of_weights_equal_ones_stay_unless_others_are_clearly_better():
    equal, half, twice = (replace(DEAR, weight=weight) for weight in (1.0, 0.5, 2.0))
    for n_fewer, first in ((1, equal), (9, twice)):
        wrong = np.zeros((4, 1, N), int)
        wrong[:, 0, :12] = 1
        wrong[3, 0, :n_fewer] = 0  # twice
        found = judge_weights([Tally("suite", (DEFAULT, equal, half, twice), wrong, ONCE)], DEAR)
        assert found[0] == first
        assert set(found) == {equal, half, twice}


def test_rule__weights_do_not_take_part_in_the_choice():
    wrong = np.ones((2, 1, N), int)
    wrong[1] = 0
    found = judge([Tally("suite", (DEFAULT, replace(DEAR, weight=2.0)), wrong, ONCE)])
    assert found.best == found.chosen == DEFAULT
    assert list(found.loss) == [DEFAULT]


@pytest.mark.parametrize("kind", ["both", "classes", "atoms"])
def test_joined__distances_are_those_of_joined_histograms(kind):
    rng = np.random.default_rng(0)
    known, seen = (rng.integers(0, 9, (3, n, 4, 5)) for n in (6, 7))
    apart = [
        chi_square(histograms_of(a[None], kind), histograms_of(b[None], kind))
        for a, b in zip(seen, known, strict=True)
    ]
    expected = chi_square(histograms_of(seen, kind), histograms_of(known, kind))
    np.testing.assert_allclose(joined(apart), expected, rtol=1e-12)
    np.testing.assert_allclose(joined(apart, 4.0), (4 * apart[0] + apart[1] + apart[2]) / 6)


def test_resampled__rotated_and_as_large_is_the_middle_itself():
    grey = np.random.default_rng(0).random((64, 64)).astype(np.float32)
    same = views.resampled(grey, 0.0, 1.0)
    begin = (64 - len(same)) / 2
    assert begin % 1 in (0, 0.5)
    quarter = views.resampled(grey, 90.0, 1.0)
    off = [np.abs(np.rot90(same, n) - quarter).max() for n in (1, -1)]
    assert min(off) < 1e-5


@pytest.mark.parametrize("scale", [0.75, 4 / 3])
def test_resampled__a_wave_is_as_much_longer(scale):
    y, _ = np.mgrid[:128, :128].astype(float)
    wave = np.sin(2 * np.pi * y / 12)
    found = views.resampled(wave, 0.0, scale)
    power = np.abs(np.fft.rfft(found - found.mean(), axis=0)).sum(1)
    assert len(found) / power.argmax() == pytest.approx(12 * scale, rel=0.15)


def test_relit__stays_an_image():
    grey = np.random.default_rng(0).random((20, 30))
    for gamma in views.GAMMAS:
        found = views.relit(grey, gamma)
        assert found.min() >= 0
        assert found.max() <= 1
    np.testing.assert_allclose(
        views.relit(np.full((4, 5), 0.25), 0.5), np.tile(np.linspace(1.3, 0.5, 5) / 2, (4, 1))
    )


def test_halves__are_apart_and_both_in_turn():
    squares = views.free_squares(2)
    first, second = views._halves("free", squares)
    for one in (first, second):
        names = [image.name for image in (*one.known.images, *one.unseen.images)]
        assert len(set(names)) == len(names) == len(squares)
        assert sorted(set(one.known.labels)) == sorted(set(one.unseen.labels))
    assert [i.name for i in first.known.images] == [i.name for i in second.unseen.images]
    seen = {name for name, _ in first.views()}
    assert seen == set(views.VIEWS)


def test_squares__are_read_as_they_are():
    grey = np.zeros((8, 8), np.float32)
    grey[2] = 1
    assert np.array_equal(read_inputs([grey], ["a"]).images[0].whole(), grey)
