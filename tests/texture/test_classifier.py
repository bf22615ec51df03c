"""`TextureClassifier`: from images in any form to classes, on a drawn suite."""

import pickle
import shutil
from dataclasses import asdict, fields

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import NotFittedError, SkipTestWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks
from sklearn.utils.validation import validate_data

import dsc
from dsc.dictionary import RunTarget
from dsc.engine import open_engine
from dsc.errors import DscError
from dsc.estimators import ALIASES, WORDS
from dsc.experiments.textures import CLASSES, write_suite
from dsc.images.image import open_images
from dsc.texture import fit
from dsc.texture import histograms as features
from dsc.texture.config import ROTATIONS, TextureConfig
from dsc.texture.dataset import Dataset, read_inputs
from dsc.texture.fit import fit_texture
from dsc.texture.model import TextureModel, stored_config
from dsc.texture.neighbours import chi_square
from dsc.texture.outex import read_suite

OPTIONS = {"n_components": 2, "diameter": 7, "max_iter": 2, "patches_per_image": 100, "stride": 3}
CONFIG = {WORDS.get(name, name): value for name, value in OPTIONS.items()}


def make(**options):
    return dsc.TextureClassifier(**{**OPTIONS, **options})


def fit_in(data, config, run=None, resume=False, scheduler="threads", progress=None):
    """`fit_texture` in a folder, on a scheduler."""
    target = None if run is None else RunTarget(run, resume)
    with open_engine(scheduler, progress=progress) as engine:
        return fit_texture(data, config, engine, target)


def pixels(samples):
    return [np.asarray(Image.open(sample.path)) for sample in samples]


@pytest.fixture(scope="module")
def suite(tmp_path_factory):
    """The folder of a suite: 12 training images, 16 turned test images."""
    folder = tmp_path_factory.mktemp("drawn") / "suite"
    return write_suite(folder, n_train=3, n_test=1, angles=(0, 30, 60, 90), size=48)


@pytest.fixture(scope="module")
def train(suite):
    """(images, classes)."""
    samples = read_suite(suite).train
    return pixels(samples), [sample.label for sample in samples]


@pytest.fixture(scope="module")
def test(suite):
    """(images, classes)."""
    samples = read_suite(suite).test
    return pixels(samples), [sample.label for sample in samples]


@pytest.fixture(scope="module")
def fitted(train):
    return make().fit(*train)


@pytest.fixture(scope="module")
def nearest(train):
    return make(classifier="nearest").fit(*train)


@pytest.fixture(scope="module")
def process_engine():
    """A cluster of two worker processes."""
    with open_engine("processes", 2) as engine:
        yield engine


def assert_same(one, other):
    """The same model, to the bit."""
    assert one.sha256 == other.sha256
    assert one.label_names == other.label_names
    np.testing.assert_array_equal(one.history, other.history)
    for ours, theirs in zip(one.scales, other.scales, strict=True):
        np.testing.assert_array_equal(ours.atom_count, theirs.atom_count)
    np.testing.assert_array_equal(one.image_count, other.image_count)
    np.testing.assert_array_equal(one.image_label, other.image_label)


# --- accuracy -----------------------------------------------------------------------------------


def test_score__rotational_knows_turned_textures(fitted, test):
    assert fitted.score(*test) >= 15 / 16


def test_score__of_a_suite_is_that_of_its_test_images(fitted, suite, test):
    assert fitted.score(suite) == fitted.score(*test)
    np.testing.assert_array_equal(fitted.predict(suite), fitted.predict(test[0]))


def test_score__of_folders_of_classes(fitted, class_folders):
    assert fitted.score(class_folders) == 1  # the training images


@pytest.mark.parametrize("method", ["standard", "augmented"])
def test_score__other_methods_are_below(train, test, fitted, method):
    worse = make(method=method).fit(*train)
    upright = [i for i in range(16) if i % 4 == 0]  # at 0°
    images, truth = test
    assert worse.score([images[i] for i in upright], [truth[i] for i in upright]) >= 0.75
    assert worse.score(*test) <= fitted.score(*test) - 0.15


@pytest.mark.parametrize("sparsity", [2, 3])
def test_score__several_atoms_work_too(train, test, sparsity):
    model = make(n_nonzero_coefs=sparsity, n_components=4, diameter=11)
    assert model.fit(*train).score(*test) >= 15 / 16


# --- inputs -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def class_folders(suite, tmp_path_factory):
    folder = tmp_path_factory.mktemp("folders")
    for sample in read_suite(suite).train:
        (folder / sample.label).mkdir(exist_ok=True)
        shutil.copy(sample.path, folder / sample.label)
    return folder


