"""Workers that come and go during a run: used from the next pass on, and missed without harm."""

import re
import sys
from collections import Counter, defaultdict
from types import SimpleNamespace

import numpy as np
import pytest
from distributed import Client, LocalCluster, SchedulerPlugin

import dsc
from dsc.dictionary import Iteration
from dsc.engine import open_engine

OPTIONS = {"n_atoms": 4, "sparsity": 2, "n_iterations": 5}


class Passes(SchedulerPlugin):
    """Which worker finished how many tasks of each pass, in order."""

    def __init__(self):
        self.counts = defaultdict(Counter)

    def transition(self, key, start, finish, *args, worker=None, **more):
        if finish == "memory" and start == "processing" and "code_part" in str(key):
            self.counts[key[0]][worker] += 1

    def of_each(self):
        return list(self.counts.values())


@pytest.fixture(scope="module")
def patches(natural_patches):
    return dsc.ArrayPatches(np.tile(natural_patches(11, 1500), (8, 1, 1)), center=True)


@pytest.fixture
def cluster():
    with LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
    ) as made:
        made.scheduler.add_plugin(Passes(), name="passes")
        yield made


def learn(cluster, patches, act):
    """Learn with something that happens after a pass; the atoms' hash and the tasks of workers."""

    def listen(event):
        if isinstance(event, Iteration):
            act(event.iteration, client)

    with Client(cluster, set_as_default=False) as client:
        model = dsc.learn(patches, scheduler=client, progress=listen, **OPTIONS)
    return model.sha256, cluster.scheduler.plugins["passes"].of_each()


def test_worker__that_joins_is_used_from_the_next_pass_on(cluster, patches):
    def act(iteration, client):
        if iteration == 2:
            cluster.scale(2)
            client.wait_for_workers(2)

    found, passes = learn(cluster, patches, act)
    assert found == dsc.learn(patches, **OPTIONS).sha256
    assert [len(tasks) for tasks in passes] == [1, 1, 2, 2, 2, 2]
    counts = [sum(tasks.values()) for tasks in passes]
    assert counts == [counts[0]] * 2 + [counts[-1]] * 4
    assert counts[-1] > counts[0]  # cut for two threads


def test_worker__that_joins_does_not_lift_a_memory_limit(cluster):
    with (
        Client(cluster, set_as_default=False) as client,
        open_engine(client, memory_limit="1GB") as engine,
    ):
        assert engine.current() is engine
        cluster.scale(2)
        client.wait_for_workers(2)
        now = engine.current()
        assert now.current() is now
    assert now.workers > engine.workers
    assert now.resources == engine.resources


def test_worker__that_leaves_costs_only_its_tasks(cluster, patches):
    cluster.scale(2)

    def act(iteration, client):
        if iteration == 2:
            cluster.scale(1)
            while len(client.scheduler_info(n_workers=-1)["workers"]) > 1:
                cluster.sync(cluster._correct_state)

    found, passes = learn(cluster, patches, act)
    assert found == dsc.learn(patches, **OPTIONS).sha256
    assert [len(tasks) for tasks in passes][-4:] == [1, 1, 1, 1]
    assert len(passes) == 6
    assert len({sum(tasks.values()) for tasks in passes}) == 1


@pytest.mark.parametrize("service", ["dask_gateway", "coiled"])
def test_gateway__its_code_learns_with_the_client(
    service, deploy, made, small_words, tmp_path, monkeypatch
):
    """The service's cluster is one of this process."""

    def new_cluster(*_, **__):
        return LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0"
        )

    gateway = SimpleNamespace(cluster_options=SimpleNamespace, new_cluster=new_cluster)
    module = SimpleNamespace(Gateway=lambda: gateway, Cluster=new_cluster)
    monkeypatch.setitem(sys.modules, service, module)
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (deploy / "gateway.md").read_text(), re.S)
    (code,) = [block for block in blocks if f"import {service}" in block or f"{service} " in block]
    small = "n_atoms=4, sparsity=2, n_iterations=2, scheduler=client"
    code = code.replace("s3://bucket", str(made[0])).replace("scheduler=client", small)
    exec(compile(code, "gateway.md", "exec"), {"__name__": "gateway"})
    assert dsc.dictionary.load_dictionary(str(tmp_path / "run")).sha256 == made[1]
