"""A scikit-learn style front for people with arrays."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import isqrt
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from dsc.dictionary.config import LearnConfig
from dsc.dictionary.inputs import patches_of
from dsc.dictionary.learning import learn_many, learn_more
from dsc.dictionary.loop import State
from dsc.dictionary.model import Dictionary
from dsc.errors import DscError, unknown_choice
from dsc.images import Image, open_images
from dsc.patches import ArrayPatches
from dsc.pursuit import EMPTY, Codes

try:
    from sklearn.base import BaseEstimator, TransformerMixin
    from sklearn.utils import Tags, check_array
    from sklearn.utils.metadata_routing import UNUSED
    from sklearn.utils.validation import validate_data

    from dsc.estimators import NotFitted, ShowsCard, config_of, sklearn_words
except ModuleNotFoundError as error:
    raise ImportError(
        "RotationalDictionaryLearning needs scikit-learn: pip install 'dsc[sklearn]'"
    ) from error


class RotationalDictionaryLearning(ShowsCard, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Learn atoms that may appear in any orientation, and code with them.

    Patches are rows: square ones flattened, (n_samples, diameter²), in an array or a data frame;
    or they are images (n_samples, diameter, diameter). A code is a row over all atoms at all
    angles, (n_samples, n_components · n_angles): column m · n_angles + r is atom m rotated by
    2πr / n_angles; with `refine`, n_angles is 64 times that given.

    With a `diameter`, samples are whole images, (n_samples, y, x) or a list of (y, x) and of paths,
    and patches of this diameter are cut out of them; color becomes grey. The row of an image is the
    mean over its patches, of the sizes of coefficients where `pool` is None.

    Parameters
    ----------
    n_components
        Atoms; the alias of `n_atoms` of `dsc.learn`.
    n_nonzero_coefs
        Atoms per patch, at most; the alias of `sparsity`.
    n_angles
        Size of the angle grid; None for 60, or 1 for the pixel basis.
    max_iter
        Passes over the patches; the alias of `n_iterations`.
    mode, batch_size, forget, basis, pursuit, refine, update, init, center, unit
        As in `dsc.learn` and `dsc.ArrayPatches`.
    diameter, stride
        Pixels across the patches of images, and between them; None if samples are patches.
    pool
        None for a column per atom and angle; "angles" for two columns per atom that do not change
        when a sample is rotated: how often it is used, and the energy of its coefficients.
    sparse_output
        Whether `transform` gives a sparse array; otherwise a dense one, which `set_output` needs
        for data frames.
    scheduler
        Where to run, as in `dsc.learn`.
    random_state
        A whole number, which is the `seed` of `dsc.learn`; or what a seed is drawn from: a
        `RandomState`, or None for that of NumPy.
    verbose
        Whether progress is shown; the alias of `progress`.

    Attributes
    ----------
    components_
        (n_components, diameter²) the atoms, zero outside the disk.
    dictionary_
        The `dsc.Dictionary`.
    error_
        (iteration,) mean squared error per pixel of the disk, first that of the first atoms; after
        `partial_fit`, of each call that of its patches when they were coded, before the atoms
        learned from them.
    n_iter_
        Passes that were made.
    n_features_in_
        diameter².
    feature_names_in_
        The columns of the data frame, if it was one whose columns are named by words.

    Examples
    --------
    >>> import numpy as np
    >>> patches = np.random.default_rng(0).random((200, 7, 7))
    >>> model = RotationalDictionaryLearning(n_components=3, n_angles=8, max_iter=2).fit(patches)
    >>> model.transform(patches.reshape(200, 49)).shape
    (200, 24)
    >>> model.get_feature_names_out()[9]
    'atom1_angle45'
    """

    _learned = "dictionary_"
    __metadata_request__transform: ClassVar = {"pool": UNUSED}  # an option, not data of samples

    def __init__(
        self,
        n_components: int = 20,
        n_nonzero_coefs: int = 4,
        n_angles: int | None = None,
        max_iter: int = 10,
        mode: str = "batch",
        batch_size: int | None = None,
        forget: float | None = None,
        basis: str = "disk",
        pursuit: str = "ols",
        refine: bool = False,
        update: str | None = None,
        init: Any = "random",
        center: bool = False,
        unit: bool = False,
        diameter: int | None = None,
        stride: int = 1,
        pool: str | None = None,
        sparse_output: bool = True,
        scheduler: Any = None,
        random_state: int | np.random.RandomState | None = 0,
        verbose: bool = False,
    ) -> None:
        self.n_components = n_components
        self.n_nonzero_coefs = n_nonzero_coefs
        self.n_angles = n_angles
        self.max_iter = max_iter
        self.mode = mode
        self.batch_size = batch_size
        self.forget = forget
        self.basis = basis
        self.pursuit = pursuit
        self.refine = refine
        self.update = update
        self.init = init
        self.center = center
        self.unit = unit
        self.diameter = diameter
        self.stride = stride
        self.pool = pool
        self.sparse_output = sparse_output
        self.scheduler = scheduler
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: ArrayLike, y: object = None) -> Self:  # noqa: ARG002
        """Learn the dictionary from patches, or from those of images; `y` is ignored."""
        check_pool(self.pool)
        with sklearn_words(), self._source(X, reset=True) as patches:
            problem = (patches, config_of(self, LearnConfig))
            dictionary = learn_many([problem], **self._how)[0]
        self._state: State | None = None
        return self._keep(dictionary, len(dictionary.history) - 1)

    def partial_fit(self, X: ArrayLike, y: object = None) -> Self:  # noqa: ARG002
        """Learn on from more patches, or from those of more images; `y` is ignored.

        One online pass over them, whatever `mode` and `max_iter` are: running statistics are kept
        from call to call. The first call starts as `fit` does, or from what `fit` has learned.
        """
        check_pool(self.pool)
        fitted: Dictionary | None = getattr(self, "dictionary_", None)
        last: State | None = getattr(self, "_state", None)
        if last is None and fitted is not None:
            last = State.start(fitted.atoms)
        with sklearn_words(), self._source(X, reset=fitted is None) as patches:
            config = config_of(self, LearnConfig, mode="online")
            dictionary, self._state = learn_more(patches, config, last, **self._how)
        return self._keep(dictionary, self._state.iteration)

    def _keep(self, dictionary: Dictionary, n_passes: int) -> Self:
        """Show what was learned."""
        atoms = dictionary.atoms
        self.dictionary_ = dictionary
        self.components_ = dictionary.basis.to_image(atoms, fill=0.0).reshape(len(atoms), -1)
        self.error_, self.n_iter_ = dictionary.history, n_passes
        return self

    def transform(
        self, X: ArrayLike, pool: str | None = None
    ) -> sparse.csr_array | NDArray[np.float32]:
        """Codes over all atoms at all angles, or pooled over angles.

        `pool` is that of the estimator if it is None.
        """
        dictionary, pool = self._dictionary(), check_pool(pool or self.pool)
        with self._source(X) as patches:
            codes = dictionary.encode(patches, **self._how).codes
            sample = np.arange(len(codes))
            if self.diameter is not None:
                sample = patches.positions(0, len(codes)).image.astype(np.int64)
        row, _ = np.nonzero(codes.used)
        atom, angle = codes.atom[codes.used].astype(np.int64), codes.angle[codes.used]
        coef, n_atoms = codes.coef[codes.used], len(dictionary.atoms)
        if pool is not None:
            row, column = np.tile(row, 2), np.concatenate([atom, n_atoms + atom])
            values, n_columns = np.concatenate([np.ones_like(coef), coef**2]), 2 * n_atoms
        else:
            column, n_columns = atom * dictionary.n_angles + angle, n_atoms * dictionary.n_angles
            values = coef if self.diameter is None else np.abs(coef)
        weight = 1 / np.bincount(sample) if self.diameter is not None else np.ones(len(codes))
        n_rows = len(weight)
        rows = sparse.csr_array(
            ((values * weight[sample[row]]).astype(np.float32), (sample[row], column)),
            shape=(n_rows, n_columns),
        )
        return rows if self.sparse_output else rows.toarray()

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[np.object_]:
        """The columns of codes by atom and degrees, such as "atom3_angle42", or "atom3_energy".

        They do not depend on `input_features`, the names of the pixels, which may be left out.
        """
        dictionary = self._dictionary()
        if input_features is not None and self.diameter is None:
            given = np.asarray(input_features, object)
            if len(given) != self.n_features_in_:
                raise DscError(
                    "input_features should have length equal to the number of features: found "
                    f"{len(given)}, need {self.n_features_in_}"
                )
            if not np.array_equal(given, getattr(self, "feature_names_in_", given)):
                raise DscError("input_features is not equal to feature_names_in_: leave it out")
        if self.pool is not None:
            atoms = range(len(dictionary.atoms))
            return np.array([f"atom{m}_{of}" for of in ("use", "energy") for m in atoms], object)
        degrees = 360 * np.arange(dictionary.n_angles) / dictionary.n_angles
        names = [f"atom{m}_angle{a:g}" for m in range(len(dictionary.atoms)) for a in degrees]
        return np.array(names, object)

    def inverse_transform(self, X: Any) -> NDArray[np.float32]:
        """Patches of codes: (n_samples, diameter²), zero outside the disk."""
        dictionary = self._dictionary()
        if self.pool is not None or self.diameter is not None:
            raise DscError(
                "inverse_transform: found pooled codes, which have no patches: leave pool and "
                "diameter out"
            )
        matrix = sparse.csr_array(check_array(X, accept_sparse="csr", input_name="X"))
        n_columns = len(dictionary.atoms) * dictionary.n_angles
        if matrix.shape[1] != n_columns:
            raise DscError(f"X: found shape {matrix.shape}, need (n_samples, {n_columns})")
        codes = _codes(matrix, dictionary.n_angles)
        images = np.nan_to_num(dictionary.decode(codes))
        return images.reshape(len(images), -1)

    def score(self, X: ArrayLike, y: object = None) -> float:  # noqa: ARG002
        """Minus the mean squared error per pixel of the disk: larger is better."""
        with self._source(X) as patches:
            return -self._dictionary().encode(patches, **self._how).mse

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags

    @property
    def _how(self) -> dict[str, Any]:
        return {"scheduler": self.scheduler, "progress": bool(self.verbose)}

    def _dictionary(self) -> Dictionary:
        if not hasattr(self, "dictionary_"):
            raise NotFitted(self)
        return self.dictionary_

    @contextmanager
    def _source(self, X: Any, reset: bool = False) -> Iterator[Any]:
        """The patches of what a user gave: patches, or images out of which they are cut."""
        if self.diameter is None:
            yield self._patches(X, reset)
            return
        if isinstance(X, np.ndarray) and X.ndim not in (3, 4):
            raise DscError(
                f"X: found shape {X.shape}, need images (n_samples, y, x) or (n_samples, y, x, "
                "color)"
            )
        if isinstance(X, str | PathLike):
            images = open_images(X)
        else:
            images = [_one_image(image) for image in X]
        if not images:
            raise DscError("X: found none, need images")
        cut = {name: getattr(self, name) for name in ("diameter", "stride", "center", "unit")}
        with patches_of(images, cut, config_of(self, LearnConfig)) as patches:
            yield patches

    def _patches(self, X: ArrayLike, reset: bool = False) -> ArrayPatches:
        """Patches of what a user gave; `reset` keeps the number and the names of its features."""
        if (X.ndim if hasattr(X, "ndim") else np.asarray(X).ndim) > 2:
            images = np.asarray(X)
            if images.ndim != 3 or images.shape[1] != images.shape[2]:
                raise DscError(
                    f"X: found shape {images.shape}, need (n_samples, diameter²) or (n_samples, "
                    "diameter, diameter)"
                )
            X = images.reshape(len(images), images.shape[1] ** 2)
        rows = validate_data(self, X, reset=reset)
        return ArrayPatches(self._squares(rows), center=self.center, unit=self.unit)

    def _squares(self, rows: NDArray[Any]) -> NDArray[Any]:
        """(n_samples, diameter, diameter) of rows."""
        n_features = rows.shape[1]
        diameter = isqrt(n_features)
        if diameter < 3 or diameter**2 != n_features:
            raise DscError(
                f"X: found {n_features} feature(s), need a square number of at least 9: patches "
                "of diameter × diameter pixels"
            )
        return rows.reshape(len(rows), diameter, diameter)