INPUTS = {
    "array": lambda train, suite, folders: (np.stack(train[0]), train[1]),
    "floats": lambda train, suite, folders: (np.stack(train[0]) / np.float32(255), train[1]),
    "array of labels": lambda train, suite, folders: (train[0], np.array(train[1])),
    "paths": lambda train, suite, folders: (
        [sample.path for sample in read_suite(suite).train],
        train[1],
    ),
    "words": lambda train, suite, folders: (
        [str(sample.path) for sample in read_suite(suite).train],
        train[1],
    ),
    "folders": lambda train, suite, folders: (folders, None),
    "folders by name": lambda train, suite, folders: (str(folders), None),
    "suite": lambda train, suite, folders: (suite, None),
}


@pytest.mark.parametrize("kind", INPUTS)
def test_fit__same_bits_from_any_input(train, suite, class_folders, fitted, kind):
    found = make().fit(*INPUTS[kind](train, suite, class_folders))
    assert found.classes_.tolist() == list(CLASSES)
    assert_same(found.model_, fitted.model_)


def test_fit__returns_itself(train):
    model = make(max_iter=0)
    assert model.fit(*train) is model


def test_fit__leaves_images_alone(train):
    images = np.stack(train[0]) / 255
    before = images.copy()
    images.setflags(write=False)
    make(max_iter=0).fit(images, train[1]).predict(images)
    np.testing.assert_array_equal(images, before)


def test_fit__classes_may_be_numbers(train, test, fitted):
    numbers = [[CLASSES.index(label) for label in labels] for labels in (train[1], test[1])]
    model = make().fit(train[0], numbers[0])
    assert model.score(test[0], numbers[1]) == fitted.score(*test)
    assert model.model_.sha256 == fitted.model_.sha256


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_components", 3),
        ("diameter", 9),
        ("n_nonzero_coefs", 2),
        ("method", "standard"),
        ("method", "augmented"),
        ("unit", False),
        ("patches_per_image", 90),
        ("n_angles", 12),
        ("max_iter", 1),
        ("update", "mod"),
        ("random_state", 1),
    ],
)
def test_parameters__have_an_effect_on_the_atoms(train, fitted, name, value):
    assert make(**{name: value}).fit(*train).model_.sha256 != fitted.model_.sha256


def test_parameters__rotations_change_what_augmentation_learns(train):
    first, second = (
        make(method="augmented", rotations=name).fit(*train).model_ for name in ("even", "paper")
    )
    assert first.sha256 != second.sha256
    assert len(ROTATIONS["even"]) == 60
    assert ROTATIONS["paper"] == (5, 10, 15, 30, 45, 60, 75, 90)


def test_parameters__stride_changes_what_is_counted(train, fitted):
    other = make(stride=6).fit(*train)
    assert other.model_.sha256 == fitted.model_.sha256
    assert fitted.model_.image_count.sum((0, 2, 3)).tolist() == [14**2] * 12
    assert other.model_.image_count.sum((0, 2, 3)).tolist() == [7**2] * 12


@pytest.mark.parametrize(("scheduler", "n_workers"), [("synchronous", None), ("threads", 3)])
def test_fit__same_bits_on_any_scheduler(train, fitted, scheduler, n_workers):
    found = make(scheduler=scheduler, n_workers=n_workers).fit(*train)
    assert_same(found.model_, fitted.model_)


def test_fit__same_bits_on_processes(suite, fitted, process_engine, test):
    found = make(scheduler=process_engine.scheduler).fit(suite)
    assert_same(found.model_, fitted.model_)
    np.testing.assert_array_equal(found.transform(test[0]), fitted.transform(test[0]))


# --- what it says -------------------------------------------------------------------------------


@pytest.mark.parametrize(("histogram", "n_bins"), [("classes", 4), ("atoms", 8), ("both", 12)])
def test_transform__rows_are_shares(train, test, histogram, n_bins):
    shares = make(histogram=histogram).fit(*train).transform(test[0])
    assert shares.shape == (16, n_bins)
    assert shares.dtype == np.float64
    assert (shares >= 0).all()
    np.testing.assert_allclose(shares.sum(1), 1, rtol=1e-12)


def test_transform__a_class_has_what_its_atoms_have(fitted, train, test):
    by_class = make(histogram="classes", classifier="nearest").fit(*train)
    assert by_class.model_.sha256 == fitted.model_.sha256
    both = fitted.transform(test[0])
    atoms = 4 * both[:, 4:].reshape(16, 4, 2)
    np.testing.assert_allclose(both[:, :4], atoms.sum(2), rtol=1e-12)
    classes = by_class.transform(test[0])
    np.testing.assert_allclose(classes, 1.25 * both[:, :4], rtol=1e-12)
    distances = chi_square(classes, by_class.model_.histograms)
    np.testing.assert_allclose(by_class.distances(test[0]).min(1), distances.min(1), rtol=1e-12)


