"""Images on pages: greys, and directions in color."""

import numpy as np
import pytest

from dsc.report.images import direction_wheel, grey, paint_directions, signed, strength_of


def test_grey__spans_black_to_white_and_clips():
    assert grey(np.array([[-1, 0, 0.5, 1, 2, np.nan]]), 0, 1).tolist() == [[0, 0, 128, 255, 255, 0]]
    assert grey(np.full((2, 2), 3.0), 3, 3).tolist() == [[0, 0], [0, 0]]


def test_signed__zero_is_mid_grey_and_signs_are_opposite():
    shown = signed(np.array([[-2.0, 0, 2]]))
    assert shown.tolist() == [[0, 128, 255]]
    assert signed(np.zeros((1, 1))).tolist() == [[128]]


def test_directions__half_a_rotation_is_the_same_and_a_quarter_is_far():
    degrees = np.array([[10.0, 190, -170, 100]])
    one, same, again, across = paint_directions(degrees, np.ones((1, 4)))[0].astype(int)
    assert one.tolist() == same.tolist() == again.tolist()
    assert np.abs(one - across).max() > 80


def test_directions__weak_is_dark_and_all_hues_are_alike_light():
    degrees = np.linspace(-90, 90, 13)[None]
    assert not paint_directions(degrees, np.zeros(degrees.shape)).any()
    luminance = paint_directions(degrees, np.ones(degrees.shape)) @ [0.2126, 0.7152, 0.0722]
    assert np.ptp(luminance) < 30


def test_wheel__has_the_color_of_a_direction_where_a_line_runs_that_way():
    wheel = direction_wheel(101)
    for degrees in (0, 45, 90, 135):
        y = round(50 - 40 * np.sin(np.radians(degrees)))  # up is to the top
        x = round(50 + 40 * np.cos(np.radians(degrees)))
        expected = paint_directions(np.array([[degrees]]), np.ones((1, 1)))[0, 0]
        assert wheel[y, x, 3] == 255
        assert np.abs(wheel[y, x, :3].astype(int) - expected).max() <= 3
    assert wheel[0, 0, 3] == wheel[50, 50, 3] == 0


def test_strength__is_between_nothing_and_one():
    rng = np.random.default_rng(0)
    maps = {"energy": rng.random((20, 20)), "coherence": rng.random((20, 20))}
    strength = strength_of(maps)
    assert 0 <= strength.min() < strength.max() <= 1
    assert strength_of({**maps, "coherence": np.zeros((20, 20))}).max() == 0
    assert strength_of({**maps, "energy": np.zeros((20, 20))}).max() == pytest.approx(0)


def test_strength__of_a_missing_pixel_is_nothing_and_of_others_as_it_was():
    rng = np.random.default_rng(0)
    maps = {"energy": rng.random((20, 20)), "coherence": rng.random((20, 20))}
    holes = {name: one.copy() for name, one in maps.items()}
    for one in holes.values():
        one[3, 4] = np.nan
    strength = strength_of(holes)
    assert strength[3, 4] == 0
    assert strength.mean() == pytest.approx(strength_of(maps).mean(), rel=0.05)
    assert not paint_directions(np.where(strength, 30.0, np.nan), strength)[3, 4].any()
