"""Where tasks run: threads, processes, one after the other, or a `distributed` cluster."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dask
from dask.system import CPU_COUNT

from dsc.blas import restore_blas_threads, use_one_blas_thread
from dsc.engine.numerics import fingerprint_difference, numerics_fingerprint
from dsc.engine.plan import Resources, parse_bytes
from dsc.errors import DscError, count_problem

LOCAL = ("threads", "synchronous", "processes")
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
    check
        Refuses workers that joined since and would give other bits.
    """

    scheduler: Any
    resources: Resources
    check: Callable[[], None] = lambda: None

    def compute(self, values: list[Any]) -> list[Any]:
        """Results of delayed values, computed in one graph."""
        self.check()
        with dask.config.set(GRAPHS):
            results = list(dask.compute(*values, **self._options()))
        self.check()  # a worker may have joined meanwhile
        return results

    def persist(self, values: list[Any]) -> list[Any]:
        """The same delayed values, computed and kept where they were made."""
        self.check()
        with dask.config.set(GRAPHS):
            return list(dask.persist(*values, **self._options()))

    def _options(self) -> dict[str, Any]:
        options = {"scheduler": self.scheduler}
        if self.scheduler == "threads":
            options["num_workers"] = self.resources.n_threads
        return options


@contextmanager
def open_engine(
    scheduler: Any = "threads", n_workers: int | None = None, memory_limit: str | int | None = None
) -> Iterator[Engine]:
    """An `Engine` for the time of a run.

    Parameters
    ----------
    scheduler
        "threads", "synchronous", "processes" (a local cluster of our own with one thread per
        worker), the address of a scheduler (tcp://…, tls://…), the path of a scheduler file, or a
        `distributed.Client`. An `Engine` is passed through.
    n_workers
        Threads, or processes, of a local scheduler; by default the number of cores.
    memory_limit
        Bytes, or "1GB": what this process, or all local worker processes together, may use.
    """
    if isinstance(scheduler, Engine):
        yield scheduler
        return
    if n_workers is not None and (problem := count_problem("n_workers", n_workers, 1)):
        raise DscError(problem)
    limit = None if memory_limit is None else parse_bytes(memory_limit)
    with ExitStack() as stack:
        if scheduler in ("threads", "synchronous"):
            stack.callback(restore_blas_threads)
            use_one_blas_thread()
            n_threads = 1 if scheduler == "synchronous" else n_workers or CPU_COUNT
            yield Engine(scheduler, Resources(n_threads, _free_memory(limit)))
            return
        from dsc.engine.workers import one_blas_thread_on_workers

        client = stack.enter_context(_client(scheduler, n_workers, limit))
        stack.enter_context(one_blas_thread_on_workers(client))
        check = _worker_check(client)
        check()
        yield Engine(client, _cluster_resources(client, limit), check)


@contextmanager
def _client(scheduler: Any, n_workers: int | None, limit: int | None) -> Iterator[Any]:
    from distributed import Client, LocalCluster

    if isinstance(scheduler, Client):
        yield scheduler
    elif scheduler == "processes":
        count = n_workers or CPU_COUNT
        with (
            LocalCluster(
                n_workers=count,
                threads_per_worker=1,
                memory_limit=limit // count if limit else "auto",
                dashboard_address="127.0.0.1:0",  # any free port: two clusters may run side by side
                host="127.0.0.1",
            ) as cluster,
            Client(cluster) as client,
        ):
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


def _connect(**address: str) -> Any:
    from distributed import Client

    try:
        return Client(**address, timeout=10)
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
    """Bytes for tasks in this process: the limit (by default the machine's) less what is used."""
    import psutil
    from distributed.system import MEMORY_LIMIT

    used = psutil.Process().memory_info().rss
    free = (limit or int(0.75 * MEMORY_LIMIT)) - used
    if free <= 0:
        raise DscError(f"memory_limit: this process already uses {used / 1e6:.0f} MB: give more")
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
    return Resources(n_threads, per_thread * n_threads, "a worker")
