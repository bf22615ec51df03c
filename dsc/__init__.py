"""Dictionaries of image atoms that may appear in any orientation.

From images: `extract_patches`, `learn`, `Dictionary.encode`, `Dictionary.reconstruct`,
`orientation`, `features`. From arrays: the same `learn`, or `RotationalDictionaryLearning`. The
numeric core works on plain NumPy arrays: bases (`disk_basis`), pursuit (`encode`, `decode`),
updates (`accumulate`, `solve`).

The name is short for dictionaries for steerable coding.
"""

import lazy_loader

# all public names stand in __init__.pyi, and are imported when they are asked for
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

del lazy_loader
