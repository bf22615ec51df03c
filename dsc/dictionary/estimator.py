"""A scikit-learn style front for people with arrays."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from dsc.dictionary.learning import learn
from dsc.dictionary.model import Dictionary
from dsc.errors import DscError, not_fitted
from dsc.patches import ArrayPatches
from dsc.pursuit import EMPTY, Codes

try:
    from sklearn.base import BaseEstimator, TransformerMixin
except ModuleNotFoundError as error:
    raise ImportError(
        "RotationalDictionaryLearning needs scikit-learn: pip install 'dsc[sklearn]'"
    ) from error


class RotationalDictionaryLearning(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Learn atoms that may appear in any orientation, and code with them.

    Patches are rows: square ones flattened, (n_samples, diameter²), or (n_samples, y, x). A code
    is a sparse row over all atoms at all angles, (n_samples, n_components · n_angles): column
    m · n_angles + r is atom m turned by 2πr / n_angles.

    Parameters
    ----------
    n_components
        Atoms.
    n_nonzero_coefs
        Atoms per patch, at most.
    n_angles
        Size of the angle grid; None for 60, or 1 for the pixel basis.
    max_iter
        Passes over the patches.
    basis, update, init, center, unit
        As in `dsc.learn` and `dsc.ArrayPatches`.
    scheduler
        Where to run.
    random_state
        Seed.

    Attributes
    ----------
    components_
        (n_components, diameter²) the atoms, zero outside the disk.
    dictionary_
        The `dsc.Dictionary`.
    error_
        (iteration,) mean squared error per pixel of the disk.
    n_features_in_
        diameter².
    """

    def __init__(
        self,
        n_components: int = 20,
        n_nonzero_coefs: int = 4,
        n_angles: int | None = None,
        max_iter: int = 10,
        basis: str = "disk",
        update: str = "ksvd",
        init: str = "random",
        center: bool = False,
        unit: bool = False,
        scheduler: Any = "threads",
        random_state: int = 0,
    ) -> None:
        self.n_components = n_components
        self.n_nonzero_coefs = n_nonzero_coefs
        self.n_angles = n_angles
        self.max_iter = max_iter
        self.basis = basis
        self.update = update
        self.init = init
        self.center = center
        self.unit = unit
        self.scheduler = scheduler
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: object = None) -> Self:  # noqa: ARG002
        """Learn the dictionary from patches; `y` is ignored."""
        self.dictionary_: Dictionary = learn(
            self._patches(X),
            self.n_components,
            self.n_nonzero_coefs,
            n_angles=self.n_angles,
            n_iterations=self.max_iter,
            basis=self.basis,
            update=self.update,
            init=self.init,
            seed=self.random_state,
            scheduler=self.scheduler,
        )
        basis = self.dictionary_.basis
        self.components_ = basis.to_image(self.dictionary_.atoms, fill=0.0).reshape(
            self.n_components, -1
        )
        self.error_ = self.dictionary_.history
        self.n_features_in_ = basis.diameter**2
        return self

    def transform(self, X: ArrayLike) -> sparse.csr_array:
        """Sparse codes over all atoms at all angles."""
        coded = self._dictionary().encode(self._patches(X), scheduler=self.scheduler)
        codes = coded.codes
        n_angles = self.dictionary_.n_angles
        row, _ = np.nonzero(codes.used)
        column = codes.atom[codes.used].astype(np.int64) * n_angles + codes.angle[codes.used]
        shape = (len(codes), self.n_components * n_angles)
        return sparse.csr_array((codes.coef[codes.used], (row, column)), shape=shape)

    def inverse_transform(self, X: Any) -> NDArray[np.float32]:
        """Patches of codes: (n_samples, diameter²), zero outside the disk."""
        dictionary = self._dictionary()
        matrix = sparse.csr_array(X)
        n_columns = self.n_components * dictionary.n_angles
        if matrix.ndim != 2 or matrix.shape[1] != n_columns:
            raise DscError(f"X: found shape {matrix.shape}, need (n_samples, {n_columns})")
        codes = _codes(matrix, dictionary.n_angles)
        images = np.nan_to_num(dictionary.decode(codes))
        return images.reshape(len(images), -1)

    def score(self, X: ArrayLike, y: object = None) -> float:  # noqa: ARG002
        """Minus the mean squared error per pixel of the disk: larger is better."""
        return -self._dictionary().encode(self._patches(X), scheduler=self.scheduler).mse

    def _dictionary(self) -> Dictionary:
        if not hasattr(self, "dictionary_"):
            raise not_fitted(self)
        return self.dictionary_

    def _patches(self, X: ArrayLike) -> ArrayPatches:
        array = np.asarray(X)
        if array.ndim == 2:
            side = round(array.shape[1] ** 0.5)
            if side**2 != array.shape[1]:
                raise DscError(
                    f"X: found {array.shape[1]} features, need a square number: patches of "
                    "diameter × diameter pixels"
                )
            array = array.reshape(len(array), side, side)
        return ArrayPatches(array, center=self.center, unit=self.unit)


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
