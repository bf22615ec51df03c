"""Learned dictionaries: how they are made, kept and used."""

from dsc.dictionary import schema as _schema  # noqa: F401 (registers what is stored)
from dsc.dictionary.config import LearnConfig
from dsc.dictionary.encode import Coded
from dsc.dictionary.learn import learn, learn_many, plan_learning
from dsc.dictionary.model import Dictionary
from dsc.dictionary.run import RunFolder, load_dictionary

__all__ = [
    "Coded",
    "Dictionary",
    "LearnConfig",
    "RunFolder",
    "learn",
    "learn_many",
    "load_dictionary",
    "plan_learning",
]
