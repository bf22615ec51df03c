"""Chi-square neighbours against loops written out."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dsc.errors import DscError
from dsc.texture.deciding import cross_validate
from dsc.texture.neighbours import chi_square, nearest, own_distance, probabilities


@st.composite
def histogram_pairs(draw):
    n_bins = draw(st.integers(1, 6))
    values = st.one_of(st.just(0.0), st.floats(0, 1), st.floats(0, 1e300))
    return [
        draw(hnp.arrays(np.float64, (draw(st.integers(0, 5)), n_bins), elements=values))
        for _ in range(2)
    ]


def slow_chi_square(a, b):
    out = np.zeros((len(a), len(b)))
    for i, x in enumerate(a.tolist()):
        for j, y in enumerate(b.tolist()):
            out[i, j] = sum(
                abs(p - q) * (abs(p - q) / (p + q)) for p, q in zip(x, y, strict=True) if p + q
            )
    return out


@given(pair=histogram_pairs())
def test_chi_square__equals_the_loops(pair):
    a, b = pair
    np.testing.assert_allclose(chi_square(a, b), slow_chi_square(a, b), rtol=1e-12)


@given(pair=histogram_pairs())
def test_chi_square__is_symmetric_to_the_bit_and_zero_on_itself(pair):
    a, b = pair
    np.testing.assert_array_equal(chi_square(a, b), chi_square(b, a).T)
    assert not np.diag(chi_square(a, a)).any()


def test_chi_square__a_row_does_not_depend_on_the_others():
    rng = np.random.default_rng(0)
    a, b = rng.random((600, 7)), rng.random((500, 7))  # more than one piece
    whole = chi_square(a, b)
    np.testing.assert_array_equal(whole[300:317, 20:], chi_square(a[300:317], b[20:]))
    np.testing.assert_array_equal(whole[-1:], chi_square(a[-1:], b))


def test_chi_square__of_disjoint_histograms_is_two():
    np.testing.assert_array_equal(chi_square([[1, 0, 0]], [[0, 1, 0], [1, 0, 0]]), [[2, 0]])


def test_chi_square__takes_little_more_memory_than_its_result():
    a = np.random.default_rng(0).random((3000, 60))
    tracemalloc.start()
    try:
        result = chi_square(a, a[:1000])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < result.nbytes + 8e6  # all bins at once would be 1.4 GB


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ([[1.0, -1.0]], [[1.0, 0.0]], "a: found negative"),
        ([[1.0, 0.0]], [[np.nan, 0.0]], "b: found negative or infinite values or NaN"),
        ([1.0, 0.0], [[np.inf, 0.0]], r"a: found shape \(2,\).*; b: found negative"),
        ([[1.0, 0.0]], [[1.0]], "found 2 and 1 bins"),
    ],
)
def test_chi_square__refuses_what_is_no_histogram(a, b, expected):
    with pytest.raises(DscError, match=expected):
        chi_square(a, b)


@given(data=st.data(), n=st.integers(0, 4), m=st.integers(1, 6), n_labels=st.integers(1, 4))
def test_nearest__equals_the_loops(data, n, m, n_labels):
    few = st.sampled_from([0.0, 0.5, 1.0, 2.0])  # many ties
    distances = data.draw(hnp.arrays(np.float64, (n, m), elements=few))
    labels = data.draw(hnp.arrays(np.int64, m, elements=st.integers(0, n_labels - 1)))
    predicted, by_class = nearest(distances, labels, n_labels)
    assert by_class.shape == (n, n_labels)
    for i, row in enumerate(distances.tolist()):
        assert predicted[i] == labels[row.index(min(row))]
        for label in range(n_labels):
            some = [d for d, known in zip(row, labels, strict=True) if known == label]
            assert by_class[i, label] == min(some, default=np.inf)


@pytest.mark.parametrize(
    ("distances", "labels", "n_labels", "expected"),
    [
        ([[1.0, 2.0]], [0], 1, r"labels: found 1, need one per column \(2\)"),
        ([[1.0, np.nan]], [0, 3], 2, r"distances: found NaN; labels: found 3, need less than"),
        ([1.0, 2.0], [0, 0], 1, r"distances: found shape \(2,\)"),
        ([[]], [], 1, r"distances: found shape \(1, 0\)"),
        ([[1.0]], [-1], 1, "labels: found -1"),
        ([[1.0]], [0.0], 1, "labels: found float64"),
    ],
)
def test_nearest__refuses_what_does_not_fit(distances, labels, n_labels, expected):
    with pytest.raises(DscError, match=expected):
        nearest(distances, labels, n_labels)


def blobs(per_class, spread, n_bins=6, seed=0):
    """Histograms around a corner per class, and their labels, mixed."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.repeat(np.arange(len(per_class)), per_class))
    noise = rng.dirichlet(np.ones(n_bins), len(labels))
    return (1 - spread) * np.eye(n_bins)[labels] + spread * noise, labels


