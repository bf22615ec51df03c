"""The numbers of `deploy/SCALING.md`: what `dsc bench --overhead` counts is what happens."""

import time

import pytest
from distributed import SchedulerPlugin

from dsc.bench import overhead, simulated
from dsc.dictionary import LearnConfig
from dsc.engine import Job, job_graph
from dsc.engine.mapreduce import is_part_key


class Spread(SchedulerPlugin):
    """Of each task over a part: whether the scheduler gives it to any worker that has least to do.

    Else it goes to one that has what it depends on.
    """

    def __init__(self, scheduler):
        self.scheduler, self.found = scheduler, []

    def transition(self, key, start, finish, *args, **more):
        if finish == "processing" and is_part_key(key):
            self.found.append(self.scheduler.is_rootish(self.scheduler.tasks[key]))


@pytest.mark.parametrize(("materialize", "least"), [("none", 3), ("disk", 12)])
def test_requests__are_few_and_at_least_one_per_chunk(materialize, least):
    found = overhead.count_requests(materialize)
    assert least <= found["gets"] <= 40


def test_tasks__of_a_pass_depend_on_workers_and_not_on_patches():
    basis = overhead.disk_basis(11)

    def n_tasks(n_workers, n_patches):
        plan = simulated.plan_of(n_workers, n_patches, basis, LearnConfig(n_atoms=20, sparsity=4))
        return plan.graph_size / n_workers

    for n_workers in (4, 100, 1000):
        found = [n_tasks(n_workers, 10**power) for power in (8, 9, 10)]
        assert all(7 <= one <= 16 for one in found)


def test_shared_data__goes_to_every_worker_once_a_pass():
    with (
        simulated.tiny_cluster(3) as (address, _),
        simulated.open_engine(address) as engine,
    ):
        found = simulated.time_pass(engine, time.perf_counter, 3, 10**9)
    assert 1 <= found["n_sent"] <= 3 < found["n_tasks"]  # a fast worker may take the others' tasks
    assert found["seconds"] > 0


def test_tasks__are_given_to_all_workers_however_many_dictionaries_there_are():
    # they need the data of their dictionary, which one worker has first: they must not all go there
    with simulated._own_cluster(2) as client, simulated.open_engine(client) as engine:
        spread = Spread(client.cluster.scheduler)
        client.cluster.scheduler.add_plugin(spread)
        jobs = [
            Job(simulated.do_nothing, range(10), simulated.finish_nothing, simulated.Shared(), 8)
            for _ in range(24)
        ]
        engine.compute([job_graph(job) for job in jobs])
    assert spread.found == [True] * 24 * 10
