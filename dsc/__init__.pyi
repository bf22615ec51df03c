from .basis import (
    SteerableBasis,
    annular_basis,
    bessel_basis,
    disk_basis,
    pixel_basis,
    rotation_matrix,
)
from .dictionary import (
    Coded,
    Dictionary,
    Iteration,
    LearnConfig,
    LearnPlan,
    Rebuilt,
    Run,
    check,
    learn,
    learn_many,
    plan,
)
from .dictionary.estimator import RotationalDictionaryLearning
from .errors import DscError
from .maps import features, orientation
from .patches import ArrayPatches, PatchConfig, StoredPatches, extract_patches, open_patches
from .pursuit import EMPTY, Coder, Codes, decode, encode
from .report import watch
from .restore import RestoreConfig, denoise, inpaint
from .store import (
    Checkup,
    open,  # noqa: A004
)
from .texture import class_map
from .texture.classifier import TextureClassifier
from .update import accumulate, random_atoms, solve
from .version import __version__

__all__ = [
    "EMPTY",
    "ArrayPatches",
    "Checkup",
    "Coded",
    "Coder",
    "Codes",
    "Dictionary",
    "DscError",
    "Iteration",
    "LearnConfig",
    "LearnPlan",
    "PatchConfig",
    "Rebuilt",
    "RestoreConfig",
    "RotationalDictionaryLearning",
    "Run",
    "SteerableBasis",
    "StoredPatches",
    "TextureClassifier",
    "__version__",
    "accumulate",
    "annular_basis",
    "bessel_basis",
    "check",
    "class_map",
    "decode",
    "denoise",
    "disk_basis",
    "encode",
    "extract_patches",
    "features",
    "inpaint",
    "learn",
    "learn_many",
    "open",
    "open_patches",
    "orientation",
    "pixel_basis",
    "plan",
    "random_atoms",
    "rotation_matrix",
    "solve",
    "watch",
]
