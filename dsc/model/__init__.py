"""Learned dictionaries: how they are made, kept and used."""

from dsc.model.coding import Coded
from dsc.model.dictionary import Dictionary
from dsc.model.learn import learn, learn_many, plan_learning
from dsc.model.runs import RunFolder, load_dictionary

__all__ = [
    "Coded",
    "Dictionary",
    "RunFolder",
    "learn",
    "learn_many",
    "load_dictionary",
    "plan_learning",
]
