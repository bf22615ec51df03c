"""`RotationalDictionaryLearning`: the same learner behind the interface of scikit-learn."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler
from sklearn.utils import estimator_checks, get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

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
    assert fitted.n_iter_ == 3
    assert fitted.components_.shape == (4, 49)
    images = fitted.components_.reshape(4, 7, 7)
    assert (images[:, ~expected.basis.mask] == 0).all()
    np.testing.assert_array_equal(images, np.nan_to_num(expected.atoms_pixels))


def test_fit__returns_itself_and_ignores_y(X, fitted):
    estimator = dsc.RotationalDictionaryLearning(**OPTIONS)
    assert estimator.fit(X, np.arange(600)) is estimator
    np.testing.assert_array_equal(estimator.components_, fitted.components_)


FORMS = {
    "images": lambda X: X.reshape(600, 7, 7),
    "float64": lambda X: X.astype(np.float64),
    "columns first": np.asfortranarray,
    "lists": lambda X: X.tolist(),
    "lists of images": lambda X: X.reshape(600, 7, 7).tolist(),
    "a data frame": lambda X: pd.DataFrame(X),
}


@pytest.mark.parametrize("form", FORMS)
def test_fit__same_bits_from_any_form(X, fitted, form):
    again = dsc.RotationalDictionaryLearning(**OPTIONS).fit(FORMS[form](X))
    np.testing.assert_array_equal(again.components_, fitted.components_)
    assert again.n_features_in_ == 49
    assert (again.transform(FORMS[form](X)) != fitted.transform(X)).nnz == 0


def test_fit__whole_numbers_are_taken_as_they_are(X):
    whole = (100 * X).astype(np.int16)
    found = dsc.RotationalDictionaryLearning(**OPTIONS).fit(whole)
    assert found.dictionary_.sha256 == learn(whole.reshape(-1, 7, 7), 4, 2, n_iterations=3).sha256


def test_fit__keeps_the_names_of_pixels(X, fitted):
    frame = pd.DataFrame(X, columns=[f"pixel{i}" for i in range(49)])
    found = dsc.RotationalDictionaryLearning(**OPTIONS).fit(frame)
    assert found.feature_names_in_.tolist() == frame.columns.tolist()
    with pytest.raises(ValueError, match="feature names should match"):
        found.transform(frame[frame.columns[::-1]])
    assert not hasattr(found.fit(X), "feature_names_in_")


# --- random_state -------------------------------------------------------------------------------


def test_random_state__a_number_of_numpy_is_that_number(X, fitted):
    found = dsc.RotationalDictionaryLearning(**OPTIONS, random_state=np.int64(0)).fit(X)
    assert found.dictionary_.sha256 == fitted.dictionary_.sha256


def test_random_state__a_state_gives_another_seed_at_every_fit(X, fitted):
    def two_fits():
        state = np.random.RandomState(5)
        model = dsc.RotationalDictionaryLearning(**OPTIONS, random_state=state)
        found = [model.fit(X).dictionary_.sha256 for _ in range(2)]
        assert model.random_state is state
        return found

    first = two_fits()
    assert first == two_fits()
    assert len({*first, fitted.dictionary_.sha256}) == 3


def test_random_state__none_asks_the_state_of_numpy(X):
    model = dsc.RotationalDictionaryLearning(**OPTIONS, random_state=None)
    kept = np.random.get_state()  # noqa: NPY002
    try:
        np.random.seed(3)  # noqa: NPY002
        found = [model.fit(X).dictionary_.sha256 for _ in range(2)]
    finally:
        np.random.set_state(kept)  # noqa: NPY002
    state = np.random.RandomState(3)
    again = dsc.RotationalDictionaryLearning(**OPTIONS, random_state=state)
    assert [again.fit(X).dictionary_.sha256 for _ in range(2)] == found
    assert model.random_state is None


@pytest.mark.parametrize("state", ["0", 1.5, np.random.default_rng(0)])
def test_random_state__refuses_what_scikit_learn_does(X, state):
    with pytest.raises(ValueError, match="cannot be used to seed"):
        dsc.RotationalDictionaryLearning(**OPTIONS, random_state=state).fit(X)


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


def test_transform__dense_where_sparse_output_is_off(X, fitted):
    dense = dsc.RotationalDictionaryLearning(**OPTIONS, sparse_output=False).fit_transform(X)
    assert isinstance(dense, np.ndarray)
    assert dense.dtype == np.float32
    np.testing.assert_array_equal(dense, fitted.transform(X).toarray())


def test_transform__columns_are_named_by_atom_and_degrees(X):
    model = dsc.RotationalDictionaryLearning(**{**OPTIONS, "n_angles": 16}, sparse_output=False)
    frame = model.set_output(transform="pandas").fit_transform(X)
    names = model.get_feature_names_out()
    assert names.dtype == object
    assert frame.columns.tolist() == names.tolist()
    assert names[[0, 1, 16, 50]].tolist() == [
        "atom0_angle0", "atom0_angle22.5", "atom1_angle0", "atom3_angle45",
    ]  # fmt: skip
    codes = model.dictionary_.encode(X.reshape(-1, 7, 7)).codes
    for p in range(5):
        atom, angle, coef = codes.atom[p, 0], codes.angle[p, 0], codes.coef[p, 0]
        assert frame.loc[p, f"atom{atom}_angle{angle * 22.5:g}"] == coef


@pytest.mark.parametrize("n_angles", [7, 360, 1001])
def test_transform__names_of_columns_are_unique(X, n_angles):
    options = {**OPTIONS, "n_angles": n_angles, "max_iter": 0}
    names = dsc.RotationalDictionaryLearning(**options).fit(X).get_feature_names_out()
    assert len(set(names)) == len(names) == 4 * n_angles


def test_transform__a_sparse_row_is_no_data_frame(X, fitted):
    model = clone(fitted).set_output(transform="pandas").fit(X)
    with pytest.raises(ValueError, match="dense array"):
        model.transform(X)


def test_transform__forgets_nothing_when_parameters_change(X, fitted):
    model = clone(fitted).fit(X).set_params(n_components=9, n_nonzero_coefs=1)
    codes = model.transform(X)
    assert (codes != fitted.transform(X)).nnz == 0
    np.testing.assert_array_equal(
        model.inverse_transform(codes), fitted.inverse_transform(fitted.transform(X))
    )


@pytest.mark.parametrize(
    "as_given",
    [lambda c: c, lambda c: c.toarray(), sparse.csc_array, lambda c: pd.DataFrame(c.toarray())],
)
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


def test_pickle__says_the_same(X, fitted):
    copy = pickle.loads(pickle.dumps(fitted))
    assert (copy.transform(X) != fitted.transform(X)).nnz == 0
    assert copy.get_params() == fitted.get_params()


def test_pipeline__codes_feed_a_classifier(natural_patches, image):
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
        dsc.RotationalDictionaryLearning(n_nonzero_coefs=1, max_iter=2, init="patches"),
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


def test_unfitted__has_no_names():
    with pytest.raises(NotFittedError):
        dsc.RotationalDictionaryLearning().get_feature_names_out()


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.zeros((5, 50)), r"found 50 feature\(s\), need a square number"),
        (np.zeros((5, 4)), r"found 4 feature\(s\), need a square number of at least 9"),
        (np.zeros((5, 4, 9)), r"found shape \(5, 4, 9\)"),
        (np.zeros((5, 3, 3, 1)), r"found shape \(5, 3, 3, 1\)"),
    ],
)
def test_fit__refuses_what_are_no_patches(X, message):
    with pytest.raises(DscError, match=message):
        dsc.RotationalDictionaryLearning().fit(X)


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (np.zeros(49), ValueError, "Reshape your data"),
        (np.zeros((0, 49)), ValueError, r"0 sample\(s\)"),
        (np.zeros((0, 7, 7)), ValueError, r"0 sample\(s\)"),
        (np.full((5, 49), np.nan), ValueError, "Input X contains NaN"),
        (np.full((5, 7, 7), np.inf), ValueError, "Input X contains infinity"),
        (np.zeros((5, 49), complex), ValueError, "Complex data not supported"),
        (np.full((5, 49), "a"), ValueError, "not compatible with arrays of bytes/strings"),
        (sparse.csr_array((5, 49)), TypeError, "[Ss]parse"),
    ],
)
def test_fit__refuses_in_the_words_of_scikit_learn(X, error, message):
    with pytest.raises(error, match=message):
        dsc.RotationalDictionaryLearning().fit(X)


@pytest.mark.parametrize("shape", [(3, 25), (3, 5, 5)])
def test_transform__refuses_another_number_of_features(fitted, shape):
    with pytest.raises(ValueError, match=r"X has 25 features, but .* is expecting 49 features"):
        fitted.transform(np.zeros(shape))


@pytest.mark.parametrize("n_columns", [180, 241])
def test_inverse_transform__refuses_another_number_of_columns(fitted, n_columns):
    with pytest.raises(DscError, match=r"found .*need"):
        fitted.inverse_transform(sparse.eye_array(3, n_columns, k=n_columns - 3).tocsr())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"basis": "disc"}, "did you mean 'disk'"),
        ({"n_components": 0}, "^n_components: found 0"),
        ({"n_nonzero_coefs": 0}, "^n_nonzero_coefs: found 0"),
        ({"n_nonzero_coefs": 99}, "^n_nonzero_coefs: found 99, need at most"),
        ({"max_iter": 1.5}, r"^max_iter: found 1\.5"),
        ({"random_state": -1}, "^random_state: found -1"),
    ],
)
def test_fit__refuses_bad_parameters_by_name(X, options, message):
    with pytest.raises(DscError, match=message):
        dsc.RotationalDictionaryLearning(**{**OPTIONS, **options}).fit(X)


# --- scikit-learn's own checks ------------------------------------------------------------------

SMALL = {"n_components": 2, "n_nonzero_coefs": 1, "max_iter": 2, "n_angles": 4}
NOT_SQUARE = dict.fromkeys(
    (
        "check_array_api_input",
        "check_dict_unchanged",
        "check_dont_overwrite_parameters",
        "check_dtype_object",
        "check_estimators_dtypes",
        "check_estimators_fit_returns_self",
        "check_estimators_nan_inf",
        "check_estimators_overwrite_params",
        "check_estimators_pickle",
        "check_f_contiguous_array_estimator",
        "check_fit2d_1sample",
        "check_fit2d_predict1d",
        "check_fit_check_is_fitted",
        "check_fit_idempotent",
        "check_fit_score_takes_y",
        "check_methods_sample_order_invariance",
        "check_methods_subset_invariance",
        "check_n_features_in",
        "check_n_features_in_after_fitting",
        "check_pipeline_consistency",
        "check_positive_only_tag_during_fit",
        "check_readonly_memmap_input",
        "check_transformer_data_not_an_array",
        "check_transformer_general",
        "check_transformer_n_iter",
        "check_transformer_preserve_dtypes",
    ),
    "the check's X has 2 to 10 features, which are no square patch",
)


class FilledRows(dsc.RotationalDictionaryLearning):
    """Takes any number of features: rows are filled up with zeros to the next square."""

    def _squares(self, rows):
        diameter = max(3, int(np.ceil(np.sqrt(rows.shape[1]))))
        return super()._squares(np.pad(rows, ((0, 0), (0, diameter**2 - rows.shape[1]))))


@parametrize_with_checks(
    [dsc.RotationalDictionaryLearning(**SMALL)], expected_failed_checks=lambda _: NOT_SQUARE
)
def test_checks__all_pass_that_give_no_patches(estimator, check):
    check(estimator)


@parametrize_with_checks([FilledRows(**SMALL), FilledRows(**SMALL, sparse_output=False)])
def test_checks__all_pass_where_rows_are_filled_up(estimator, check):
    check(estimator)


@pytest.mark.parametrize("sparse_output", [True, False])
@pytest.mark.parametrize(
    "check",
    [
        "check_dataframe_column_names_consistency",
        "check_estimators_partial_fit_n_features",
        "check_transformer_get_feature_names_out",
        "check_transformer_get_feature_names_out_pandas",
        "check_set_output_transform",
        "check_set_output_transform_pandas",
        "check_global_output_transform_pandas",
    ],
)
@pytest.mark.filterwarnings("ignore:X (has|does not have valid) feature names:UserWarning")
def test_checks__of_names_and_frames(check, sparse_output):
    """Which scikit-learn runs on its own estimators only; they mix arrays and frames."""
    estimator = FilledRows(**SMALL, sparse_output=sparse_output)
    getattr(estimator_checks, check)("FilledRows", estimator)


def test_tags__are_those_of_rows_and_images():
    tags = get_tags(dsc.RotationalDictionaryLearning())
    assert (tags.input_tags.two_d_array, tags.input_tags.three_d_array) == (True, True)
    assert not tags.input_tags.sparse
    assert not tags.input_tags.allow_nan
    assert tags.transformer_tags.preserves_dtype == ["float32"]


@pytest.fixture(scope="module")
def scenes():
    """Images of two textures, at several angles."""
    y, x = np.mgrid[:32, :32]
    angles = np.linspace(0, np.pi, 6, endpoint=False)
    waves = [np.cos(f * (x * np.cos(a) + y * np.sin(a))) for f in (0.5, 1.1) for a in angles]
    return np.array(waves) + 0.1 * np.random.default_rng(0).normal(size=(12, 32, 32))


def test_images__are_learned_from_and_classified(scenes):
    estimator = dsc.RotationalDictionaryLearning(
        4, 1, max_iter=3, diameter=7, stride=3, center=True, pool="angles"
    )
    rows = estimator.fit_transform(scenes)
    assert rows.shape == (12, 8)
    learned = dsc.learn(list(scenes), 4, 1, n_iterations=3, diameter=7, stride=3, center=True)
    assert estimator.dictionary_.sha256 == learned.sha256
    np.testing.assert_allclose(rows[:, :4].sum(axis=1), 1, rtol=1e-5)  # one atom a patch
    classes = np.repeat([0, 1], 6)
    classifier = make_pipeline(clone(estimator), MaxAbsScaler(), LogisticRegression())
    assert classifier.fit(scenes[::2], classes[::2]).score(scenes[1::2], classes[1::2]) == 1
    assert clone(estimator).set_params(pool=None).fit(scenes).transform(scenes).shape == (12, 240)


def test_images__may_be_in_color_or_paths_in_any_order(scenes, tmp_path):
    estimator = dsc.RotationalDictionaryLearning(
        4, 1, max_iter=1, diameter=7, stride=3, center=True, pool="angles", sparse_output=False
    )
    grey = [np.float32(one) for one in scenes[:4]]
    expected = estimator.fit(grey).transform(grey)
    paths = [tmp_path / f"{name}.npy" for name in "dbca"]
    for path, one in zip(paths, grey, strict=True):
        np.save(path, one)
    np.testing.assert_allclose(estimator.transform(paths), expected, rtol=1e-6)
    colors = np.stack([np.stack([one] * 3, axis=2) for one in grey])
    np.testing.assert_allclose(estimator.transform(colors), expected, rtol=1e-4)


def test_images__that_are_none_are_refused(scenes):
    estimator = dsc.RotationalDictionaryLearning(4, 1, max_iter=1, diameter=7)
    for bad in (scenes[0], [scenes], []):
        with pytest.raises(DscError, match="need images"):
            estimator.fit(bad)


def test_pool__over_angles_does_not_change_with_rotation(X, fitted):
    squares = X.reshape(-1, 7, 7)
    rotated = np.rot90(squares, axes=(1, 2)).reshape(len(X), -1)
    pooled = [fitted.transform(rows, pool="angles").toarray() for rows in (X, rotated)]
    np.testing.assert_allclose(*pooled, atol=1e-4)
    codes = fitted.transform(X).toarray().reshape(len(X), 4, -1)
    np.testing.assert_allclose(pooled[0][:, 4:], (codes**2).sum(2), rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(pooled[0][:, :4], (codes != 0).sum(2))


def test_pool__names_its_columns(X):
    estimator = dsc.RotationalDictionaryLearning(**OPTIONS, pool="angles", sparse_output=False)
    frame = estimator.set_output(transform="pandas").fit(X).transform(X[:3])
    assert list(frame.columns)[3:5] == ["atom3_use", "atom0_energy"]
    with pytest.raises(DscError, match="inverse_transform: found pooled codes"):
        estimator.inverse_transform(frame)
    with pytest.raises(DscError, match="pool"):
        dsc.RotationalDictionaryLearning(**OPTIONS, pool="angle").fit(X)


# --- one part after the other -------------------------------------------------------------------


def test_partial_fit__again_with_the_same_rows_is_another_online_pass(X):
    options = {**OPTIONS, "mode": "online"}
    estimator = dsc.RotationalDictionaryLearning(**OPTIONS)
    for n_passes in (1, 2):
        assert estimator.partial_fit(X) is estimator
        whole = dsc.RotationalDictionaryLearning(**{**options, "max_iter": n_passes}).fit(X)
        assert estimator.dictionary_.sha256 == whole.dictionary_.sha256
        assert estimator.error_.tolist() == whole.error_[:-1].tolist()  # none measures
        assert estimator.n_iter_ == n_passes
        np.testing.assert_array_equal(estimator.components_, whole.components_)


def test_partial_fit__learns_from_one_part_after_the_other(X):
    estimator = dsc.RotationalDictionaryLearning(**OPTIONS, batch_size=100)
    first = estimator.partial_fit(X[::2]).score(X)
    for _ in range(3):
        estimator.partial_fit(X[1::2]).partial_fit(X[::2])
    assert estimator.score(X) > first
    assert len(estimator.error_) == estimator.n_iter_ == 7
    assert estimator.transform(X).shape[0] == len(X)


def test_partial_fit__keeps_statistics_between_calls(X):
    """Without them the last call would start from its atoms alone."""
    estimator = dsc.RotationalDictionaryLearning(**OPTIONS, batch_size=100).partial_fit(X[:200])
    atoms = estimator.dictionary_
    alone = dsc.RotationalDictionaryLearning(**OPTIONS, batch_size=100, init=atoms)
    alone.partial_fit(X[200:])
    estimator.partial_fit(X[200:])
    assert estimator.dictionary_.sha256 != alone.dictionary_.sha256


def test_partial_fit__goes_on_from_fit_and_fit_begins_anew(X):
    fitted = dsc.RotationalDictionaryLearning(**OPTIONS).fit(X)
    warm = dsc.RotationalDictionaryLearning(**OPTIONS, init=fitted.dictionary_).partial_fit(X)
    sha256 = fitted.dictionary_.sha256
    assert fitted.partial_fit(X).dictionary_.sha256 == warm.dictionary_.sha256 != sha256
    assert fitted.partial_fit(X).fit(X).dictionary_.sha256 == sha256
    assert fitted.partial_fit(X).dictionary_.sha256 == warm.dictionary_.sha256


def test_partial_fit__takes_images(scenes):
    estimator = dsc.RotationalDictionaryLearning(4, 1, diameter=7, stride=3, center=True)
    for part in (scenes[::2], scenes[1::2]):
        estimator.partial_fit(part)
    assert estimator.n_iter_ == 2
    with pytest.raises(DscError, match=r"atoms: found .* learned so far"):
        estimator.set_params(diameter=9).partial_fit(scenes)


def test_partial_fit__can_be_kept_and_goes_on(X):
    estimator = dsc.RotationalDictionaryLearning(**OPTIONS).partial_fit(X[:200])
    copy = pickle.loads(pickle.dumps(estimator))
    one, other = (some.partial_fit(X[200:]).dictionary_ for some in (estimator, copy))
    assert one.sha256 == other.sha256


@pytest.mark.parametrize(
    ("options", "message"),
    [({"update": "ksvd"}, "update: found 'ksvd', need mod"), ({"forget": 2}, "forget: found 2")],
)
def test_partial_fit__refuses_bad_parameters_by_name(X, options, message):
    with pytest.raises(DscError, match=message):
        dsc.RotationalDictionaryLearning(**OPTIONS, **options).partial_fit(X)
