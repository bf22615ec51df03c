"""Clusters of many tiny workers on one machine: what a pass costs besides its work."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self
from uuid import uuid4

import dask
import psutil

from dsc.basis import SteerableBasis, disk_basis
from dsc.bench.timing import Say
from dsc.dictionary import LearnConfig, workload_of
from dsc.engine import Engine, Job, Plan, Resources, job_graph, make_plan, open_engine
from dsc.errors import DscError

CONFIG, DIAMETER = LearnConfig(n_atoms=20, sparsity=4), 11
APART = (4, 25, 100)  # workers over TCP, the scheduler in a process of its own
TOGETHER = (4, 25, 100)  # workers, scheduler and client in this process
PATCHES = (10**7, 10**8, 10**9)  # of the largest cluster; the others have the most
MEMORY = 4 * 10**9  # bytes of a worker, in the plan
REPEATS = 2
# Each worker looks twice a second at its process, and counts its open files. Here a hundred share
# one process and its 5,000 connections: that alone takes all of the processor, and passes stall.
UNWATCHED = {"distributed.admin.system-monitor.interval": "1h"}
WORKER_PROGRAM = """
import asyncio, json, sys
import dask
from distributed import Worker

async def main(config, address, folder, count):
    dask.config.set(json.loads(config))
    given = dict(nthreads=1, memory_limit=0, host="127.0.0.1", local_directory=folder)
    workers = [Worker(address, dashboard=False, **given) for _ in range(int(count))]
    await asyncio.gather(*workers)
    await asyncio.gather(*(worker.finished() for worker in workers))

asyncio.run(main(*sys.argv[1:]))
"""
PASS = """\
  {n_workers:>4} workers, {n_patches:>13,} patches: {n_tasks:>5,} tasks, {each:.2f} ms a task, \
{seconds:.2f} s a pass"""


def time_passes(quick: bool, say: Say) -> dict[str, list[dict[str, Any]]]:
    """Processor time of passes of tasks that do nothing, cut as the plan says."""
    apart, together = [], []
    say("the scheduler's processor time in a pass of tasks that do nothing, workers over TCP")
    for n_workers in APART[:1] if quick else APART:
        with tiny_cluster(n_workers) as (address, scheduler), open_engine(address) as engine:
            clock = partial(_processor_seconds, scheduler)
            apart.append(time_pass(engine, clock, n_workers, PATCHES[-1]))
            n_sent = apart[-1]["n_sent"]
            say(f"{PASS.format(**apart[-1])}; shared data sent to workers {n_sent} times")
    say("the same of scheduler, workers and client together, in one process")
    for n_workers in TOGETHER[:1] if quick else TOGETHER:
        with _own_cluster(n_workers) as client, open_engine(client) as engine:
            for n_patches in PATCHES if n_workers == TOGETHER[-1] else PATCHES[-1:]:
                together.append(time_pass(engine, time.process_time, n_workers, n_patches))
                say(PASS.format(**together[-1]))
    return {"apart": apart, "together": together}


class Shared:
    """Stands for atoms and basis; counts how often workers got those of a pass.

    All workers are in one process. One may get them late, when its tasks were given to others:
    that counts for the pass they are of.
    """

    n_received: ClassVar[Counter[str]] = Counter()

    def __init__(self) -> None:
        self.name = uuid4().hex

    def __setstate__(self, name: str) -> None:
        self.name = name
        Shared.n_received[name] += 1

    def __getstate__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Nothing:
    """Statistics of nothing."""

    def merge(self, _: Self) -> Self:
        """Nothing, too."""
        return self


def do_nothing(_: Any, shared: Shared) -> Nothing:  # noqa: ARG001 (every task gets it)
    """A task over a part."""
    return Nothing()


def finish_nothing(_: Nothing, shared: Shared) -> int:
    """How often the shared data of a pass came to a worker."""
    return Shared.n_received[shared.name]


def plan_of(n_workers: int, n_patches: int, basis: SteerableBasis, config: LearnConfig) -> Plan:
    """How a pass is cut into tasks for workers with one thread each."""
    work = workload_of(n_patches, basis, config)
    return make_plan(work, Resources(n_workers, n_workers * MEMORY, "", n_workers))


def time_pass(
    engine: Engine, clock: Callable[[], float], n_workers: int, n_patches: int
) -> dict[str, Any]:
    """The least time that one pass takes by a clock."""
    plan = plan_of(n_workers, n_patches, disk_basis(DIAMETER), CONFIG)
    seconds, received = [], []
    for _ in range(REPEATS):
        job = Job(do_nothing, plan.spans(), finish_nothing, Shared(), plan.fan_in)
        before = clock()
        received.append(engine.compute([job_graph(job)])[0])
        seconds.append(clock() - before)
    return {
        "n_workers": n_workers,
        "n_patches": n_patches,
        "n_tasks": plan.graph_size,
        "each": 1e3 * min(seconds) / plan.graph_size,
        "seconds": min(seconds),
        "n_sent": received[-1],
    }


@contextmanager
def _own_cluster(n_workers: int) -> Iterator[Any]:
    from distributed import Client, LocalCluster

    with (
        dask.config.set(UNWATCHED),
        LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            processes=False,
            memory_limit=0,
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


@contextmanager
def tiny_cluster(n_workers: int) -> Iterator[tuple[str, psutil.Process]]:
    """A scheduler, and workers with one thread each in one more process: (address, scheduler)."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "scheduler.json"
        words = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
        words += ["--dashboard-address", "127.0.0.1:0", "--scheduler-file", str(file)]
        start = partial(subprocess.Popen, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        started = [start([sys.executable, "-m", "dask", "scheduler", *words])]
        try:
            address = _address_in(file)
            program = [sys.executable, "-c", WORKER_PROGRAM, json.dumps(UNWATCHED)]
            started.append(start([*program, address, folder, str(n_workers)]))
            _await_workers(address, n_workers)
            yield address, psutil.Process(started[0].pid)
        finally:
            for process in reversed(started):
                process.kill()
                process.wait()


def _address_in(file: Path) -> str:
    for _ in range(600):
        if file.is_file() and (text := file.read_text(encoding="utf-8")):
            return str(json.loads(text)["address"])
        time.sleep(0.1)
    raise DscError("bench: no scheduler after 60 s: see whether `dask scheduler` starts here")


def _await_workers(address: str, n_workers: int) -> None:
    from distributed import Client

    with Client(address, set_as_default=False) as client:
        client.wait_for_workers(n_workers, timeout=120)


def _processor_seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)
