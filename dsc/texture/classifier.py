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
from dsc.errors import not_fitted
from dsc.texture.config import TextureConfig
from dsc.texture.dataset import label_indices, read_inputs
from dsc.texture.fit import fit_texture
from dsc.texture.histograms import check_images
from dsc.texture.labelling import label_map
from dsc.texture.model import Prediction, TextureModel

try:
    from sklearn.base import BaseEstimator, ClassifierMixin
except ModuleNotFoundError as error:
    raise ImportError("TextureClassifier needs scikit-learn: pip install 'dsc[sklearn]'") from error


class TextureClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Tell textures apart by rotational dictionaries.

    One dictionary is learned per class; every patch of a picture is labelled by the dictionary that
    codes it best; a picture is described by the histogram of these labels and of the atoms that
    code best, and gets the class of the training picture whose histogram is nearest by χ².

    Pictures are an array (image, y, x), a sequence of arrays (y, x) or (y, x, color) of any sizes,
    of paths, a folder with one folder per class, or a suite in Outex layout (`fit` takes its
    training pictures, the other methods its test pictures). Whole numbers are divided by the
    largest one of their type, floats stay as they are.

    Parameters
    ----------
    n_atoms, diameter, sparsity, patches_per_image, stride, n_angles, n_iterations, update
        As in `TextureConfig`.
    method
        "rotational", "augmented" or "standard".
    histogram
        Bins of the histograms: "classes" (the paper's), "atoms", or "both".
    random_state
        Seed.
    scheduler, n_workers, memory_limit
        Where to run, as in `dsc.learn`. The result has the same bits on all.
    run
        A folder in which an interrupted `fit` or `transform` continues; None keeps nothing. A
        cluster on other machines needs one that all of them see, and paths of pictures that all of
        them can read.

    Attributes
    ----------
    classes_
        The classes, in the type of `y`; strings after `load`.
    model_
        The `TextureModel`: atoms, histograms of the training pictures.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> waves = np.sin(np.arange(40) * np.array([[0.5], [1.5]]))  # two wavelengths
    >>> pictures = [np.outer(np.ones(40), w) + 0.1 * rng.random((40, 40)) for w in waves]
    >>> model = TextureClassifier(n_atoms=2, diameter=7, patches_per_image=200, n_iterations=2)
    >>> model.fit(pictures, ["long", "short"]).predict([p.T for p in pictures]).tolist()
    ['long', 'short']
    """

    def __init__(
        self,
        n_atoms: int = 100,
        diameter: int = 15,
        sparsity: int = 1,
        method: str = "rotational",
        patches_per_image: int = 4000,
        stride: int = 1,
        histogram: str = "both",
        n_angles: int | None = None,
        n_iterations: int = 10,
        update: str = "ksvd",
        random_state: int = 0,
        scheduler: Any = "threads",
        n_workers: int | None = None,
        memory_limit: str | int | None = None,
        run: str | PathLike[str] | None = None,
    ) -> None:
        self.n_atoms = n_atoms
        self.diameter = diameter
        self.sparsity = sparsity
        self.method = method
        self.patches_per_image = patches_per_image
        self.stride = stride
        self.histogram = histogram
        self.n_angles = n_angles
        self.n_iterations = n_iterations
        self.update = update
        self.random_state = random_state
        self.scheduler = scheduler
        self.n_workers = n_workers
        self.memory_limit = memory_limit
        self.run = run

    def fit(self, X: Any, y: Sequence[Any] | None = None) -> Self:
        """Learn the dictionaries, and the histograms of the training pictures.

        Parameters
        ----------
        X
            Pictures.
        y
            Their classes; None where X says them (a folder per class, a suite).
        """
        data = read_inputs(X, y)
        target = None if self.run is None else RunTarget(self.run, resume=True)
        with self._engine() as engine:
            model = fit_texture(data, self._config(), engine, target)
        self._set(model, model.label_names if y is None else list(y))
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:
        """(image, bin) the histograms of pictures, of classes and atoms among their patches."""
        return self._predict(X).histograms

    def distances(self, X: Any) -> NDArray[np.float64]:
        """(image, label) χ² to the nearest training picture of each class; small is alike."""
        return self._predict(X).distances

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of the nearest training picture."""
        labels = self._predict(X).labels
        return np.asarray(self.classes_[labels])

    def score(self, X: Any, y: Sequence[Any] | None = None) -> float:
        """The share of pictures whose class is right."""
        model, data = self._fitted(), read_inputs(X, y, part="test")
        truth = label_indices(data, model.label_names)
        return float((self._predict(data).labels == truth).mean())

    def label_map(self, image: Any) -> NDArray[np.int64]:
        """(y, x) the class of the patch around every pixel, a place in `classes_`; −1 for none."""
        model = self._fitted()
        one = read_inputs([image], part="test").images[0]
        check_images([one], model.config.diameter)
        return label_map(model.labeller, one)

    def save(self, url: str | PathLike[str]) -> None:
        """Write the model as a store at a path or URL that does not exist yet."""
        self._fitted().save(url)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """A fitted classifier from a store, or from a run folder of `dsc texture`."""
        model = TextureModel.load(path)
        names = [f.name for f in fields(model.config) if f.name != "seed"]
        options = {name: getattr(model.config, name) for name in names}
        made = cls(**options, random_state=model.config.seed)
        made._set(model, model.label_names)
        return made

    def _predict(self, X: Any) -> Prediction:
        model, images = self._fitted(), read_inputs(X, part="test").images
        log = None if self.run is None else Path(self.run) / "features.jsonl"
        with self._engine() as engine:
            return model.predict(images, engine, log)

    def _fitted(self) -> TextureModel:
        if not hasattr(self, "model_"):
            raise not_fitted(self)
        return self.model_

    def _set(self, model: TextureModel, labels: Sequence[Any]) -> None:
        """Keep the model, and the classes in its order but in the type that they were given."""
        given = {str(label): label for label in np.unique(np.asarray(labels))}
        self.model_ = model
        self.classes_ = np.array([given[name] for name in model.label_names])

    def _config(self) -> TextureConfig:
        names = [f.name for f in fields(TextureConfig) if f.name != "seed"]
        options = {name: getattr(self, name) for name in names}
        return TextureConfig(**options, seed=self.random_state)

    def _engine(self) -> AbstractContextManager[Engine]:
        return open_engine(self.scheduler, self.n_workers, self.memory_limit)
