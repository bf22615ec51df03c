"""Classes of textures that may appear in any orientation."""

from dsc.texture import schema as _schema
from dsc.texture.baseline import lbp_methods, lbp_patterns
from dsc.texture.colours import class_colours, paint
from dsc.texture.config import BINS, CLASSIFIERS, HISTOGRAMS, METHODS, ROTATIONS, TextureConfig
from dsc.texture.curve import CURVES, NEIGHBOURS, Curve, learned_curve, neighbour_curve
from dsc.texture.dataset import Dataset, check_classes, label_indices, read_inputs
from dsc.texture.deciding import LastStep
from dsc.texture.evaluate import Benchmark, Evaluation, Method, evaluate_model, evaluate_texture
from dsc.texture.fit import fit_texture
from dsc.texture.histograms import (
    ATOM_WEIGHT,
    Labelling,
    by_class_and_atom,
    check_images,
    count_labels,
    histograms_of,
    joined_counts,
    shares,
)
from dsc.texture.labelling import Labeller, Labellers, label_map
from dsc.texture.lbp import unit_range
from dsc.texture.mapping import class_map
from dsc.texture.model import Prediction, TextureModel
from dsc.texture.neighbours import chi_square
from dsc.texture.outex import is_suite, read_suite
from dsc.texture.parts import part_of, split_dataset
from dsc.texture.scale import Scale
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
