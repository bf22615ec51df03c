"""Dictionaries of image atoms that may appear in any orientation.

From pictures: `extract_patches`, `learn`, `Dictionary.encode`, `Dictionary.reconstruct`. From
arrays: the same `learn`, or `RotationalDictionaryLearning`. The numeric core works on plain NumPy
arrays: bases (`disk_basis`), pursuit (`encode`, `decode`), updates (`accumulate`, `solve`).
"""

import importlib
from typing import Any

from dsc.basis import SteerableBasis, annular_basis, disk_basis, pixel_basis, rotation_matrix
from dsc.dictionary import Coded, Dictionary, LearnConfig, learn, learn_many
from dsc.errors import DscError
from dsc.patches import ArrayPatches, PatchConfig, StoredPatches, extract_patches, open_patches
from dsc.pursuit import EMPTY, Codes, decode, encode
from dsc.store import open_dataset as open  # noqa: A004
from dsc.update import accumulate, random_atoms, solve
from dsc.version import __version__

__all__ = [
    "EMPTY",
    "ArrayPatches",
    "Coded",
    "Codes",
    "Dictionary",
    "DscError",
    "LearnConfig",
    "PatchConfig",
    "RotationalDictionaryLearning",
    "SteerableBasis",
    "StoredPatches",
    "TextureClassifier",
    "__version__",
    "accumulate",
    "annular_basis",
    "decode",
    "disk_basis",
    "encode",
    "extract_patches",
    "learn",
    "learn_many",
    "open",
    "open_patches",
    "pixel_basis",
    "random_atoms",
    "rotation_matrix",
    "solve",
]


_ELSEWHERE = {  # imported where they are asked for: scikit-learn is an extra
    "RotationalDictionaryLearning": "dsc.dictionary.estimator",
    "TextureClassifier": "dsc.texture.classifier",
}


def __getattr__(name: str) -> Any:
    """Import the scikit-learn fronts."""
    if name in _ELSEWHERE:
        try:
            return getattr(importlib.import_module(_ELSEWHERE[name]), name)
        except ModuleNotFoundError as error:
            if error.name != "sklearn":
                raise
            raise ImportError(f"{name} needs scikit-learn: pip install 'dsc[sklearn]'") from error
    raise AttributeError(f"module 'dsc' has no attribute {name!r}")
