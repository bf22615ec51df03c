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


@pytest.mark.parametrize(("diameter", "leaf"), [(11, 2**13), (15, 2**14)])
def test_tasks__of_a_pass_are_fewer_where_there_are_few_patches(diameter, leaf):
    """The numbers of SCALING.md: beyond them more threads have nothing to do."""
    basis, config = overhead.disk_basis(diameter), overhead.CASES[diameter]
    for n_patches, most in ((10**6, {11: 123, 15: 62}), (10**9, {11: 122_071, 15: 61_036})):
        n_tasks = [
            simulated.plan_of(n_workers, n_patches, basis, config).n_tasks
            for n_workers in (1, 2, 4, 100, 10_000, 100_000)
        ]
        assert all(6 <= n / threads <= 13 for n, threads in zip(n_tasks, (1, 2, 4), strict=False))
        assert n_tasks[-1] == max(n_tasks) == most[diameter] == -(-n_patches // leaf)


@pytest.mark.parametrize("diameter", [11, 15])
def test_batch__has_tasks_as_it_is_large_and_each_takes_as_long(diameter):
    size = {"diameter": diameter, "pace": 1e5, "solving_online": 0.1}
    size["statistics_bytes_online"] = 10**6
    found = [overhead.forecast_batch(size, one, each=1.0) for one in overhead.BATCHES]
    # a pass is cut evenly: into batches a little smaller than was asked for
    assert [one["n_tasks"] for one in found] == [8, 128, 1018]
    assert {one["working"] for one in found} == {2**13 / 1e5}
    merges = [1, 16 + 2 + 1, 128 + 16 + 2 + 1]  # of eight by one task
    wanted = [one["n_tasks"] + n + 1 for one, n in zip(found, merges, strict=True)]
    assert [one["graph_size"] for one in found] == wanted
    assert [round(one["limit"]) for one in found] == [66, 71, 72]  # 82 ms of work, 1 ms each
    assert "from 72 threads on" in overhead.BATCH.format(**found[-1])


def test_sizes__are_those_of_one_thread_and_of_both_updates(monkeypatch):
    monkeypatch.setattr(overhead, "N_CODED", 500)
    config = LearnConfig(n_atoms=4, sparsity=2)
    found = overhead.measure_sizes(overhead.disk_basis(7), config, n_solves=100)
    assert found["statistics_bytes_online"] < found["statistics_bytes"]
    assert "update after a batch" in overhead.SIZES.format(**found)


def test_client__hashes_each_column_of_positions_alone():
    found = overhead.client_work(10**9)
    assert (found["kept"], found["hashed"], found["longest"]) == ("125 MB", "12 GB", "4 GB")
    assert found["seconds"] > 0
    assert "4 GB by one thread" in overhead.ALONE.format(**found)


def test_overhead__says_all_of_it(monkeypatch):
    """With fewer patches and solves, and without clusters."""
    monkeypatch.setattr(overhead, "N_CODED", 200)
    monkeypatch.setattr(overhead, "N_SOLVES", 1000)
    passes = {"apart": [{"each": 1.0}]}
    monkeypatch.setattr(overhead, "time_passes", lambda quick, say: passes)
    said = []
    found = overhead.run(True, said.append)
    assert found["passes"] is passes
    assert len(found["forecasts"]) == len(found["batches"]) == 6
    text = "\n".join(said)
    assert "105 kB" in text.split("kept between batches: ")[1]  # as SCALING.md says
    assert "3.34 MB" in text.split("kept between batches: ")[2]
    assert "1,018 tasks over patches" in text
    assert "12 GB of positions" in text


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