def test_transform__of_the_training_images_is_in_the_model(fitted, train):
    np.testing.assert_array_equal(fitted.transform(train[0]), fitted.model_.histograms)


def test_distances__smallest_is_the_prediction(fitted, test):
    distances = fitted.distances(test[0])
    assert distances.shape == (16, 4)
    assert (distances >= 0).all()
    predicted = fitted.predict(test[0])
    np.testing.assert_array_equal(fitted.classes_[distances.argmin(1)], predicted)
    assert fitted.score(*test) == np.mean(predicted == np.array(test[1]))


def test_distances__are_to_the_nearest_training_images_of_each_class(fitted, nearest, train, test):
    every = chi_square(fitted.transform(test[0]), fitted.transform(train[0]))
    for column, name in enumerate(fitted.classes_):
        own = every[:, np.array(train[1]) == name]
        for model, expected in ((fitted, own.mean(1)), (nearest, own.min(1))):  # three images each
            found = model.distances(test[0])[:, column]
            np.testing.assert_allclose(found, expected, atol=1e-12)


def test_distances__to_itself_are_zero(nearest, train):
    distances = nearest.distances(train[0])
    own = [list(CLASSES).index(label) for label in train[1]]
    np.testing.assert_allclose(distances[np.arange(12), own], 0, atol=1e-12)
    assert nearest.score(*train) == 1


def test_predict__images_of_mixed_sizes(fitted, test):
    images = [test[0][0], test[0][5][:40], test[0][10][:, 5:], test[0][15][:30, :35]]
    together = fitted.transform(images)
    alone = np.concatenate([fitted.transform([image]) for image in images])
    np.testing.assert_array_equal(together, alone)
    assert fitted.predict(images).tolist() == [test[1][i] for i in (0, 5, 10, 15)]


def test_fit__images_of_mixed_sizes(train, test):
    images = [image[: 48 - i % 3 * 4, : 48 - i % 2 * 5] for i, image in enumerate(train[0])]
    model = make().fit(images, train[1])
    assert model.score(*test) >= 14 / 16


@pytest.mark.parametrize("n_channels", [3, 4])
def test_predict__colour_images_of_grey_are_grey(fitted, test, n_channels):
    colour = [np.stack([image] * 3, -1) for image in test[0]]
    if n_channels == 4:
        colour = [np.dstack([rgb, np.full(rgb.shape[:2], 255, np.uint8)]) for rgb in colour]
    np.testing.assert_allclose(fitted.transform(colour), fitted.transform(test[0]), atol=0.01)
    np.testing.assert_array_equal(fitted.predict(colour), fitted.predict(test[0]))


def test_fit__colour_images(train, test, fitted):
    model = make().fit([np.stack([image] * 3, -1) for image in train[0]], train[1])
    np.testing.assert_array_equal(model.predict(test[0]), fitted.predict(test[0]))


def test_predict__sixteen_bits_are_eight_bits(fitted, test):
    deep = [image.astype(np.uint16) * 257 for image in test[0]]
    np.testing.assert_allclose(fitted.transform(deep), fitted.transform(test[0]), atol=0.01)


def test_label_map__one_class_for_every_pixel_that_a_patch_is_around(train, test):
    model = make(stride=1, histogram="classes").fit(*train)
    image = test[0][0][:40]
    labels = model.label_map(image)
    assert labels.shape == image.shape == (40, 48)
    assert labels.dtype == np.int64
    inside = labels[3:-3, 3:-3]
    expected = model.model_.labellers.each[0].label_image(open_images(image)[0])[0]
    np.testing.assert_array_equal(inside, expected)
    assert (labels == -1).sum() == labels.size - inside.size
    share = np.bincount(inside.ravel(), minlength=4) / inside.size
    np.testing.assert_allclose(share, model.transform([image])[0])


def test_label_map__with_a_stride_a_patch_stands_for_the_pixels_around(fitted, test):
    image = test[0][3]
    labels = fitted.label_map(image)
    assert labels.shape == (48, 48)
    grid = fitted.model_.labellers.each[0].label_image(open_images(image)[0])[0]
    np.testing.assert_array_equal(labels[3:45:3, 3:45:3], grid)  # the middles themselves
    np.testing.assert_array_equal(labels[4:43:3, 4:43:3], grid[:-1, :-1])  # a pixel beside
    np.testing.assert_array_equal(labels[5:42:3, 5:42:3], grid[1:, 1:])  # nearer to the next


