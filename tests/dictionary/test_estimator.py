"""`RotationalDictionaryLearning`: the same learner behind the interface of scikit-learn."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler

import dsc
from dsc.dictionary import learn
from dsc.errors import DscError
from dsc.patches import ArrayPatches

OPTIONS = {"n_components": 4, "n_nonzero_coefs": 2, "max_iter": 3}


@pytest.fixture(scope="module")
def X(patches):
    return patches[:600].reshape(600, 49)


@pytest.fixture(scope="module")
def fitted(X):
    return dsc.RotationalDictionaryLearning(**OPTIONS).fit(X)


def test_fit__is_learn(X, fitted):
    expected = learn(X.reshape(-1, 7, 7), 4, 2, n_iterations=3)
    assert fitted.dictionary_.sha256 == expected.sha256
    assert fitted.error_.tolist() == expected.history.tolist()
    assert fitted.n_features_in_ == 49
    assert fitted.components_.shape == (4, 49)
    images = fitted.components_.reshape(4, 7, 7)
    assert (images[:, ~expected.basis.mask] == 0).all()
    np.testing.assert_array_equal(images, np.nan_to_num(expected.atoms_pixels))


def test_fit__returns_itself_and_ignores_y(X, fitted):
    estimator = dsc.RotationalDictionaryLearning(**OPTIONS)
    assert estimator.fit(X, np.arange(600)) is estimator
    np.testing.assert_array_equal(estimator.components_, fitted.components_)


def test_fit__takes_pictures_and_rows(X, fitted):
    again = dsc.RotationalDictionaryLearning(**OPTIONS).fit(X.reshape(600, 7, 7))
    np.testing.assert_array_equal(again.components_, fitted.components_)


@pytest.mark.parametrize(
    ("name", "value", "same_as"),
    [
        ("basis", "annular", {"basis": "annular"}),
        ("basis", "pixels", {"basis": "pixels"}),
        ("update", "mod", {"update": "mod"}),
        ("init", "patches", {"init": "patches"}),
        ("random_state", 7, {"seed": 7}),
        ("n_angles", 12, {"n_angles": 12}),
        ("scheduler", "synchronous", {}),
    ],
)
def test_parameters__mean_what_they_mean_in_learn(X, name, value, same_as):
    found = dsc.RotationalDictionaryLearning(**OPTIONS, **{name: value}).fit(X)
    expected = learn(X.reshape(-1, 7, 7), 4, 2, n_iterations=3, **same_as)
    assert found.dictionary_.sha256 == expected.sha256


@pytest.mark.parametrize("normal", [{"center": True}, {"unit": True}])
def test_parameters__normalise_in_fit_and_transform(X, normal):
    found = dsc.RotationalDictionaryLearning(**OPTIONS, **normal).fit(X)
    source = ArrayPatches(X.reshape(-1, 7, 7), **normal)
    assert found.dictionary_.sha256 == learn(source, 4, 2, n_iterations=3).sha256
    assert found.score(X) == pytest.approx(-found.error_[-1])


def test_transform__is_a_sparse_row_over_atoms_and_angles(X, fitted):
    codes = fitted.transform(X)
    assert sparse.issparse(codes)
    assert codes.shape == (600, 4 * 60)
    assert (np.diff(sparse.csr_array(codes).indptr) <= 2).all()
    expected = fitted.dictionary_.encode(X.reshape(-1, 7, 7)).codes
    for p in range(5):
        dense = np.zeros(240, np.float32)
        for atom, angle, coef in zip(
            expected.atom[p], expected.angle[p], expected.coef[p], strict=True
        ):
            dense[atom * 60 + angle] += coef
        np.testing.assert_array_equal(codes[[p]].toarray()[0], dense)


def test_transform__fit_transform_is_both(X, fitted):
    both = dsc.RotationalDictionaryLearning(**OPTIONS).fit_transform(X)
    assert (both != fitted.transform(X)).nnz == 0


@pytest.mark.parametrize("as_given", [lambda c: c, lambda c: c.toarray(), sparse.csc_array])
def test_inverse_transform__decodes(X, fitted, as_given):
    found = fitted.inverse_transform(as_given(fitted.transform(X)))
    assert found.shape == X.shape
    images = fitted.dictionary_.decode(fitted.dictionary_.encode(X.reshape(-1, 7, 7)).codes)
    np.testing.assert_allclose(found, np.nan_to_num(images).reshape(600, 49), atol=1e-5)


def test_inverse_transform__of_nothing_is_nothing(fitted):
    assert not fitted.inverse_transform(sparse.csr_array((3, 240))).any()


def test_score__is_minus_the_error_of_the_round_trip(X, fitted):
    mask = fitted.dictionary_.basis.mask.ravel()
    back = fitted.inverse_transform(fitted.transform(X))
    error = ((X.astype(np.float64) - back)[:, mask] ** 2).mean()
    assert fitted.score(X) == pytest.approx(-error, rel=1e-4)
    assert fitted.score(X) == pytest.approx(-fitted.error_[-1], rel=1e-9)


def test_params__go_in_and_out():
    estimator = dsc.RotationalDictionaryLearning(n_components=5)
    assert estimator.get_params()["n_components"] == 5
    assert estimator.set_params(n_components=6, update="mod") is estimator
    assert estimator.get_params()["update"] == "mod"
    with pytest.raises(ValueError, match="n_component"):
        estimator.set_params(n_component=3)


def test_clone__is_unfitted_with_the_same_parameters(fitted):
    copy = clone(fitted)
    assert copy.get_params() == fitted.get_params()
    assert not hasattr(copy, "dictionary_")


def test_pipeline__codes_feed_a_classifier(natural_patches, picture):
    """Stripes against spots: what a linear classifier tells apart from the codes alone."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:9, :9] - 4.0
    theta = rng.uniform(0, np.pi, 400)[:, None, None]
    stripes = np.cos(1.5 * (np.cos(theta) * x + np.sin(theta) * y))
    spots = np.exp(-(x**2 + y**2) / rng.uniform(2, 5, 400)[:, None, None])
    X = np.concatenate([stripes, spots]).reshape(800, 81) + rng.normal(0, 0.02, (800, 81))
    label = np.repeat([0, 1], 400)
    pipeline = make_pipeline(
        FunctionTransformer(),
        dsc.RotationalDictionaryLearning(n_components=3, n_nonzero_coefs=1, max_iter=3),
        FunctionTransformer(lambda codes: abs(codes), accept_sparse=True),
        MaxAbsScaler(),
        LogisticRegression(),
    )
    pipeline.fit(X[::2], label[::2])
    assert pipeline.score(X[1::2], label[1::2]) > 0.9


