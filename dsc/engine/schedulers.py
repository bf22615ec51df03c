"""Where tasks run: threads, processes, one after the other, or a `distributed` cluster."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any

import dask
from dask.callbacks import Callback
from dask.system import CPU_COUNT

from dsc.blas import restore_blas_threads, use_one_blas_thread
from dsc.engine.mapreduce import part_keys
from dsc.engine.plan import Resources, parse_bytes
from dsc.errors import DscError, count_problem, readable
from dsc.show import PERIOD, Listener, Meter, Place, Stage, listener_of

WORK = Stage("compute", 0)  # what tasks are for, where nobody says it
LOCAL = ("threads", "synchronous", "processes")
# What this process comes to hold besides data, once it has begun: compiled kernels (180 MB where
# nothing is in Numba's cache, else 30), and the libraries that draw the report (60).
PROCESS_BYTES = 240 * 10**6
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
    watch
        Looks after the workers of a cluster, and refuses those that would give other bits.
    finished
        Keys of tasks over parts that workers of a cluster have finished.
    meter
        Tells listeners what happens and how far the tasks are.
    workers
        The workers of a cluster whose threads and memory are counted.
    limit
        Bytes that all of them may use, if somebody said so.
    """

    scheduler: Any
    resources: Resources
    place: str = "this thread"
    watch: Any = None
    finished: set[Any] = field(default_factory=set)
    meter: Meter = field(default_factory=Meter)
    workers: frozenset[str] = frozenset()
    limit: int | None = None

    def current(self) -> Engine:
        """The same engine, or if workers have joined a cluster one that counts on them, too.

        Resources do not shrink: a run goes on as planned when workers leave.
        """
        if not self.is_cluster:
            return self
        with self.watch.guarded():
            found = self.watch.look(self.report)
        if found.keys() <= self.workers:
            return self
        now, before = _cluster_resources(found, self.limit), self.resources
        grown = now.n_threads > before.n_threads
        enough = now.memory_per_thread >= before.memory_per_thread
        return replace(
            self, workers=frozenset(found), resources=now if grown and enough else before
        )

    def compute(self, values: list[Any], stage: Stage = WORK) -> list[Any]:
        """Results of delayed values, computed in one graph; the stage says what they are for."""
        with dask.config.set(GRAPHS):
            if not self.is_cluster:
                return list(dask.compute(*values, **self._options(values, stage)))
            with self.watch.guarded():
                self.watch.check(self.report)
                results = self._gather(self.scheduler.compute(values), values, stage)
                self.watch.check(self.report)  # a worker may have joined meanwhile
                return results

    def persist(self, values: list[Any], stage: Stage = WORK) -> list[Any]:
        """The same delayed values, computed and kept where they were made."""
        with dask.config.set(GRAPHS):
            if not self.is_cluster:
                return list(dask.persist(*values, **self._options(values, stage)))
            with self.watch.guarded():
                self.watch.check(self.report)
                return list(self.scheduler.persist(values))

    def near(self, needed: bool = True) -> Engine:
        """Threads of this process where tasks need what is in its memory; else this engine."""
        if not (needed and self.is_cluster):
            return self
        resources = Resources(CPU_COUNT, self.resources.memory)
        return replace(self, scheduler="threads", resources=resources, watch=None)

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

        from dsc.engine.clusters import Answer

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
                    self.watch.look(self.report, (stage, done))
            return list(self.scheduler.gather(futures))
        except BaseException:
            Answer(lambda: self.scheduler.cancel(futures)).wait(PERIOD)  # the cluster may be gone
            raise
        finally:
            self.finished.clear()