# --- scikit-learn's habits ----------------------------------------------------------------------


def test_params__go_in_and_out():
    model = make()
    assert model.get_params().items() >= OPTIONS.items()
    assert model.set_params(n_components=6, method="standard") is model
    assert (model.n_components, model.method) == (6, "standard")
    with pytest.raises(ValueError, match="n_atoms"):
        model.set_params(n_atoms=3)


def test_params__defaults_are_those_of_the_configuration():
    params = dsc.TextureClassifier().get_params()
    for name, value in asdict(TextureConfig()).items():
        assert params[ALIASES.get(name, name)] == value, name
    assert TextureConfig(diameter=params["diameter"]) == TextureConfig()
    assert set(ALIASES) - {"progress"} < {field.name for field in fields(TextureConfig)}


def test_clone__is_unfitted_with_the_same_parameters(fitted):
    copy = clone(fitted)
    assert copy.get_params() == fitted.get_params()
    assert not hasattr(copy, "model_")


def test_unfitted__says_so(test):
    model = make()
    for method in (model.predict, model.predict_proba, model.transform, model.distances):
        with pytest.raises(DscError, match="not fitted") as caught:
            method(test[0])
        assert isinstance(caught.value, NotFittedError)
    with pytest.raises(NotFittedError):
        model.get_feature_names_out()
    with pytest.raises(DscError, match="not fitted"):
        model.score(*test)
    with pytest.raises(DscError, match="not fitted"):
        model.label_map(test[0][0])
    with pytest.raises(DscError, match="not fitted"):
        model.save("noplace.zarr")


@pytest.mark.parametrize("scoring", [None, "accuracy", "roc_auc_ovr"])
def test_cross_validation__works_on_arrays(train, scoring):
    X, y = np.stack(train[0]), np.array(train[1])
    assert cross_val_score(make(), X, y, cv=3, scoring=scoring).mean() >= 0.9


def test_cross_validation__works_on_images_of_mixed_sizes(train):
    images = [image[: 48 - i % 3 * 4] for i, image in enumerate(train[0])]
    assert cross_val_score(make(), images, train[1], cv=3).mean() >= 0.9


def test_grid_search__finds_the_method_that_turns(train, test):
    search = GridSearchCV(make(), {"method": ["standard", "rotational"]}, cv=2)
    search.fit(train[0] + test[0], train[1] + test[1])
    assert search.best_params_ == {"method": "rotational"}


def test_pipeline__ends_with_the_classifier(train, test, fitted):
    pipeline = make_pipeline(FunctionTransformer(np.stack), make()).fit(*train)
    assert_same(pipeline[-1].model_, fitted.model_)
    np.testing.assert_array_equal(pipeline.predict_proba(test[0]), fitted.predict_proba(test[0]))


def test_pipeline__histograms_feed_another_classifier(train, test):
    pipeline = make_pipeline(make(), LogisticRegression(C=100)).fit(*train)
    assert pipeline.score(*test) >= 0.9


def test_pickle__says_the_same(fitted, test):
    copy = pickle.loads(pickle.dumps(fitted))
    assert_same(copy.model_, fitted.model_)
    np.testing.assert_array_equal(copy.predict_proba(test[0]), fitted.predict_proba(test[0]))


def test_random_state__a_state_gives_a_seed(train, fitted):
    found = [
        make(random_state=np.random.RandomState(seed)).fit(*train).model_ for seed in (5, 5, 6)
    ]
    assert_same(found[0], found[1])
    assert len({model.sha256 for model in (*found, fitted.model_)}) == 3


@pytest.mark.parametrize("kind", [list, np.array, pd.Series, lambda y: np.array(y, object)])
def test_fit__classes_in_any_form(train, test, fitted, kind):
    model = make(max_iter=0).fit(train[0], kind(train[1]))
    assert model.classes_.tolist() == list(CLASSES)
    assert model.score(test[0], kind(test[1])) > 0.5


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.linspace(0, 1, 12), "Unknown label type"),
        (np.full(12, np.nan), "Input y contains NaN"),
        (np.zeros((12, 2)), "y should be a 1d array"),
    ],
)
def test_bad_input__labels_that_are_no_classes(train, fitted, labels, message):
    for use in (make().fit, fitted.score):
        with pytest.raises(ValueError, match=message):
            use(train[0], labels)


# --- probabilities ------------------------------------------------------------------------------


