"""A mosaic of photographs with known borders."""

import numpy as np
from skimage import data

from dsc.experiments import Options, run_experiment
from dsc.experiments.texture_mosaic import CLASSES, border_distance, make_mosaic


def test_mosaic__is_of_pixels_that_are_not_learned_from():
    mosaic = make_mosaic()
    assert [mosaic.labels.count(name) for name in CLASSES] == [8, 8, 8]
    assert mosaic.image.shape == mosaic.truth.shape == (256, 512)
    for k, name in enumerate(CLASSES):
        photo = np.float32(getattr(data, name)()) / np.float32(255)
        there = mosaic.truth == k
        assert 0.25 < there.mean() < 0.42
        np.testing.assert_array_equal(mosaic.image[there], np.rot90(photo[:, 256:])[there])
        learned = np.block([list(mosaic.train[8 * k + 2 * i :][:2]) for i in range(4)])
        np.testing.assert_array_equal(learned, photo[:, :256])


def test_border_distance__is_to_the_nearest_pixel_of_another_region():
    truth = np.repeat([[0, 0, 0, 1, 1]], 4, axis=0)
    np.testing.assert_array_equal(border_distance(truth), np.repeat([[3, 2, 1, 1, 2]], 4, axis=0))


def test_experiment__a_vote_and_rotation_know_more_pixels():
    found = run_experiment("texture-mosaic", Options(quick=True))
    accuracy = found.numbers["accuracy"]
    assert accuracy["rotational"]["47"]["all"] > 0.7
    assert accuracy["rotational"]["47"]["inside"] > accuracy["rotational"]["47"]["all"]
    assert accuracy["rotational"]["1"]["all"] < accuracy["rotational"]["15"]["all"]
    assert all(finding.holds for finding in found.findings)
    assert found.rows[3][2] == f"{accuracy['rotational']['47']['all']:.4f}"