@contextmanager
def open_engine(
    scheduler: Any = None,
    n_workers: int | None = None,
    memory_limit: str | int | None = None,
    progress: Callable[[Any], None] | bool | None = None,
    patience: float = 300.0,
    tls: Mapping[str, str] | None = None,
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
    patience
        Seconds to wait for the workers of a cluster, if there are none or one does not answer.
    tls
        Files in PEM format for a scheduler at tls://…: "ca", the authority that signed the
        certificates of the cluster, and "cert" and "key", our own.
    """
    if isinstance(scheduler, Engine):
        yield scheduler
        return
    listeners = listener_of(progress)
    if not patience > 0:
        raise DscError(f"patience: found {patience!r}, need seconds > 0")
    way = _Way(float(patience), tls, Meter(*listeners))
    with _open(scheduler, n_workers, memory_limit, way) as engine:
        heard = engine.listening(*listeners)
        try:
            heard.report(Place(engine.place))
            yield heard
        finally:
            heard.meter.close()


@dataclass(frozen=True)
class _Way:
    """How a cluster is reached."""

    patience: float
    tls: Mapping[str, str] | None
    report: Listener


@contextmanager
def _open(
    scheduler: Any, n_workers: int | None, memory_limit: str | int | None, way: _Way
) -> Iterator[Engine]:
    if n_workers is not None and (problem := count_problem("n_workers", n_workers, 1)):
        raise DscError(problem)
    limit = None if memory_limit is None else parse_bytes(memory_limit)
    if scheduler is None:
        scheduler = _active_client() or "threads"
    if way.tls and scheduler in LOCAL:
        raise DscError(f"tls: found certificates for {scheduler}, need a scheduler at tls://…")
    with ExitStack() as stack:
        if scheduler in ("threads", "synchronous"):
            stack.callback(restore_blas_threads)
            use_one_blas_thread()
            n_threads = 1 if scheduler == "synchronous" else n_workers or CPU_COUNT
            place = f"{n_threads} thread{'s' * (n_threads > 1)} of this process"
            yield Engine(scheduler, Resources(n_threads, _free_memory(limit)), place)
            return
        from dsc.engine.clusters import Watch
        from dsc.engine.workers import ClusterLog, prepared_workers

        client = stack.enter_context(_client(scheduler, n_workers, limit, way.tls))
        watch = Watch(client, way.patience)
        with watch.guarded():
            watch.check(way.report)
            ask = partial(watch.patiently, report=way.report)
            finished = stack.enter_context(prepared_workers(client, ask))
            found = watch.look(way.report)
        resources, meter = _cluster_resources(found, limit), Meter(ClusterLog(client))
        place = f"the Dask cluster {client.scheduler.address} ({resources.n_threads} threads)"
        yield Engine(client, resources, place, watch, finished, meter, frozenset(found), limit)


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
def _client(
    scheduler: Any, n_workers: int | None, limit: int | None, tls: Mapping[str, str] | None
) -> Iterator[Any]:
    from distributed import Client, LocalCluster

    from dsc.engine.clusters import connect
    from dsc.engine.workers import OwnWorker

    if isinstance(scheduler, Client):
        yield scheduler
    elif scheduler == "processes":
        count = n_workers or CPU_COUNT
        with ExitStack() as stack:
            with _held_interrupts():
                cluster = stack.enter_context(
                    LocalCluster(
                        n_workers=count,
                        threads_per_worker=1,
                        memory_limit=limit // count if limit else "auto",
                        dashboard_address="127.0.0.1:0",  # any free port: two may run side by side
                        host="127.0.0.1",
                    )
                )
            client = stack.enter_context(Client(cluster, set_as_default=False))
            client.register_plugin(OwnWorker())
            yield client
    elif isinstance(scheduler, str) and "://" in scheduler:
        with connect({"address": scheduler}, scheduler, tls) as client:
            yield client
    elif isinstance(scheduler, str | os.PathLike) and Path(scheduler).is_file():
        address = _address_in(Path(scheduler))
        with connect({"scheduler_file": str(scheduler)}, address, tls) as client:
            yield client
    else:
        raise DscError(
            f"scheduler: found {scheduler!r}, need one of {', '.join(LOCAL)}, an address such as "
            "tcp://host:8786, the path of a scheduler file, or a distributed.Client"
        )


@contextmanager
def _held_interrupts() -> Iterator[None]:
    """Let Ctrl-C wait for a moment; processes that are started then never see it."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    resource_tracker.ensure_running()  # it would let interrupts through
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _address_in(path: Path) -> str:
    """The address in a scheduler file."""
    try:
        address = json.loads(path.read_text(encoding="utf-8"))["address"]
    except (OSError, ValueError, TypeError, KeyError):
        address = None
    if not isinstance(address, str):
        raise DscError(
            f"scheduler: {path} is no scheduler file: need one that `dask scheduler "
            "--scheduler-file` wrote"
        )
    return address


def _free_memory(limit: int | None) -> int:
    """Bytes for tasks in this process: the limit (by default the machine's) less its own."""
    import psutil
    from distributed.system import MEMORY_LIMIT

    used = psutil.Process().memory_info().rss - _mapped_bytes()
    free = (limit or int(0.75 * MEMORY_LIMIT)) - used - PROCESS_BYTES
    if free <= 0:
        raise DscError(
            f"memory_limit: this process already uses {readable(used)}, and needs "
            f"{readable(PROCESS_BYTES)} for its kernels and libraries: give more"
        )
    return int(free)


def _mapped_bytes() -> int:
    """Bytes of data files that are mapped into memory (`np.memmap`): the system takes them back.

    Libraries are left out, which stay; so is memory that processes share. 0 where it is not known.
    """
    import psutil

    try:
        maps = psutil.Process().memory_maps(grouped=False)
        libraries = {one.path for one in maps if "x" in one.perms}
        return sum(
            one.rss - one.anonymous
            for one in maps
            if one.path.startswith("/")
            and not one.path.startswith(("/dev/", "/memfd:", "/SYSV"))
            and one.path not in libraries
        )
    except (psutil.Error, OSError, AttributeError, NotImplementedError):  # not on Linux
        return 0


def _cluster_resources(found: dict[str, Any], limit: int | None) -> Resources:
    workers = found.values()
    n_threads = sum(worker["nthreads"] for worker in workers)
    given = min(
        (w["memory_limit"] / w["nthreads"] for w in workers if w["memory_limit"]), default=0
    )
    per_thread = int(0.6 * given) if given else (limit or 2**34) // n_threads
    if limit:
        per_thread = min(per_thread, limit // n_threads)
    return Resources(n_threads, per_thread * n_threads, "the cluster", len(workers))