def test_predict_proba__largest_is_the_prediction(fitted, test):
    shares = fitted.predict_proba(test[0])
    assert shares.shape == (16, 4)
    np.testing.assert_allclose(shares.sum(1), 1, rtol=1e-12)
    assert (shares >= 0).all()
    np.testing.assert_array_equal(fitted.classes_[shares.argmax(1)], fitted.predict(test[0]))


def test_predict_proba__falls_exponentially_by_the_distance_within_classes(nearest, train, test):
    every = chi_square(nearest.model_.histograms, nearest.model_.histograms)
    labels = np.array(train[1])
    others = [
        min(every[i, j] for j in range(12) if i != j and labels[i] == labels[j]) for i in range(12)
    ]
    distances = nearest.distances(test[0])
    expected = np.exp(-distances / np.mean(others))
    expected /= expected.sum(1, keepdims=True)
    np.testing.assert_allclose(nearest.predict_proba(test[0]), expected, rtol=1e-9, atol=1e-15)


def test_predict_proba__says_more_than_the_prediction_alone(fitted, test):
    shares = fitted.predict_proba(test[0])
    assert log_loss(test[1], shares) < 0.5 * np.log(4)


def test_predict_proba__can_be_calibrated(train, test):
    X, y = np.stack(train[0] + test[0]), np.array(train[1] + test[1])
    found = CalibratedClassifierCV(make(), cv=2).fit(X, y)
    assert found.predict_proba(X).shape == (28, 4)
    assert found.score(X, y) >= 0.9


def test_predict_proba__load_says_the_same(fitted, test, tmp_path):
    fitted.save(tmp_path / "model.zarr")
    loaded = dsc.TextureClassifier.load(tmp_path / "model.zarr")
    np.testing.assert_array_equal(loaded.predict_proba(test[0]), fitted.predict_proba(test[0]))


def test_classes__are_sorted_as_numbers(train, test):
    """10 comes after 9, though not as a word: columns follow."""
    numbers = dict(zip(CLASSES, (9, 10, 11, 8), strict=True))
    model = make(histogram="classes").fit(train[0], [numbers[name] for name in train[1]])
    assert model.classes_.tolist() == [8, 9, 10, 11]
    assert model.model_.label_names == ("10", "11", "8", "9")
    predicted = model.predict(test[0])
    np.testing.assert_array_equal(model.classes_[model.distances(test[0]).argmin(1)], predicted)
    np.testing.assert_array_equal(model.classes_[model.predict_proba(test[0]).argmax(1)], predicted)
    assert model.score(test[0], [numbers[name] for name in test[1]]) >= 15 / 16
    labels = model.label_map(test[0][0])
    most = np.bincount(labels[labels >= 0].ravel(), minlength=4)
    names = model.get_feature_names_out().tolist()
    counted = dict(zip(names, model.transform(test[0][:1])[0], strict=True))
    assert model.classes_[most.argmax()] == int(max(counted, key=counted.get))


# --- names and tags -----------------------------------------------------------------------------


@pytest.mark.parametrize("histogram", ["classes", "atoms", "both"])
def test_transform__bins_are_named(train, test, histogram):
    model = make(histogram=histogram).fit(*train).set_output(transform="pandas")
    frame = model.transform(test[0])
    assert frame.columns.tolist() == model.get_feature_names_out().tolist()
    classes = list(CLASSES) if histogram != "atoms" else []
    atoms = [f"{name}_atom{m}" for name in CLASSES for m in range(2)]
    assert frame.columns.tolist() == classes + (atoms if histogram != "classes" else [])
    if histogram == "both":
        for name in CLASSES:
            own = frame[f"{name}_atom0"] + frame[f"{name}_atom1"]
            np.testing.assert_allclose(frame[name], 4 * own, rtol=1e-12)


def test_tags__are_those_of_images():
    tags = get_tags(dsc.TextureClassifier())
    assert (tags.input_tags.two_d_array, tags.input_tags.three_d_array) == (False, True)
    assert tags.input_tags.string  # paths
    assert not tags.target_tags.required  # a folder per class says them
    assert tags.estimator_type == "classifier"


# --- scikit-learn's own checks ------------------------------------------------------------------


class DrawnRows(dsc.TextureClassifier):
    """Takes rows of numbers, as scikit-learn's checks give them: each is drawn as a texture."""

    def _read(self, X, y, part):
        if isinstance(X, Dataset):
            return X
        rows = validate_data(self, X, reset=part == "train", dtype=float)
        drawings = np.random.default_rng(0).normal(size=(1 + rows.shape[1], 12, 12))
        return super()._read(drawings[0] + np.tensordot(rows, drawings[1:], 1), y, part)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = True
        tags.input_tags.three_d_array = tags.input_tags.string = False
        return tags


