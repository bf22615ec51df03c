"""The last step: nearest image, nearest class, support vector machine."""

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dsc
from dsc.engine import open_engine
from dsc.errors import DscError
from dsc.texture import CLASSIFIERS, TextureConfig, chi_square, fit_texture, read_inputs
from dsc.texture import deciding as room
from dsc.texture.deciding import LastStep, cross_validate
from dsc.texture.machine import COSTS, UNTUNED, best_temperature, folds
from dsc.texture.neighbours import probabilities


def groups(seed=0, n_each=6, n_labels=3, n_bins=8, spread=1.0):
    """Histograms of some classes, each around its own, and their labels in a random order."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.repeat(np.arange(n_labels), n_each))
    middles = rng.gamma(1.0, size=(n_labels, n_bins))
    rows = middles[labels] * rng.gamma(10 / spread, spread / 10, (len(labels), n_bins))
    return rows / rows.sum(1, keepdims=True), labels


def decide(kind, rows, labels, queries, n_labels=3):
    step = LastStep(kind, rows, labels, n_labels)
    found = step.decide(chi_square(queries, rows))
    return found, step.probabilities(found.scores)


@pytest.mark.parametrize("kind", CLASSIFIERS)
@given(seed=st.integers(0, 50))
def test_decide__order_of_training_images_does_not_matter(kind, seed):
    rows, labels = groups(seed, n_each=4, spread=4.0)
    queries, _ = groups(seed + 1000, n_each=2)
    order = np.random.default_rng(seed).permutation(len(labels))
    one, first = decide(kind, rows, labels, queries)
    two, second = decide(kind, rows[order], labels[order], queries)
    np.testing.assert_array_equal(one.labels, two.labels)
    np.testing.assert_array_equal(one.distances, two.distances)
    np.testing.assert_array_equal(one.scores, two.scores)
    np.testing.assert_allclose(first, second, rtol=1e-12)


@pytest.mark.parametrize("kind", CLASSIFIERS)
@given(seed=st.integers(0, 50))
def test_decide__images_do_not_matter_to_one_another(kind, seed):
    rows, labels = groups(seed, n_each=3, spread=4.0)
    queries, _ = groups(seed + 1000, n_each=2)
    step = LastStep(kind, rows, labels, 3)
    together = step.decide(chi_square(queries, rows))
    for i, row in enumerate(queries):
        alone = step.decide(chi_square(row[None], rows))
        assert alone.labels[0] == together.labels[i]
        np.testing.assert_allclose(alone.scores[0], together.scores[i], rtol=1e-12)


@pytest.mark.parametrize("kind", CLASSIFIERS)
@given(seed=st.integers(0, 50), n_each=st.integers(1, 5))
def test_probabilities__sum_to_one_and_agree_with_the_class(kind, seed, n_each):
    rows, labels = groups(seed, n_each=n_each, spread=4.0)
    queries, _ = groups(seed + 1000, n_each=2)
    found, chances = decide(kind, rows, labels, queries)
    np.testing.assert_allclose(chances.sum(1), 1)
    assert (chances >= 0).all()
    np.testing.assert_array_equal(chances.argmax(1), found.labels)


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_decide__equal_histograms_have_distance_zero_and_their_class(kind):
    rows, labels = groups(spread=0.1)
    same = np.concatenate([rows[labels == k][:1].repeat(3, axis=0) for k in range(3)])
    found, _ = decide(kind, same, np.repeat(np.arange(3), 3), same)
    np.testing.assert_array_equal(found.labels, np.repeat(np.arange(3), 3))
    assert (found.distances[np.arange(9), found.labels] == 0).all()
    assert (found.distances > 0).sum() == 18


def test_class_nearest__is_the_mean_of_the_three_nearest_of_each_class():
    rows, labels = groups(n_each=5, spread=9.0)
    labels = np.where(np.arange(15) == np.flatnonzero(labels == 2)[0], 2, labels % 2)  # one alone
    queries, _ = groups(1)
    found, _ = decide("class-nearest", rows, labels, queries)
    distances = chi_square(queries, rows)
    for i in range(len(queries)):
        means = [np.mean(sorted(distances[i, labels == k])[:3]) for k in range(3)]
        np.testing.assert_allclose(found.distances[i], means)
        assert found.labels[i] == np.argmin(means)


def test_class_nearest__one_odd_image_does_not_decide():
    rows = np.array([[0.5, 0.5], [0.6, 0.4], [0.55, 0.45], [0.1, 0.9], [0.12, 0.88], [0.51, 0.49]])
    labels = np.array([0, 0, 0, 1, 1, 1])  # the last lies among the others
    query = np.array([[0.51, 0.49]])
    assert decide("nearest", rows, labels, query, 2)[0].labels[0] == 1
    assert decide("class-nearest", rows, labels, query, 2)[0].labels[0] == 0


@pytest.mark.parametrize("n_labels", [2, 4])
def test_svm__is_scikit_learns_with_the_kernel(n_labels):
    from sklearn.svm import SVC

    rows, labels = groups(3, n_each=8, n_labels=n_labels, spread=8.0)
    queries, truth = groups(3, n_each=8, n_labels=n_labels, spread=4.0)
    step = LastStep("svm", rows, labels, n_labels)
    found = step.decide(chi_square(queries, rows))
    own = chi_square(rows, rows)
    scale = own[~np.eye(len(rows), dtype=bool)].mean()
    machine = SVC(kernel="precomputed", C=step.machine.cost, break_ties=n_labels > 2)
    machine.fit(np.exp(-own / scale), labels)
    expected = machine.predict(np.exp(-chi_square(queries, rows) / scale))
    np.testing.assert_array_equal(found.labels, expected)
    assert step.machine.cost in COSTS
    assert (found.labels == truth).mean() > 0.8


def test_svm__cost_is_the_best_of_cross_validation(monkeypatch):
    from dsc.texture import machine

    rows, labels = groups(5, n_each=8, spread=30.0)
    right = {}
    for cost in COSTS:
        monkeypatch.setattr(machine, "COSTS", (cost,))
        made = LastStep("svm", rows, labels, 3).machine
        kernel = np.exp(-chi_square(rows, rows)[np.ix_(made.order, made.order)] / made.scale)
        known = labels[made.order]
        scores = machine._held_out_scores(machine.import_svc(), kernel, known, folds(known), cost)
        right[cost] = (scores.argmax(1) == known).sum()
    assert len(set(right.values())) > 1
    monkeypatch.setattr(machine, "COSTS", COSTS)
    cost = LastStep("svm", rows, labels, 3).machine.cost
    assert cost == min(c for c in COSTS if right[c] == max(right.values()))


def test_svm__classes_of_one_image_are_not_tuned():
    rows, _ = groups(n_each=1)
    made = LastStep("svm", rows, np.arange(3), 3).machine
    assert (made.cost, made.temperature) == (UNTUNED, 1.0)


def test_svm__equal_histograms_everywhere_do_not_break_it():
    rows = np.full((6, 4), 0.25)
    found, chances = decide("svm", rows, np.array([0, 0, 1, 1, 2, 2]), rows)
    assert np.isfinite(found.scores).all()
    np.testing.assert_allclose(chances.sum(1), 1)


@given(sizes=st.lists(st.integers(1, 14), min_size=2, max_size=4))
def test_folds__every_class_stays_whatever_is_held_out(sizes):
    labels = np.repeat(np.arange(len(sizes)), sizes)
    fold = folds(labels)
    assert ((fold == -1) == (np.array(sizes)[labels] == 1)).all()
    for number in range(fold.max() + 1):
        assert set(labels[fold != number]) == set(labels)


def test_temperature__finds_the_one_that_labels_were_drawn_with():
    rng = np.random.default_rng(0)
    scores = 3 * rng.normal(size=(4000, 3))
    chances = probabilities(-scores, 2.0)
    truth = np.array([rng.choice(3, p=p) for p in chances])
    assert best_temperature(scores, truth) == pytest.approx(2.0, rel=0.15)


def test_temperature__of_images_that_are_all_right_is_not_too_sure():
    truth = np.arange(30) % 3
    scores = np.where(truth[:, None] == np.arange(3), 1.0, -1.0)
    chances = probabilities(-scores, best_temperature(scores, truth))
    np.testing.assert_allclose(chances.max(1), 31 / 32, atol=1e-3)


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_cross_validate__judges_the_classifier(kind):
    rows, labels = groups(2, n_each=6, spread=12.0)
    found = cross_validate(rows, labels, 0.5, 4, 1, kind)
    distances = chi_square(rows, rows)
    for repeat in range(4):
        rng = np.random.default_rng([1, repeat])
        kept = np.zeros(len(labels), bool)
        for label in range(3):
            kept[rng.permutation(np.flatnonzero(labels == label))[:3]] = True
        step = LastStep(kind, rows[kept], labels[kept], 3)
        given = step.decide(distances[np.ix_(~kept, kept)]).labels
        assert found[repeat] == (given == labels[~kept]).mean()


# --- as an option -------------------------------------------------------------------------------

OPTIONS = {"n_components": 2, "diameter": 7, "max_iter": 1, "patches_per_image": 60, "stride": 3}


@pytest.fixture(scope="module")
def images():
    """Waves of three lengths with noise: 9 images, and their classes."""
    rng = np.random.default_rng(0)
    y, _ = np.mgrid[:32, :32]
    waves = [np.sin(y * f + p) for f in (0.5, 1.0, 1.6) for p in (0, 1, 2)]
    return [w + 0.4 * rng.normal(size=w.shape) for w in waves], list("aaabbbccc")


@pytest.fixture(scope="module", params=CLASSIFIERS)
def fitted(request, images):
    return dsc.TextureClassifier(**OPTIONS, classifier=request.param).fit(*images)


def test_classifier__is_kept_in_the_store(fitted, images, tmp_path):
    queries = [image.T for image in images[0]]
    fitted.save(tmp_path / "model.zarr")
    again = dsc.TextureClassifier.load(tmp_path / "model.zarr")
    assert again.classifier == fitted.classifier
    np.testing.assert_array_equal(again.predict_proba(queries), fitted.predict_proba(queries))


def test_classifier__changes_nothing_but_the_last_step(fitted, images):
    plain = dsc.TextureClassifier(**OPTIONS).fit(*images)
    assert plain.classifier == "class-nearest"
    assert plain.model_.sha256 == fitted.model_.sha256
    np.testing.assert_array_equal(plain.transform(images[0]), fitted.transform(images[0]))


def test_classifier__predicts_the_most_likely_class(fitted, images):
    queries = [image.T for image in images[0]]
    chances = fitted.predict_proba(queries)
    np.testing.assert_allclose(chances.sum(1), 1)
    np.testing.assert_array_equal(fitted.classes_[chances.argmax(1)], fitted.predict(queries))
    assert fitted.score(queries, images[1]) == 1


def test_svm__without_scikit_learn_is_refused_before_anything_is_learned(images, monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.svm", None)
    monkeypatch.setattr(room, "learn_machine", None)
    data = read_inputs(*images)
    with open_engine("synchronous") as engine, pytest.raises(DscError, match=r"dsc\[sklearn\]"):
        fit_texture(data, TextureConfig(n_atoms=2, diameter=7, classifier="svm"), engine)


def test_classifier__unknown_ones_are_refused():
    with pytest.raises(DscError, match=r"classifier.*'svn'.*did you mean 'svm'"):
        TextureConfig(classifier="svn")