def _one_image(image: Any) -> Image:
    """The image of one sample."""
    found = open_images(image)
    if len(found) != 1:
        raise DscError(
            f"X: found {len(found)} in one sample, need images of one each: (y, x), (y, x, color), "
            "or a path"
        )
    return found[0]


def check_pool(pool: str | None) -> str | None:
    """A way to pool codes, refused if there is none of this name."""
    if pool not in (None, "angles"):
        raise unknown_choice("pool", str(pool), ("angles",))
    return pool


def _codes(matrix: sparse.csr_array, n_angles: int) -> Codes:
    """Codes of sparse rows."""
    counts = np.diff(matrix.indptr)
    width = max(1, int(counts.max(initial=0)))
    row = np.repeat(np.arange(len(counts)), counts)
    slot = np.arange(matrix.nnz) - np.repeat(matrix.indptr[:-1], counts)
    atom = np.full((len(counts), width), EMPTY, np.uint16)
    angle = np.zeros((len(counts), width), np.uint16)
    coef = np.zeros((len(counts), width), np.float32)
    atom[row, slot] = matrix.indices // n_angles
    angle[row, slot] = matrix.indices % n_angles
    coef[row, slot] = matrix.data
    return Codes(atom, angle, coef, np.zeros(len(counts), np.float32), n_angles)
