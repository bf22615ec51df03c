"""`TextureClassifier`: texture classification with scikit-learn's habits."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import fields
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dsc.dictionary import RunTarget
from dsc.engine import Engine, open_engine
from dsc.texture.config import TextureConfig
from dsc.texture.dataset import Dataset, label_indices, read_inputs
from dsc.texture.fit import fit_texture
from dsc.texture.histograms import check_images
from dsc.texture.labelling import label_map
from dsc.texture.model import Prediction, TextureModel

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
    from sklearn.utils import Tags
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import validate_data

    from dsc.estimators import ALIASES, NotFitted, ShowsCard, config_of, sklearn_words
except ModuleNotFoundError as error:
    raise ImportError("TextureClassifier needs scikit-learn: pip install 'dsc[sklearn]'") from error


class TextureClassifier(ShowsCard, ClassifierMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Tell textures apart by rotational dictionaries.

    One dictionary is learned per class; every patch of an image is labelled by the dictionary that
    codes it best; an image is described by the histogram of these labels and of the atoms that
    code best, and gets the class whose training images have the nearest histograms by χ².

    Images are an array (image, y, x), a sequence of arrays (y, x) or (y, x, color) of any sizes,
    of paths, a folder with one folder per class, or a suite in Outex layout (`fit` takes its
    training images, the other methods its test images). Whole numbers are divided by the
    largest one of their type, floats stay as they are.

    Parameters
    ----------
    n_components
        Atoms in the dictionary of each class; the alias of `n_atoms` of `TextureConfig`.
    n_nonzero_coefs
        Atoms per patch, at most; the alias of `sparsity`.
    max_iter
        Passes over the training patches; the alias of `n_iterations`.
    diameter
        Pixels across a patch, a disk: one number, or a tuple of several, which give dictionaries
        of each, and histograms joined with equal weights.
    patches_per_image, unit, stride, n_angles, update
        As in `TextureConfig`.
    method
        "rotational", "augmented" or "standard".
    rotations
        Angles of "augmented": "even", sixty all around, or the eight of the "paper".
    histogram
        Bins of the histograms: "classes" (the paper's), "atoms", or "both".
    classifier
        "nearest": the class of the nearest training image; "class-nearest": the class whose three
        nearest images are nearest on average; "svm": a support vector machine with the kernel
        exp(−χ² / mean χ²), its C chosen by cross-validation on the training images.
    random_state
        A whole number, which is the `seed` of `TextureConfig`; or what a seed is drawn from: a
        `RandomState`, or None for that of NumPy, with which no run can be continued.
    scheduler, n_workers, memory_limit
        Where to run, as in `dsc.learn`. The result has the same bits on all.
    run
        A folder in which an interrupted `fit` or `transform` continues; None keeps nothing. A
        cluster on other machines needs one that all of them see, and paths of images that all of
        them can read.
    verbose
        Whether progress is shown; the alias of `progress`.

    Attributes
    ----------
    classes_
        The classes, sorted, in the type of `y`; strings after `load`.
    model_
        The `TextureModel`: atoms, histograms of the training images.
    n_iter_
        Passes that were made.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> waves = np.sin(np.arange(40) * np.array([[0.5], [1.5]]))  # two wavelengths
    >>> images = [np.outer(np.ones(40), w) + 0.1 * rng.random((40, 40)) for w in waves]
    >>> model = TextureClassifier(n_components=2, diameter=7, patches_per_image=200, max_iter=2)
    >>> model.fit(images, ["long", "short"]).predict([p.T for p in images]).tolist()
    ['long', 'short']
    """

    _learned = "model_"

    def __init__(
        self,
        n_components: int = 100,
        diameter: int | tuple[int, ...] = (7, 15),
        n_nonzero_coefs: int = 1,
        method: str = "rotational",
        rotations: str = "even",
        patches_per_image: int = 4000,
        unit: bool = True,
        stride: int = 1,
        histogram: str = "both",
        classifier: str = "class-nearest",
        n_angles: int | None = None,
        max_iter: int = 10,
        update: str = "ksvd",
        random_state: int | np.random.RandomState | None = 0,
        scheduler: Any = None,
        n_workers: int | None = None,
        memory_limit: str | int | None = None,
        run: str | PathLike[str] | None = None,
        verbose: bool = False,
    ) -> None:
        self.n_components = n_components
        self.diameter = diameter
        self.n_nonzero_coefs = n_nonzero_coefs
        self.method = method
        self.rotations = rotations
        self.patches_per_image = patches_per_image
        self.unit = unit
        self.stride = stride
        self.histogram = histogram
        self.classifier = classifier
        self.n_angles = n_angles
        self.max_iter = max_iter
        self.update = update
        self.random_state = random_state
        self.scheduler = scheduler
        self.n_workers = n_workers
        self.memory_limit = memory_limit
        self.run = run
        self.verbose = verbose

    def fit(self, X: Any, y: Sequence[Any] | None = None) -> Self:
        """Learn the dictionaries, and the histograms of the training images.

        Parameters
        ----------
        X
            Images.
        y
            Their classes; None where X says them (a folder per class, a suite).
        """
        data = self._read(X, y, part="train")
        target = None if self.run is None else RunTarget(self.run, resume=True)
        with sklearn_words():
            config = config_of(self, TextureConfig)  # refused before anything is started
            with self._engine() as engine:
                model = fit_texture(data, config, engine, target)
        self._set(model, model.label_names if y is None else y)
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:
        """(image, bin) the histograms of images, of classes and atoms among their patches."""
        return self._predict(X).histograms

    def distances(self, X: Any) -> NDArray[np.float64]:
        """(image, class) χ² to the nearest training image of each class; small is alike.

        With "class-nearest" it is the mean of the three nearest. Classes are in the order of
        `classes_`.
        """
        distances = self._predict(X).distances
        return distances[:, np.argsort(self._labels)]

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each image, as the `classifier` says."""
        labels = self._predict(X).labels
        return np.asarray(self._labels[labels])

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """(image, class) how likely each class is, in the order of `classes_`; rows sum to one.

        In proportion to exp(−d / s), with the distance d to the class (see `distances`), and s the
        mean such distance of the training images to others of their own class: as if all classes
        were as frequent, and distances within a class spread exponentially. With "svm" −d / s is
        the decision value over a temperature, which makes those of training images that were held
        out most likely. The most likely class is the predicted one, unless two are exactly as near.

        Images that differ from the training images more than those from one another, such as
        rotated ones, get numbers that are too sure; `sklearn.calibration.CalibratedClassifierCV`
        makes better ones from more images.
        """
        found = self._predict(X)
        return self.model_.probabilities(found)[:, np.argsort(self._labels)]

    def score(self, X: Any, y: Sequence[Any] | None = None) -> float:
        """The share of images whose class is right."""
        model, data = self._fitted(), self._read(X, y, part="test")
        truth = label_indices(data, model.label_names)
        return float((self._predict(data).labels == truth).mean())

    def label_map(self, image: Any) -> NDArray[np.int64]:
        """(y, x) the class of the patch around every pixel, a place in `classes_`; −1 for none."""
        model = self._fitted()
        one = read_inputs([image], part="test").images[0]
        check_images([one], model.labellers.diameter)
        places = label_map(model.labellers, one)
        order = np.argsort(np.argsort(self._labels))
        return np.where(places < 0, places, order[places])

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:  # noqa: ARG002
        """The bins of histograms: a class, or one of its atoms, such as "grass_atom3"."""
        return np.array(self._fitted().bin_names, object)

    def save(self, url: str | PathLike[str]) -> None:
        """Write the model as a store at a path or URL that does not exist yet."""
        self._fitted().save(url)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """A fitted classifier from a store, or from a run folder of `dsc texture`."""
        model = TextureModel.load(path)
        names = [field.name for field in fields(model.config)]
        made = cls(**{ALIASES.get(name, name): getattr(model.config, name) for name in names})
        if len(model.config.diameter) == 1:
            made.diameter = model.config.diameter[0]  # as it is by default
        made._set(model, model.label_names)
        return made

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        tags.input_tags.string = True  # paths
        tags.target_tags.required = False  # folders and suites say the classes
        return tags

    def _read(self, X: Any, y: Any, part: str) -> Dataset:
        """Images, and their classes if there are any."""
        if y is not None:
            y = validate_data(self, y=y)
            check_classification_targets(y)
        return read_inputs(X, y, part=part)

    def _predict(self, X: Any) -> Prediction:
        model, images = self._fitted(), self._read(X, None, part="test").images
        log = None if self.run is None else Path(self.run) / "features.jsonl"
        with self._engine() as engine:
            return model.predict(images, engine, log)

    def _fitted(self) -> TextureModel:
        if not hasattr(self, "model_"):
            raise NotFitted(self)
        return self.model_

    def _set(self, model: TextureModel, labels: Any) -> None:
        """Keep the model, and its classes in the type that they were given."""
        given = {str(label): label for label in np.unique(np.asarray(labels))}
        self.model_ = model
        self._labels = np.array([given[name] for name in model.label_names])  # in the model's order
        self.classes_ = np.sort(self._labels)
        self.n_iter_ = model.history.shape[1] - 1

    def _engine(self) -> AbstractContextManager[Engine]:
        return open_engine(self.scheduler, self.n_workers, self.memory_limit, bool(self.verbose))