def slow_cross_validation(histograms, labels, held_out, repeat, seed):
    """One repeat, with the choice of neighbours as documented."""
    rng = np.random.default_rng([seed, repeat])
    kept = []
    for label in sorted(set(labels.tolist())):
        some = [i for i, known in enumerate(labels.tolist()) if known == label]
        kept += rng.permutation(some)[: max(1, round(len(some) * (1 - held_out)))].tolist()
    rest = [i for i in range(len(labels)) if i not in kept]
    distances = slow_chi_square(histograms, histograms)
    right = [labels[min(sorted(kept), key=lambda k: distances[i, k])] == labels[i] for i in rest]
    return sum(right) / len(rest)


@pytest.mark.parametrize(("held_out", "seed"), [(0.88, 0), (0.5, 0), (0.5, 4)])
def test_cross_validate__equals_the_loops(held_out, seed):
    histograms, labels = blobs((20, 9, 1), spread=0.9)
    found = cross_validate(histograms, labels, held_out, repeats=5, seed=seed)
    expected = [slow_cross_validation(histograms, labels, held_out, r, seed) for r in range(5)]
    np.testing.assert_array_equal(found, expected)
    assert 0 < found.mean() < 1
    assert found.std() > 0


def test_cross_validate__repeats_are_independent_of_their_number():
    histograms, labels = blobs((20, 20), spread=0.9)
    few, many = (cross_validate(histograms, labels, repeats=n) for n in (3, 10))
    np.testing.assert_array_equal(few, many[:3])
    assert cross_validate(histograms, labels).shape == (100,)


def test_cross_validate__every_class_keeps_a_neighbour():
    histograms, labels = blobs((2, 3, 4), spread=0.0)  # 0.12 of these rounds to none
    assert cross_validate(histograms, labels).mean() == 1.0


def test_cross_validate__labels_without_meaning_give_chance():
    rng = np.random.default_rng(0)
    histograms = rng.dirichlet(np.ones(6), 200)
    found = cross_validate(histograms, np.arange(200) % 4)
    assert found.mean() == pytest.approx(0.25, abs=0.04)


def test_cross_validate__refuses_all_that_is_wrong():
    histograms, labels = blobs((3, 3), spread=0.5)
    with pytest.raises(DscError, match=r"labels: found 5.*held_out: .*repeats: found 0.*seed: "):
        cross_validate(histograms, labels[:5], held_out=1.0, repeats=0, seed=-1)
    with pytest.raises(DscError, match="holds out none"):
        cross_validate(histograms[:2], [0, 1])
    with pytest.raises(DscError, match="held_out: found nan"):
        cross_validate(histograms, labels, held_out=np.nan)


@pytest.mark.parametrize("seed", range(3))
def test_own_distance__equals_the_loops(seed):
    rng = np.random.default_rng(seed)
    rows, labels = rng.random((9, 4)), np.array([0, 0, 1, 1, 1, 2, 2, 2, 3])
    distances = chi_square(rows, rows)
    nearest_own = [
        min(distances[i, j] for j in range(9) if i != j and labels[i] == labels[j])
        for i in range(8)  # the last is alone in its class
    ]
    assert own_distance(rows, labels) == pytest.approx(np.mean(nearest_own), rel=1e-12)


def test_own_distance__of_images_alone_is_to_any_other():
    rows = np.random.default_rng(0).random((4, 3))
    distances = chi_square(rows, rows) + np.diag([np.inf] * 4)
    assert own_distance(rows, range(4)) == pytest.approx(distances.min(1).mean(), rel=1e-12)


def test_probabilities__are_the_exponential_law():
    distances = np.random.default_rng(0).random((5, 3))
    expected = np.exp(-distances / 0.3)
    expected /= expected.sum(1, keepdims=True)
    np.testing.assert_allclose(probabilities(distances, 0.3), expected, rtol=1e-12)


def test_probabilities__far_classes_have_none():
    found = probabilities(np.array([[5000.0, 5001.0, np.inf], [2.0, 1.0, 2.0]]), 1e-3)
    np.testing.assert_allclose(found, [[1, 0, 0], [0, 1, 0]], atol=1e-300)


def test_probabilities__at_no_scale_the_nearest_share_all():
    found = probabilities(np.array([[0.5, 0.2, 0.2], [0.0, 1.0, 2.0]]), 0.0)
    np.testing.assert_array_equal(found, [[0, 0.5, 0.5], [1, 0, 0]])
