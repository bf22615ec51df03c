"""Dictionaries by what tells them apart, and what they make of patches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dsc import Dictionary, LearnConfig, learn_many

Key = TypeVar("Key")


def learn_all(patches: Any, configs: Mapping[Key, LearnConfig]) -> dict[Key, Dictionary]:
    """Learn from the same patches in every way, at once."""
    models = learn_many([(patches, config) for config in configs.values()])
    return dict(zip(configs, models, strict=True))


def coded(model: Dictionary, squares: NDArray[np.floating]) -> NDArray[np.floating]:
    """Patches (patch, y, x) as a dictionary codes them."""
    codes = model.encode(squares).codes
    assert codes is not None
    return model.decode(codes)