def test_grid_search__picks_the_larger_dictionary(X):
    search = GridSearchCV(
        dsc.RotationalDictionaryLearning(n_nonzero_coefs=1, max_iter=2),
        {"n_components": np.array([1, 6])},
        cv=2,
    )
    search.fit(X)
    assert search.best_params_ == {"n_components": 6}


def test_unfitted__says_so():
    estimator = dsc.RotationalDictionaryLearning()
    for method in (estimator.transform, estimator.inverse_transform, estimator.score):
        with pytest.raises(DscError, match="not fitted yet: call fit first") as caught:
            method(np.zeros((3, 49)))
        assert isinstance(caught.value, NotFittedError)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.zeros((5, 50)), "found 50 features, need a square number"),
        (np.zeros(49), r"found shape \(49,\)"),
        (np.zeros((0, 49)), "found 0 of them"),
        (np.full((5, 49), np.nan), "found nan"),
    ],
)
def test_fit__refuses_what_are_no_patches(X, message):
    with pytest.raises(DscError, match=message):
        dsc.RotationalDictionaryLearning().fit(X)


def test_transform__refuses_another_number_of_features(fitted):
    with pytest.raises(DscError, match="found diameter 5, need 7"):
        fitted.transform(np.zeros((3, 25)))


@pytest.mark.parametrize("n_columns", [180, 241])
def test_inverse_transform__refuses_another_number_of_columns(fitted, n_columns):
    with pytest.raises(DscError, match=r"found .*need"):
        fitted.inverse_transform(sparse.eye_array(3, n_columns, k=n_columns - 3).tocsr())


def test_fit__refuses_bad_parameters_by_name(X):
    with pytest.raises(DscError, match="did you mean 'disk'"):
        dsc.RotationalDictionaryLearning(basis="disc").fit(X)
