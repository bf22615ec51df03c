"""Where tasks run: every scheduler computes, counts its threads, and is left as it was found."""

import os
import socket
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import numpy as np
import psutil
import pytest
from dask import delayed
from distributed import Client, LocalCluster
from threadpoolctl import threadpool_info, threadpool_limits

from dsc.engine import BLOCK, Engine, Job, job_graph, open_engine, part_tasks
from dsc.engine.plan import Resources
from dsc.engine.schedulers import PROCESS_BYTES
from dsc.errors import DscError


def blas_threads():
    return {lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"}


def blas_kernels(part, _):
    time.sleep(0.1)  # so that every worker gets some
    return " ".join(sorted(str(lib.get("architecture")) for lib in threadpool_info()))


def add(left, right):
    return left + right


def pids(n):
    return [delayed(os.getpid, pure=False)() for _ in range(n)]


# --- local schedulers ---------------------------------------------------------------------------


def test_synchronous__runs_everything_in_the_calling_thread():
    with open_engine("synchronous", 7) as engine:
        seen = engine.compute([delayed(threading.get_ident, pure=False)() for _ in range(4)])
    assert set(seen) == {threading.get_ident()}
    assert engine.resources.n_threads == 1


@pytest.mark.parametrize("n_workers", [1, 2, 4])
def test_threads__uses_as_many_as_were_asked_for(n_workers):
    barrier = threading.Barrier(n_workers)  # passes only if that many tasks run at once
    with open_engine("threads", n_workers) as engine:
        seen = engine.compute(
            [delayed(partial(barrier.wait, 30), pure=False)() for _ in range(n_workers)]
        )
    assert sorted(seen) == list(range(n_workers))
    assert engine.resources.n_threads == n_workers


def test_threads__by_default_are_the_cores():
    with open_engine() as engine:
        assert engine.scheduler == "threads"
        assert engine.resources.n_threads == len(os.sched_getaffinity(0))


def test_threads__memory_limit_is_what_the_process_may_use_in_all():
    limit = 10**11
    with open_engine("threads", 2, "100GB") as engine:
        used = limit - engine.resources.memory - PROCESS_BYTES
    assert 0.5 < used / psutil.Process().memory_info().rss < 2


def test_threads__a_limit_below_what_is_used_already_is_refused():
    with (
        pytest.raises(DscError, match=r"memory_limit: this process already uses [\d.]+ [MG]B"),
        open_engine("threads", 1, "1MB"),
    ):
        pass


@pytest.mark.parametrize("scheduler", ["threads", "synchronous"])
def test_engine__blas_has_one_thread_inside_and_its_own_after(scheduler):
    with threadpool_limits(2, user_api="blas"):
        with open_engine(scheduler):
            assert blas_threads() == {1}
        assert blas_threads() == {2}


def test_engine__blas_is_restored_after_an_error():
    with threadpool_limits(2, user_api="blas"):
        with pytest.raises(ZeroDivisionError), open_engine("threads"):
            raise ZeroDivisionError
        assert blas_threads() == {2}


def test_engine__an_open_engine_is_passed_through():
    engine = Engine("synchronous", Resources(3, 10**9))
    with open_engine(engine, n_workers=9) as same:
        assert same is engine


# --- clusters -----------------------------------------------------------------------------------


def test_processes__are_ours_with_one_thread_each_and_end_with_the_run(process_engine):
    """A second cluster at the same time: warnings are errors, so a taken port must not be one."""
    with open_engine("processes", 1, "2GB") as engine:
        used = set(engine.compute(pids(8)))
        inside = engine.scheduler.run(blas_threads)
        assert engine.resources.n_threads == 1
        assert engine.resources.memory <= 2 * 10**9
    assert len(used) == 1
    assert used.isdisjoint({os.getpid(), *process_engine.compute(pids(8))})
    assert list(inside.values()) == [{1}]
    _, alive = psutil.wait_procs(
        [psutil.Process(pid) for pid in used if psutil.pid_exists(pid)], timeout=10
    )
    assert not alive


def test_client__is_used_and_left_open(client):
    with open_engine(client) as engine:
        used = set(engine.compute(pids(16)))
        assert engine.resources.n_threads == 2
    assert used <= set(client.run(os.getpid).values())
    assert client.status == "running"


def test_client__memory_is_what_its_workers_have_and_less_if_asked(client):
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    total = sum(worker["memory_limit"] for worker in workers)
    with open_engine(client) as whole, open_engine(client, memory_limit="1GB") as limited:
        assert 0.3 * total < whole.resources.memory < total
        assert limited.resources.memory <= 10**9


@pytest.mark.parametrize("which", ["address", "file"])
def test_command_cluster__is_reached_by_address_and_by_file(command_cluster, which):
    with open_engine(command_cluster[which == "file"]) as engine:
        engine.scheduler.wait_for_workers(2, timeout=30)
        used = set(engine.compute(pids(16)))
    assert os.getpid() not in used
    assert all(psutil.pid_exists(pid) for pid in used)  # not ours to end


# --- mistakes -----------------------------------------------------------------------------------


@pytest.mark.parametrize("scheduler", ["thread", "no/such/file.json", "localhost:8786", 3])
def test_scheduler__an_unknown_one_is_refused_with_the_choices(scheduler):
    with (
        pytest.raises(DscError, match=r"scheduler: found .*threads, synchronous, processes.*tcp:"),
        open_engine(scheduler),
    ):
        pass


@pytest.mark.parametrize("n_workers", [0, -1])
def test_scheduler__n_workers_below_one_is_refused(n_workers):
    with pytest.raises(DscError, match="n_workers: found"), open_engine("threads", n_workers):
        pass


def test_scheduler__silence_at_an_address_says_how_to_start_one(monkeypatch):
    class Impatient(Client):
        def __init__(self, *args, **options):
            super().__init__(*args, **{**options, "timeout": 0.5})

    monkeypatch.setattr("dsc.engine.clusters.Client", Impatient)
    with socket.socket() as free:  # bound, not listening: connections are refused
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
        with (
            pytest.raises(DscError, match=r"nothing answers at tcp://.*dask scheduler"),
            open_engine(address),
        ):
            pass


def test_scheduler__a_file_that_is_no_scheduler_file_is_refused(tmp_path):
    file = tmp_path / "scheduler.json"
    file.write_text("not json")
    with pytest.raises(DscError, match=r"scheduler: .*scheduler\.json"), open_engine(str(file)):
        pass


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """A client and an engine of one worker, whom another one with other bits has joined since.

    The OpenBLAS of the second worker is told to use the kernels of another CPU.
    """
    with (
        LocalCluster(
            n_workers=1,
            processes=False,
            protocol="tcp",
            host="127.0.0.1",
            dashboard_address=":0",
        ) as cluster,
        Client(cluster) as client,
        open_engine(client) as engine,
    ):
        place = [cluster.scheduler_address, "--no-nanny", "--no-dashboard"]
        worker = subprocess.Popen(
            [Path(sys.executable).parent / "dask", "worker", *place, "--nthreads", "1"],
            cwd=tmp_path_factory.mktemp("worker"),
            env={**os.environ, "OPENBLAS_CORETYPE": "Nehalem"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            client.wait_for_workers(2, timeout=30)
            yield client, engine
        finally:
            worker.kill()
            worker.wait(30)


def test_workers__that_would_give_other_bits_are_refused_by_name(mixed):
    with (
        pytest.raises(DscError, match=r"workers differ(?s:.*)blas: .*Nehalem"),
        open_engine(mixed[0]),
    ):
        pass


def test_workers__that_join_later_do_not_change_bits_unnoticed(mixed):
    """They are refused, or given nothing to do."""
    try:
        used = mixed[1].compute(part_tasks(blas_kernels, range(8)))
    except DscError:
        return
    assert not any("Nehalem" in kernels for kernels in used)


def test_blas__is_limited_also_if_it_is_loaded_later():
    """SciPy brings a BLAS of its own, which `eigh` uses."""
    program = (
        "from dsc.blas import use_one_blas_thread; use_one_blas_thread()\n"
        "import numpy, scipy.linalg; from threadpoolctl import threadpool_info\n"
        "found = [lib['num_threads'] for lib in threadpool_info() if lib['user_api'] == 'blas']\n"
        "assert len(found) > 1 and set(found) == {1}, found"
    )
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "2"}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)


# --- graphs -------------------------------------------------------------------------------------


class Text(str):
    """A value whose merge shows its order."""

    def merge(self, other):
        return Text(f"({self}{other})")


def name_part(part, mark):
    return Text(f"{part}{mark}")


def finish(merged, mark):
    return f"{merged}!{mark}"


def text(merged, _):
    return str(merged)


def test_job__merges_parts_in_order_on_the_tree_then_finishes():
    job = Job(name_part, list("abcde"), finish, "'")
    with open_engine("threads", 2) as engine:
        assert engine.compute([job_graph(job)]) == ["(((a'b')(c'd'))e')!'"]


def test_job__kept_values_reach_their_own_part():
    with open_engine("threads", 2) as engine:
        kept = engine.persist([delayed(str)(i) for i in range(3)])
        job = Job(name_part, kept, finish, "-")
        assert engine.compute([job_graph(job)]) == ["((0-1-)2-)!-"]


def test_job__many_are_computed_in_one_graph():
    barrier = threading.Barrier(3)

    def together(part, shared):
        barrier.wait(30)  # passes only if the three jobs run at the same time
        return Text(part)

    jobs = [Job(together, [name], text, None) for name in "xyz"]
    with open_engine("threads", 3) as engine:
        assert engine.compute([job_graph(job) for job in jobs]) == ["x", "y", "z"]


def test_job__an_error_in_a_task_arrives_as_it_was_raised(client):
    def fail(part, shared):
        raise DscError("part 1: bad")

    for scheduler in ("threads", client):
        with open_engine(scheduler) as engine, pytest.raises(DscError, match="part 1: bad"):
            engine.compute([job_graph(Job(fail, [0, 1], text, None))])


def test_part_tasks__give_one_value_per_part_in_order():
    with open_engine("threads", 2) as engine:
        assert engine.compute(part_tasks(add, [1, 2, 3], 10)) == [11, 12, 13]


def test_block__is_a_power_of_two():
    assert BLOCK & (BLOCK - 1) == 0


@pytest.mark.skipif(not Path("/proc/self/smaps").is_file(), reason="the maps are read from /proc")
def test_memory__pages_of_mapped_inputs_do_not_count_as_used(tmp_path):
    np.save(tmp_path / "a.npy", np.ones(25 * 2**20))  # 210 MB
    with open_engine("threads", 1, "4GB", progress=False) as engine:
        before = engine.resources.memory
    mapped = np.load(tmp_path / "a.npy", mmap_mode="r")
    rss = psutil.Process().memory_info().rss
    assert mapped.sum() == mapped.size  # all pages are there now
    assert psutil.Process().memory_info().rss - rss > 150e6
    with open_engine("threads", 1, "4GB", progress=False) as engine:
        assert abs(engine.resources.memory - before) < 30e6
    copied = np.array(mapped)  # but this is memory
    with open_engine("threads", 1, "4GB", progress=False) as engine:
        assert before - engine.resources.memory > copied.nbytes - 30e6
