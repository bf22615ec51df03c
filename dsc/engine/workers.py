"""What every worker of a `distributed` cluster does for the time of a run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from uuid import uuid4

from distributed import WorkerPlugin

from dsc.blas import restore_blas_threads, use_one_blas_thread
from dsc.engine.mapreduce import is_part_key


class PreparedWorker(WorkerPlugin):  # type: ignore[misc]
    """Holds BLAS at one thread, since two give other bits, and tells which tasks are finished."""

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self.worker: Any = None

    def setup(self, worker: Any) -> None:
        """When the run begins, or when the worker joins."""
        self.worker = worker
        use_one_blas_thread()

    def teardown(self, worker: Any) -> None:  # noqa: ARG002
        """When the run ends."""
        restore_blas_threads()

    def transition(self, key: Any, start: str, finish: str, **_: Any) -> None:
        """When a task goes from one state to another."""
        if start == "executing" and finish == "memory" and is_part_key(key):
            self.worker.log_event(self.topic, key)


@contextmanager
def prepared_workers(client: Any) -> Iterator[set[Any]]:
    """Prepare all workers, also those that join meanwhile; gives the keys of finished tasks."""
    name = f"dsc-{uuid4().hex}"
    finished: set[Any] = set()
    try:
        client.subscribe_topic(name, lambda event: finished.add(_key(event[1])))
        client.register_plugin(PreparedWorker(name), name=name)
        yield finished
    finally:
        with suppress(Exception):  # the cluster may be gone
            client.unsubscribe_topic(name)
            client.unregister_worker_plugin(name)


def _key(message: Any) -> Any:
    return tuple(message) if isinstance(message, list) else message
