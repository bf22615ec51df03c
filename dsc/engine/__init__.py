"""Execution: the plan, the merge tree, and one map-reduce for every Dask scheduler."""

from dsc.engine.mapreduce import Job, Piece, job_graph, part_tasks
from dsc.engine.numerics import fingerprint_difference, numerics_fingerprint
from dsc.engine.plan import (
    BLOCK,
    TASKS_PER_THREAD,
    Plan,
    Resources,
    Workload,
    check_plan,
    leaf_size,
    make_plan,
    readable,
)
from dsc.engine.schedulers import Engine, open_engine
from dsc.engine.tree import MergeTree, merge_all