def test_checks__scikit_learn_has_one_for_images():
    with pytest.warns(SkipTestWarning, match="Can't test estimator TextureClassifier"):
        checks = list(estimator_checks_generator(dsc.TextureClassifier()))
    assert len(checks) == 1
    for estimator, check in checks:
        check(estimator)


@parametrize_with_checks(
    [
        DrawnRows(
            n_components=8, diameter=5, n_angles=4, max_iter=1, patches_per_image=12,
            scheduler="synchronous",
        )
    ]
)  # fmt: skip
def test_checks__all_pass_where_rows_are_drawn(estimator, check):
    check(estimator)


# --- stores -------------------------------------------------------------------------------------


def test_save__load_says_the_same(fitted, test, tmp_path):
    fitted.save(tmp_path / "model.zarr")
    loaded = dsc.TextureClassifier.load(tmp_path / "model.zarr")
    assert_same(loaded.model_, fitted.model_)
    assert loaded.classes_.tolist() == fitted.classes_.tolist()
    np.testing.assert_array_equal(loaded.distances(test[0]), fitted.distances(test[0]))
    np.testing.assert_array_equal(loaded.predict(test[0]), fitted.predict(test[0]))
    assert loaded.get_params().items() >= OPTIONS.items()


def test_save__overwrites_nothing(fitted, tmp_path):
    (tmp_path / "model.zarr").mkdir()
    (tmp_path / "model.zarr" / "mine").write_text("mine")
    with pytest.raises(DscError, match=r"model\.zarr"):
        fitted.save(tmp_path / "model.zarr")
    assert [path.name for path in (tmp_path / "model.zarr").iterdir()] == ["mine"]


def test_load__options_that_a_store_does_not_have_are_as_they_were():
    stored = {k: v for k, v in CONFIG.items() if k not in ("unit", "rotations", "classifier")}
    config = stored_config(stored)
    assert (config.unit, config.rotations, config.classifier) == (False, "even", "nearest")
    assert stored_config(asdict(TextureConfig())) == TextureConfig()


def test_load__refuses_what_is_no_texture_model(tmp_path, natural_patches):
    with pytest.raises(DscError, match="nothing is there"):
        dsc.TextureClassifier.load(tmp_path / "none")
    dsc.learn(natural_patches(7, 300), 2, 1, n_iterations=0).save(tmp_path / "plain.zarr")
    with pytest.raises(DscError, match="found a store of model, need one of texture"):
        dsc.TextureClassifier.load(tmp_path / "plain.zarr")


# --- run folders --------------------------------------------------------------------------------


def fail(*_, **__):
    raise AssertionError("this was done already")


def count_calls(monkeypatch):
    """The images that are labelled from now on."""
    seen, part = [], features.label_part

    def watched(images, labeller):
        seen.extend(images)
        return part(images, labeller)

    monkeypatch.setattr(features, "label_part", watched)
    return seen


def test_run__a_second_fit_is_the_first(train, test, fitted, tmp_path, monkeypatch):
    first = make(run=tmp_path / "run").fit(*train)
    assert_same(first.model_, fitted.model_)
    monkeypatch.setattr(fit, "advance", fail)
    seen = count_calls(monkeypatch)
    second = make(run=tmp_path / "run").fit(*train)
    assert_same(second.model_, fitted.model_)
    assert seen == []
    assert not list((tmp_path / "run").glob("patches*"))  # they are there only while it learns
    loaded = dsc.TextureClassifier.load(tmp_path / "run")
    np.testing.assert_array_equal(loaded.predict(test[0]), fitted.predict(test[0]))


def test_run__a_second_transform_labels_nothing(train, test, fitted, tmp_path, monkeypatch):
    model = make(run=tmp_path / "run").fit(*train)
    seen = count_calls(monkeypatch)
    expected = fitted.transform(test[0])
    assert len(seen) == 16
    np.testing.assert_array_equal(model.transform(test[0][:10]), expected[:10])
    assert len(seen) == 26
    np.testing.assert_array_equal(model.transform(test[0]), expected)
    assert len(seen) == 32  # the other six
    np.testing.assert_array_equal(model.transform(test[0]), expected)
    assert len(seen) == 32


def interrupted(n_events):
    seen = []

    def progress(event):
        seen.append(event)
        if len(seen) == n_events:
            raise KeyboardInterrupt

    return progress


@pytest.fixture
def small_rounds(monkeypatch):
    """Dataset images are logged two by two."""
    monkeypatch.setattr(features, "TASKS", 1)
    monkeypatch.setattr(features, "TASK_PATCHES", 2 * 14**2)


