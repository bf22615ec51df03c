"""Learned dictionaries: how they are made, kept and used."""

from dsc.dictionary import schema as _schema
from dsc.dictionary.config import LearnConfig
from dsc.dictionary.encode import Coded
from dsc.dictionary.events import End, Iteration, Start
from dsc.dictionary.learning import advance, learn, learn_many, make_problem, plan_learning
from dsc.dictionary.loop import Problem, plan_work, workload_of
from dsc.dictionary.model import Dictionary, load_dictionary
from dsc.dictionary.plot import atom_shades, mosaic, plot_atoms, plot_disks, shades
from dsc.dictionary.run import Identity, Run, RunTarget, describe
