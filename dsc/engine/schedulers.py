"""Where tasks run: threads, processes, one after the other, or a `distributed` cluster."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import dask
from dask.callbacks import Callback
from dask.system import CPU_COUNT

from dsc.blas import restore_blas_threads, use_one_blas_thread
from dsc.engine.mapreduce import part_keys
from dsc.engine.numerics import fingerprint_difference, numerics_fingerprint
from dsc.engine.plan import Resources, parse_bytes
from dsc.errors import DscError, count_problem, readable
from dsc.show import PERIOD, Listener, Meter, Place, Stage, listener_of

WORK = Stage("compute", 0)  # what tasks are for, where nobody says it
LOCAL = ("threads", "synchronous", "processes")
# What this process comes to hold besides data, once it has begun: compiled kernels (100 MB where
# nothing is in Numba's cache, else 30), and the libraries that draw the report (60).
PROCESS_BYTES = 160 * 10**6
GRAPHS = {"distributed.admin.large-graph-warning-threshold": "1GB"}  # arrays travel with their task


@dataclass(frozen=True)
class Engine:
    """Runs `dask.delayed` values on one scheduler.

    Attributes
    ----------
    scheduler
        What `dask.compute` takes: a name or a `distributed.Client`.
    resources
        Threads and memory that tasks have.
    place
        Where tasks run, in words.
    check
        Refuses workers that joined since and would give other bits.
    finished
        Keys of tasks over parts that workers of a cluster have finished.
    meter
        Tells listeners what happens and how far the tasks are.
    """

    scheduler: Any
    resources: Resources
    place: str = "this thread"
    check: Callable[[], None] = lambda: None
    finished: set[Any] = field(default_factory=set)
    meter: Meter = field(default_factory=Meter)

    def compute(self, values: list[Any], stage: Stage = WORK) -> list[Any]:
        """Results of delayed values, computed in one graph; the stage says what they are for."""
        self.check()
        with dask.config.set(GRAPHS):
            if self.is_cluster:
                results = self._gather(self.scheduler.compute(values), values, stage)
            else:
                results = list(dask.compute(*values, **self._options(values, stage)))
        self.check()  # a worker may have joined meanwhile
        return results

    def persist(self, values: list[Any], stage: Stage = WORK) -> list[Any]:
        """The same delayed values, computed and kept where they were made."""
        self.check()
        with dask.config.set(GRAPHS):
            if self.is_cluster:
                return list(self.scheduler.persist(values))
            return list(dask.persist(*values, **self._options(values, stage)))

    def report(self, event: Any) -> None:
        """Tell listeners what happened."""
        self.meter(event)

    def listening(self, *listeners: Listener) -> Engine:
        """The same engine with some more listeners."""
        return replace(self, meter=self.meter.also(listeners))

    @property
    def is_cluster(self) -> bool:
        """Whether tasks run on a `distributed` cluster."""
        return not isinstance(self.scheduler, str)

    def _options(self, values: list[Any], stage: Stage) -> dict[str, Any]:
        """What a local scheduler is told; it says when a task is finished."""
        keys, done = part_keys(values), 0

        def posttask(key: Any, *_: Any) -> None:
            nonlocal done
            if key in keys:
                done += 1
                self.meter.show(stage.n_patches * done // len(keys))

        self.meter.begin(stage)
        ours = Callback(posttask=posttask)._callback
        options = {"scheduler": self.scheduler, "callbacks": [*Callback.active, ours]}
        if self.scheduler == "threads":
            options["num_workers"] = self.resources.n_threads
        return options

    def _gather(self, futures: list[Any], values: list[Any], stage: Stage) -> list[Any]:
        """Results from a cluster, whose workers say when a task is finished."""
        from distributed import wait

        keys = part_keys(values)
        self.meter.begin(stage)
        try:
            while futures and not any(future.status == "error" for future in futures):
                try:
                    with self.scheduler.as_current():
                        wait(futures, timeout=PERIOD)
                    break
                except TimeoutError:
                    done = len(self.finished & keys)
                    self.meter.show(stage.n_patches * done // max(1, len(keys)))
            return list(self.scheduler.gather(futures))
        except BaseException:
            self.scheduler.cancel(futures)
            raise
        finally:
            self.finished.clear()


@contextmanager
def open_engine(
    scheduler: Any = None,
    n_workers: int | None = None,
    memory_limit: str | int | None = None,
    progress: Callable[[Any], None] | bool | None = None,
) -> Iterator[Engine]:
    """An `Engine` for the time of a run.

    Parameters
    ----------
    scheduler
        "threads", "synchronous", "processes" (a local cluster of our own with one thread per
        worker), the address of a scheduler (tcp://…, tls://…), the path of a scheduler file, or a
        `distributed.Client`. None is the `Client` of this process if one is active, else threads.
        An `Engine` is passed through.
    n_workers
        Threads, or processes, of a local scheduler; by default the number of cores.
    memory_limit
        Bytes, or "1GB": what this process, or all local worker processes together, may use.
    progress
        What `listener_of` takes: None is a live card in a notebook, and nothing elsewhere.
    """
    if isinstance(scheduler, Engine):
        yield scheduler
        return
    listeners = listener_of(progress)
    with _open(scheduler, n_workers, memory_limit) as engine:
        heard = engine.listening(*listeners)
        try:
            heard.report(Place(engine.place))
            yield heard
        finally:
            heard.meter.close()


@contextmanager
def _open(
    scheduler: Any, n_workers: int | None, memory_limit: str | int | None
) -> Iterator[Engine]:
    if n_workers is not None and (problem := count_problem("n_workers", n_workers, 1)):
        raise DscError(problem)
    limit = None if memory_limit is None else parse_bytes(memory_limit)
    if scheduler is None:
        scheduler = _active_client() or "threads"
    with ExitStack() as stack:
        if scheduler in ("threads", "synchronous"):
            stack.callback(restore_blas_threads)
            use_one_blas_thread()
            n_threads = 1 if scheduler == "synchronous" else n_workers or CPU_COUNT
            place = f"{n_threads} thread{'s' * (n_threads > 1)} of this process"
            yield Engine(scheduler, Resources(n_threads, _free_memory(limit)), place)
            return
        from dsc.engine.workers import ClusterLog, prepared_workers

        client = stack.enter_context(_client(scheduler, n_workers, limit))
        finished = stack.enter_context(prepared_workers(client))
        check = _worker_check(client)
        check()
        resources = _cluster_resources(client, limit)
        place = f"the Dask cluster {client.scheduler.address} ({resources.n_threads} threads)"
        yield Engine(client, resources, place, check, finished, Meter(ClusterLog(client)))


def _active_client() -> Any:
    """The `distributed.Client` of this process; None if there is none, or inside of a task."""
    if "distributed" not in sys.modules:
        return None
    from distributed import default_client, get_worker

    try:
        get_worker()
    except ValueError:  # this is no task
        try:
            client = default_client()
        except ValueError:
            return None
        return None if client.asynchronous else client
    return None


@contextmanager
def _client(scheduler: Any, n_workers: int | None, limit: int | None) -> Iterator[Any]:
    from distributed import Client, LocalCluster

    if isinstance(scheduler, Client):
        yield scheduler
    elif scheduler == "processes":
        count = n_workers or CPU_COUNT
        with _ignored_interrupts():  # which the workers inherit: this process ends them
            cluster = LocalCluster(
                n_workers=count,
                threads_per_worker=1,
                memory_limit=limit // count if limit else "auto",
                dashboard_address="127.0.0.1:0",  # any free port: two clusters may run side by side
                host="127.0.0.1",
            )
        with cluster, Client(cluster, set_as_default=False) as client:
            yield client
    elif isinstance(scheduler, str) and "://" in scheduler:
        with _connect(address=scheduler) as client:
            yield client
    elif isinstance(scheduler, str | os.PathLike) and Path(scheduler).is_file():
        _check_scheduler_file(Path(scheduler))
        with _connect(scheduler_file=str(scheduler)) as client:
            yield client
    else:
        raise DscError(
            f"scheduler: found {scheduler!r}, need one of {', '.join(LOCAL)}, an address such as "
            "tcp://host:8786, the path of a scheduler file, or a distributed.Client"
        )


@contextmanager
def _ignored_interrupts() -> Iterator[None]:
    """Ignore Ctrl-C for a moment, where that can be done."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _connect(**address: str) -> Any:
    from distributed import Client

    try:
        return Client(**address, timeout=10, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        place = next(iter(address.values()))
        raise DscError(
            f"scheduler: nothing answers at {place}: start one with `dask scheduler`, "
            f"or use --scheduler threads ({error})"
        ) from error


def _check_scheduler_file(path: Path) -> None:
    try:
        address = json.loads(path.read_text(encoding="utf-8"))["address"]
    except (OSError, ValueError, TypeError, KeyError):
        address = None
    if not isinstance(address, str):
        raise DscError(
            f"scheduler: {path} is no scheduler file: need one that `dask scheduler "
            "--scheduler-file` wrote"
        )


def _worker_check(client: Any) -> Callable[[], None]:
    """A check that refuses a cluster without workers, or with workers that give other bits.

    Workers that it has seen are not asked again.
    """
    seen: dict[str, dict[str, str]] = {}

    def check() -> None:
        try:
            client.wait_for_workers(1, timeout=30)
        except TimeoutError as error:
            raise DscError("scheduler: it has no workers: start some with `dask worker`") from error
        new = [name for name in client.scheduler_info(n_workers=-1)["workers"] if name not in seen]
        if not new:
            return
        seen.update(client.run(numerics_fingerprint, workers=new))
        first = next(iter(seen.values()))
        wrong = {
            worker: text
            for worker, theirs in seen.items()
            if (text := fingerprint_difference(first, theirs))
        }
        if wrong:
            listed = "\n".join(f"  {worker}: {text}" for worker, text in wrong.items())
            raise DscError(
                f"workers differ in what decides the bits of a result:\n{listed}\n"
                "give all workers one environment and one type of CPU"
            )

    return check


def _free_memory(limit: int | None) -> int:
    """Bytes for tasks in this process: the limit (by default the machine's) less its own."""
    import psutil
    from distributed.system import MEMORY_LIMIT

    used = psutil.Process().memory_info().rss
    free = (limit or int(0.75 * MEMORY_LIMIT)) - used - PROCESS_BYTES
    if free <= 0:
        raise DscError(
            f"memory_limit: this process already uses {readable(used)}, and needs "
            f"{readable(PROCESS_BYTES)} for its kernels and libraries: give more"
        )
    return int(free)


def _cluster_resources(client: Any, limit: int | None) -> Resources:
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    n_threads = sum(worker["nthreads"] for worker in workers)
    given = min(
        (w["memory_limit"] / w["nthreads"] for w in workers if w["memory_limit"]), default=0
    )
    per_thread = int(0.6 * given) if given else (limit or 2**34) // n_threads
    if limit:
        per_thread = min(per_thread, limit // n_threads)
    return Resources(n_threads, per_thread * n_threads, "the cluster", len(workers))