@pytest.mark.parametrize("n_events", [1, 2, 3, 4, 6, 9])
def test_run__an_interrupted_fit_ends_in_the_same_bits(
    suite, fitted, tmp_path, small_rounds, n_events
):
    data, config = read_inputs(suite), TextureConfig(**CONFIG)
    run = tmp_path / "run"
    place = {"run": run, "scheduler": "synchronous"}
    with pytest.raises(KeyboardInterrupt):
        fit_in(data, config, progress=interrupted(n_events), **place)
    with pytest.raises(DscError):
        TextureModel.load(run)
    assert_same(fit_in(data, config, resume=True, **place), fitted.model_)
    assert_same(TextureModel.load(run), fitted.model_)


def test_run__resuming_does_only_what_is_missing(suite, tmp_path, small_rounds, monkeypatch):
    data, config = read_inputs(suite), TextureConfig(**CONFIG)
    place = {"run": tmp_path / "run", "scheduler": "synchronous"}
    events = []
    fit_in(data, config, progress=events.append, scheduler="synchronous")
    with pytest.raises(KeyboardInterrupt):  # before the last two images
        fit_in(data, config, progress=interrupted(len(events) - 1), **place)
    seen = count_calls(monkeypatch)
    fit_in(data, config, resume=True, **place)
    assert len(seen) == 2


def test_run__a_classifier_continues_what_was_interrupted(suite, fitted, tmp_path):
    data, config = read_inputs(suite), TextureConfig(**CONFIG)
    with pytest.raises(KeyboardInterrupt):
        fit_in(data, config, run=tmp_path / "run", progress=interrupted(2))
    assert_same(make(run=tmp_path / "run").fit(suite).model_, fitted.model_)


@pytest.fixture(scope="module")
def runs(suite, tmp_path_factory):
    """A folder of two runs: one was interrupted, one is finished."""
    data, config = read_inputs(suite), TextureConfig(**CONFIG)
    folder = tmp_path_factory.mktemp("runs")
    fit_in(data, config, run=folder / "finished")
    with pytest.raises(KeyboardInterrupt):
        fit_in(data, config, run=folder / "interrupted", progress=interrupted(2))
    return folder


@pytest.mark.parametrize("state", ["interrupted", "finished"])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_atoms": 3}, "n_atoms"),
        ({"stride": 2}, "stride"),
        ({"seed": 1}, "seed"),
        ({"sparsity": 2, "update": "mod"}, r"(?s)sparsity.*update|update.*sparsity"),
    ],
)
def test_run__resuming_with_other_options_names_them(
    suite, runs, fitted, tmp_path, change, message, state
):
    data, run = read_inputs(suite), tmp_path / "run"
    shutil.copytree(runs / state, run)
    options = (run / "run.toml").read_bytes()
    with pytest.raises(DscError, match=message):
        fit_in(data, TextureConfig(**{**CONFIG, **change}), run=run, resume=True)
    assert (run / "run.toml").read_bytes() == options  # which the error points to
    again = fit_in(data, TextureConfig(**CONFIG), run=run, resume=True)
    assert_same(again, fitted.model_)  # the refused attempt has spoilt nothing


def test_run__resuming_with_other_images_is_refused(suite, train, tmp_path):
    run = tmp_path / "run"
    make(run=run).fit(*train)
    other = [train[0][0][::-1].copy(), *train[0][1:]]
    with pytest.raises(DscError, match="dashes"):
        make(run=run).fit(other, train[1])
    with pytest.raises(DscError, match="wide"):
        make(run=run).fit(train[0][:-3], train[1][:-3])


def test_run__an_existing_one_needs_resume(suite, tmp_path):
    data, config = read_inputs(suite), TextureConfig(**{**CONFIG, "n_iterations": 0})
    fit_in(data, config, run=tmp_path / "run")
    with pytest.raises(DscError, match="run"):
        fit_in(data, config, run=tmp_path / "run")


