"""Classes of textures that may appear in any orientation."""

from dsc.texture import schema as _schema  # noqa: F401 (registers what is stored)
from dsc.texture.config import BINS, HISTOGRAMS, METHODS, TextureConfig
from dsc.texture.dataset import Dataset, label_indices, read_inputs
from dsc.texture.evaluate import (
    Benchmark,
    Evaluation,
    Method,
    evaluate_texture,
    lbp_methods,
)
from dsc.texture.fit import fit_texture
from dsc.texture.histograms import (
    ATOM_WEIGHT,
    FeatureLog,
    Labelling,
    by_class_and_atom,
    check_pictures,
    count_labels,
    joined_counts,
    shares,
)
from dsc.texture.labelling import label_map, spread
from dsc.texture.lbp import unit_range
from dsc.texture.model import TextureModel
from dsc.texture.neighbours import chi_square
from dsc.texture.outex import is_suite, read_suite
from dsc.texture.settings import (
    CAUTION,
    SWEPT,
    SettingResult,
    Sweep,
    SweepGrid,
    SweepResult,
    Validation,
)
from dsc.texture.sweep import Setting, run_sweep

__all__ = [
    "ATOM_WEIGHT",
    "BINS",
    "CAUTION",
    "HISTOGRAMS",
    "METHODS",
    "SWEPT",
    "Benchmark",
    "Dataset",
    "Evaluation",
    "FeatureLog",
    "Labelling",
    "Method",
    "Setting",
    "SettingResult",
    "Sweep",
    "SweepGrid",
    "SweepResult",
    "TextureConfig",
    "TextureModel",
    "Validation",
    "by_class_and_atom",
    "check_pictures",
    "chi_square",
    "count_labels",
    "evaluate_texture",
    "fit_texture",
    "is_suite",
    "joined_counts",
    "label_indices",
    "label_map",
    "lbp_methods",
    "read_inputs",
    "read_suite",
    "run_sweep",
    "shares",
    "spread",
    "unit_range",
]
