"""Execution: the plan, the merge tree, and one map-reduce for every Dask scheduler."""

from dsc.engine.mapreduce import Job, job_graph, part_tasks
from dsc.engine.plan import BLOCK, Plan, Resources, check_plan, leaf_size, make_plan
from dsc.engine.schedulers import Engine, open_engine
from dsc.engine.tree import merge_tree

__all__ = [
    "BLOCK",
    "Engine",
    "Job",
    "Plan",
    "Resources",
    "check_plan",
    "job_graph",
    "leaf_size",
    "make_plan",
    "merge_tree",
    "open_engine",
    "part_tasks",
]
