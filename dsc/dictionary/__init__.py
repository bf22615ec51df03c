"""Learned dictionaries: how they are made, kept and used."""

from dsc.dictionary.config import LearnConfig
from dsc.dictionary.encode import Coded
from dsc.dictionary.learn import learn, learn_many, plan_learning
from dsc.dictionary.model import Dictionary
from dsc.dictionary.plot import atom_shades, mosaic, plot_atoms, plot_disks, shades
from dsc.dictionary.run import RunFolder, load_dictionary

__all__ = [
    "Coded",
    "Dictionary",
    "LearnConfig",
    "RunFolder",
    "atom_shades",
    "learn",
    "learn_many",
    "load_dictionary",
    "mosaic",
    "plan_learning",
    "plot_atoms",
    "plot_disks",
    "shades",
]
