"""What the paper prints, to be set beside what is found here; none of it was run here."""

from __future__ import annotations

from dsc.texture import Method, TextureConfig

SUITE = "Outex_TC_00010"  # the paper's data
CLASSES, TRAIN, TEST = 24, 480, 3840  # its classes and images
NETWORKS = {  # mean and standard deviation of ten repetitions, in the order of `TRAINED`
    "VGG16": ((0.4233, 0.0501), (0.8968, 0.0331), (0.5740, 0.0290), (0.9850, 0.0067)),
    "VGG19": ((0.3198, 0.0520), (0.8431, 0.0672), (0.5966, 0.0347), (0.9790, 0.0074)),
    "ResNet50": ((0.3930, 0.0413), (0.6875, 0.0635), (0.8807, 0.0203), (0.9945, 0.0041)),
    "DenseNet121": ((0.6308, 0.0187), (0.9611, 0.0158), (0.9034, 0.0102), (0.9982, 0.0016)),
    "DenseNet169": ((0.6520, 0.0130), (0.9501, 0.0297), (0.9252, 0.0116), (0.9983, 0.0010)),
    "DenseNet201": ((0.6450, 0.0202), (0.9621, 0.0140), (0.9401, 0.0092), (0.9980, 0.0011)),
    "InceptionV3": ((0.6323, 0.0347), (0.8479, 0.0324), (0.8888, 0.0248), (0.9944, 0.0018)),
}
TRAINED = ("scratch", "scratch, augmented", "pretrained", "pretrained, augmented")
ROWS = (
    ("R-K-SVD", 1.0, "M = 100, N = 15, K = 1"),
    ("standard K-SVD", 0.4432, "M = 100, N = 11, K = 3"),
    ("augmented K-SVD", 0.5635, "M = 100, N = 15, K = 1"),
    ("FV-CNN", 0.5471, "64 features"),
    ("FV-CNN", 0.6487, "augmented training set"),
    *(
        (network, mean, f"{trained}; ± {std:.4f} over ten repetitions")
        for network, found in NETWORKS.items()
        for trained, (mean, std) in zip(TRAINED, found, strict=True)
    ),
    ("Hadizadeh 2015", 0.9730, ""),
    ("Shrivastava et al. 2015", 0.9919, ""),
    ("Zand et al. 2015", 0.9838, ""),
    ("Liu et al. 2016", 0.9987, ""),
    ("Marcos et al. 2016", 0.9995, ""),
    ("Depeursinge et al. 2017", 0.9956, ""),
)
CITED = tuple(
    Method(method, setting, accuracy, f"the paper, on {SUITE}: cited, not run", "cited", SUITE)
    for method, accuracy, setting in ROWS
)

# accuracy by cross-validation on the training images of its suite: a row for each sparsity, in it
# atoms by atoms the diameters
ATOMS, DIAMETERS = (10, 25, 50, 100), (11, 13, 15)
VALIDATED = {
    "standard": (
        (0.990, 0.988, 0.984, 0.993, 0.992, 0.992, 0.994, 0.995, 0.996, 0.996, 0.997, 0.998),
        (0.987, 0.988, 0.981, 0.995, 0.993, 0.993, 0.995, 0.995, 0.996, 0.997, 0.998, 0.997),
        (0.982, 0.984, 0.984, 0.993, 0.993, 0.995, 0.997, 0.996, 0.996, 0.999, 0.998, 0.998),
    ),
    "augmented": (
        (0.972, 0.968, 0.975, 0.979, 0.985, 0.987, 0.988, 0.989, 0.991, 0.989, 0.991, 0.993),
        (0.967, 0.968, 0.968, 0.981, 0.987, 0.992, 0.985, 0.991, 0.992, 0.987, 0.991, 0.992),
        (0.971, 0.964, 0.961, 0.984, 0.990, 0.987, 0.986, 0.989, 0.990, 0.989, 0.991, 0.992),
    ),
    "rotational": (
        (0.969, 0.977, 0.979, 0.975, 0.980, 0.985, 0.982, 0.985, 0.988, 0.983, 0.988, 0.990),
        (0.963, 0.966, 0.978, 0.977, 0.979, 0.984, 0.979, 0.982, 0.986, 0.981, 0.986, 0.987),
        (0.954, 0.966, 0.968, 0.968, 0.979, 0.982, 0.973, 0.982, 0.986, 0.977, 0.987, 0.990),
    ),
}


def is_of_the_paper(name: str, n_classes: int, n_train: int, n_test: int | None = None) -> bool:
    """Whether images are those of the paper: of its suite, all of them."""
    found = (name, n_classes, n_train, TEST if n_test is None else n_test)
    return found == (SUITE, CLASSES, TRAIN, TEST)


def validated(config: TextureConfig) -> float | None:
    """The paper's accuracy by cross-validation with a setting; None if it has none."""
    m, n, k = config.n_atoms, config.diameter, config.sparsity
    if m not in ATOMS or len(n) > 1 or n[0] not in DIAMETERS or k > len(VALIDATED[config.method]):
        return None
    place = ATOMS.index(m) * len(DIAMETERS) + DIAMETERS.index(n[0])
    return VALIDATED[config.method][k - 1][place]
