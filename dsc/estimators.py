"""What the estimators share: scikit-learn's words for ours, its seeds and its errors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from numbers import Integral
from typing import Any, ClassVar, TypeVar

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state

from dsc.errors import DscError

WORDS = {
    "n_components": "n_atoms",
    "n_nonzero_coefs": "sparsity",
    "max_iter": "n_iterations",
    "random_state": "seed",
    "verbose": "progress",
}
ALIASES = {own: alias for alias, own in WORDS.items()}
_OWN = re.compile(rf"(?<![\w/.-])({'|'.join(ALIASES)})(?![\w/.-])")  # but not in paths

Config = TypeVar("Config")


class NotFitted(DscError, NotFittedError):  # type: ignore[misc]
    """`fit` was not called."""

    def __init__(self, estimator: object) -> None:
        super().__init__(f"this {type(estimator).__name__} is not fitted yet: call fit first")


class ShowsCard:
    """An estimator that a notebook shows as the card of what it has learned, once it is fitted."""

    _learned: ClassVar[str]  # the attribute that `fit` makes, whose card is shown

    def _repr_mimebundle_(self, **options: Any) -> Any:
        learned = getattr(self, self._learned, None)
        if learned is None:
            return super()._repr_mimebundle_(**options)  # type: ignore[misc]
        return {"text/plain": repr(self), "text/html": learned.card().html()}


def config_of(estimator: Any, kind: type[Config], **others: Any) -> Config:
    """The configuration that an estimator's parameters make, with `others` in their place.

    A `random_state` that is a whole number is the seed; a `RandomState`, or None for that of NumPy,
    is asked for one.
    """
    options = {WORDS.get(name, name): v for name, v in estimator.get_params(deep=False).items()}
    if not isinstance(options["seed"], Integral):
        options["seed"] = check_random_state(options["seed"]).randint(np.iinfo(np.int32).max)
    options |= others
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    return kind(**{name: options[name] for name in names if name in options})


@contextmanager
def sklearn_words() -> Iterator[None]:
    """Errors name options as the estimators do."""
    try:
        yield
    except DscError as error:
        raise DscError(_OWN.sub(lambda own: ALIASES[own[0]], str(error))) from error