def test_run__a_folder_of_something_else_is_refused(train, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(DscError, match="exists"):
        make(run=tmp_path).fit(*train)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_run__none_leaves_nothing_behind(train, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make(max_iter=0).fit(*train)
    assert not any(tmp_path.iterdir())


# --- bad input ----------------------------------------------------------------------------------


def test_bad_input__a_class_without_images(class_folders, tmp_path):
    folder = tmp_path / "folders"
    shutil.copytree(class_folders, folder)
    (folder / "zigzag").mkdir()
    with pytest.raises(DscError, match="zigzag"):
        make().fit(folder)


@pytest.mark.parametrize("labels", [["wide"] * 12, [1] * 12])
def test_bad_input__fewer_than_two_classes(train, labels):
    with pytest.raises(DscError, match=r"(?s)found.*1.*(at least|need).*2|two"):
        make().fit(train[0], labels)


def test_bad_input__one_folder_of_a_single_class(class_folders):
    with pytest.raises(DscError, match="class"):
        make().fit(class_folders / "wide")


def test_bad_input__no_labels(train):
    with pytest.raises(DscError, match=r"class|label"):
        make().fit(train[0])


@pytest.mark.parametrize("n_labels", [0, 11, 13])
def test_bad_input__wrong_number_of_labels(train, n_labels):
    with pytest.raises(DscError, match=rf"(?s){n_labels}.*12|12.*{n_labels}"):
        make().fit(train[0], (train[1] + train[1])[:n_labels])


def test_bad_input__wrong_number_of_labels_at_score_time(fitted, test):
    with pytest.raises(DscError, match=r"(?s)15.*16|16.*15"):
        fitted.score(test[0], test[1][:15])


def test_bad_input__no_labels_at_score_time(fitted, test):
    with pytest.raises(DscError, match=r"class|label"):
        fitted.score(test[0])


def test_bad_input__unknown_labels_at_score_time(fitted, test):
    truth = ["marble", *test[1][1:-1], "felt"]
    with pytest.raises(DscError, match=r"(?s)felt.*marble|marble.*felt"):
        fitted.score(test[0], truth)


def test_bad_input__images_smaller_than_the_diameter(train, fitted):
    small = [*train[0][:10], train[0][10][:6], train[0][11][:, :5]]
    for use in (lambda: make().fit(small, train[1]), lambda: fitted.predict(small)):
        with pytest.raises(DscError, match="7") as caught:
            use()
        assert "6 × 48" in str(caught.value)
        assert "48 × 5" in str(caught.value)


def test_bad_input__constant_images(train, fitted):
    flat = [np.full((48, 48), value, np.uint8) for value in (0, 77)]
    images = [flat[0], *train[0][1:11], flat[1]]
    for use in (lambda: make().fit(images, train[1]), lambda: fitted.predict(images)):
        with pytest.raises(DscError, match="constant") as caught:
            use()
        assert "2 problems" in str(caught.value)


def test_bad_input__constant_training_images_are_refused_before_anything_is_learned(train):
    images = [*train[0][:11], np.zeros((48, 48))]
    events = []
    with pytest.raises(DscError, match="constant"):
        fit_in(read_inputs(images, train[1]), TextureConfig(**CONFIG), progress=events.append)
    assert events == []


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_bad_input__pixels_that_are_no_numbers(train, fitted, value):
    images = [image / 255 for image in train[0]]
    images[7][20, 20] = value
    for use in (
        lambda: make().fit(images, train[1]),
        lambda: fitted.predict(images),
        lambda: fitted.label_map(images[7]),
    ):
        with pytest.raises(DscError, match=r"nan|NaN|inf|finite"):
            use()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "rotatonal"}, "did you mean 'rotational'"),
        ({"method": "standrad"}, "did you mean 'standard'"),
        ({"update": "ksdv"}, "did you mean 'ksvd'"),
        ({"n_components": 0}, "^n_components: found 0"),
        ({"stride": 0, "patches_per_image": -1}, "(?s)patches_per_image.*stride"),
        ({"n_nonzero_coefs": 1.5}, "^n_nonzero_coefs"),
        ({"diameter": 1}, "diameter"),
        ({"max_iter": -1}, "^max_iter"),
        ({"random_state": -1}, "^random_state"),
    ],
)
def test_bad_input__options_by_name(train, options, message):
    with pytest.raises(DscError, match=message):
        make(**options).fit(*train)


@pytest.mark.parametrize(
    ("images", "message"),
    [
        ([], "found"),
        ([np.zeros(48)], "shape"),
        ([np.zeros((2, 48, 48, 3, 2))], "shape"),
        (["none.png"], r"none\.png"),
        ([None], "image 0: found"),
    ],
)
def test_bad_input__what_is_no_image(fitted, images, message):
    with pytest.raises(DscError, match=message):
        fitted.predict(images)


def test_bad_input__a_damaged_file(class_folders, tmp_path):
    folder = tmp_path / "folders"
    shutil.copytree(class_folders, folder)
    broken = sorted((folder / "mesh").iterdir())[0]
    broken.write_bytes(broken.read_bytes()[:100])
    with pytest.raises(DscError, match=broken.name):
        make().fit(folder)
