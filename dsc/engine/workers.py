"""What every worker of a `distributed` cluster does for the time of a run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from uuid import uuid4

from distributed import WorkerPlugin

from dsc.blas import restore_blas_threads, use_one_blas_thread


class OneBlasThread(WorkerPlugin):  # type: ignore[misc]
    """Holds BLAS at one thread: two give other bits."""

    def setup(self, worker: Any) -> None:  # noqa: ARG002
        """When the run begins, or when the worker joins."""
        use_one_blas_thread()

    def teardown(self, worker: Any) -> None:  # noqa: ARG002
        """When the run ends."""
        restore_blas_threads()


@contextmanager
def one_blas_thread_on_workers(client: Any) -> Iterator[None]:
    """One BLAS thread on all workers, also on those that join meanwhile."""
    name = f"dsc-one-blas-thread-{uuid4().hex}"
    try:
        client.register_plugin(OneBlasThread(), name=name)
        yield
    finally:
        with suppress(Exception):  # the cluster may be gone
            client.unregister_worker_plugin(name)
