"""Learned dictionaries: how they are made, kept and used."""

from dsc.dictionary import schema as _schema
from dsc.dictionary.batches import LONGEST
from dsc.dictionary.cards import states_card
from dsc.dictionary.checking import check
from dsc.dictionary.config import FORGET, LearnConfig
from dsc.dictionary.encode import COEF_TYPES, Coded
from dsc.dictionary.events import End, Iteration, Start
from dsc.dictionary.inputs import PATCH_OPTIONS
from dsc.dictionary.learning import LearnPlan, advance, learn, learn_many, make_problem, plan
from dsc.dictionary.loop import Problem, State, plan_work, share_left, workload_of
from dsc.dictionary.model import Dictionary, as_dictionary, load_dictionary
from dsc.dictionary.notes import image_notes
from dsc.dictionary.plot import plot_atoms, plot_disks
from dsc.dictionary.reconstruct import Rebuilt, image_to_rebuild
from dsc.dictionary.run import Identity, Run, RunTarget, describe
