"""The drawn suite."""

from collections import Counter

import numpy as np
import pytest
from scipy import ndimage

from dsc.errors import DscError
from dsc.experiments.textures import CLASSES, draw_texture, write_suite
from dsc.images.convert import to_grey
from dsc.images.formats import FilePage, decode
from dsc.texture.lbp import lbp_histogram
from dsc.texture.neighbours import chi_square, nearest
from dsc.texture.outex import is_suite, read_suite


@pytest.fixture(scope="module")
def suite(tmp_path_factory):
    return read_suite(write_suite(tmp_path_factory.mktemp("drawn") / "suite"))


def accuracy(suite, feature):
    train, test = (
        np.array([feature(decode(FilePage(sample.path, 0))) for sample in split])
        for split in (suite.train, suite.test)
    )
    label, truth = (
        np.array([suite.label_names.index(sample.label) for sample in split])
        for split in (suite.train, suite.test)
    )
    found, _ = nearest(chi_square(test, train), label, len(suite.label_names))
    return np.mean(found == truth)


def test_write_suite__training_at_zero_and_test_at_every_angle(suite):
    assert suite.label_names == CLASSES
    assert Counter(s.label for s in suite.train) == dict.fromkeys(CLASSES, 3)
    assert {s.angle for s in suite.train} == {0.0}
    expected = {(name, angle): 2 for name in CLASSES for angle in (0.0, 30.0, 60.0, 90.0)}
    assert Counter((s.label, s.angle) for s in suite.test) == expected
    assert suite.extra == ()


def test_write_suite__options_have_their_effect(tmp_path):
    root = write_suite(tmp_path / "s", n_train=1, n_test=3, angles=(22.5,), size=32)
    assert is_suite(root)
    suite = read_suite(root)
    assert (len(suite.train), len(suite.test)) == (4, 12)
    assert {s.angle for s in suite.test} == {22.5}
    assert decode(FilePage(suite.train[0].path, 0)).shape == (32, 32)
    assert decode(FilePage(suite.train[0].path, 0)).dtype == np.uint8


def test_write_suite__same_seed_same_files(tmp_path):
    roots = [
        write_suite(tmp_path / str(n), 1, 1, (0,), 16, seed) for n, seed in enumerate([5, 5, 6])
    ]
    files = [{p.relative_to(r): p.read_bytes() for p in r.rglob("*.*")} for r in roots]
    assert files[0] == files[1]
    assert files[0].keys() == files[2].keys()
    assert files[0] != files[2]


def test_write_suite__no_two_images_are_the_same(suite):
    images = {decode(FilePage(sample.path, 0)).tobytes() for sample in suite.train + suite.test}
    assert len(images) == len(suite.train) + len(suite.test)


def test_write_suite__grey_values_tell_nothing(suite):
    for sample in suite.train + suite.test:
        counts = np.bincount(decode(FilePage(sample.path, 0)).ravel(), minlength=256)
        np.testing.assert_array_equal(counts, 64 * 64 // 256)


def test_write_suite__a_rotation_invariant_method_tells_the_classes_apart(suite):
    assert accuracy(suite, lambda pixels: lbp_histogram(to_grey(pixels))) == 1.0


def test_write_suite__a_method_that_knows_no_rotation_does_not(suite):
    def upright(pixels):  # how grey values follow each other along rows and along columns
        return np.concatenate(
            [
                np.histogram(np.diff(pixels.astype(int), axis=axis), 16, (-256, 256))[0]
                for axis in (0, 1)
            ]
        )

    assert accuracy(suite, upright) < 0.8


@pytest.mark.parametrize("name", CLASSES)
def test_draw_texture__a_quarter_turn_is_rot90(name):
    for angle in (0, 20):
        still, turned = (
            draw_texture(name, 31, a, np.random.default_rng(1)) for a in (angle, angle + 90)
        )
        np.testing.assert_allclose(turned, np.rot90(still), atol=1e-9)
        assert still.std() > 0.1


@pytest.mark.parametrize("name", CLASSES)
def test_draw_texture__any_turn_is_that_of_the_image(name):
    still, turned = (draw_texture(name, 65, a, np.random.default_rng(1)) for a in (0, 30))
    expected = ndimage.rotate(still, 30, reshape=False, order=5)
    middle = slice(20, -20)  # far from what the image does not show
    error = turned[middle, middle] - expected[middle, middle]
    assert error.std() < 0.02 * turned.std()


def test_write_suite__refuses_all_that_is_wrong(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(DscError) as caught:
        write_suite(tmp_path, n_train=0, n_test=1.5, angles=(), size=8, seed=-1)
    for name in ("folder", "n_train", "n_test", "size", "seed", "angles"):
        assert f"{name}: found" in str(caught.value)
    with pytest.raises(DscError, match="angles"):
        write_suite(tmp_path / "s", angles=(np.nan,))
    assert not (tmp_path / "s").exists()
