"""What every worker of a `distributed` cluster does for the time of a run."""

from __future__ import annotations

import logging
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Any
from uuid import uuid4

from distributed import WorkerPlugin

from dsc.blas import restore_blas_threads, use_one_blas_thread
from dsc.engine.clusters import Answer
from dsc.engine.mapreduce import is_part_key
from dsc.show import PERIOD, Card

LEAVE = 5.0  # seconds that workers have to let go of a run
TOPIC = "dsc"  # of the events that the pages of the dashboard show


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


class OwnWorker(WorkerPlugin):  # type: ignore[misc]
    """A process that we end ourselves: it neither hears Ctrl-C nor complains about its end."""

    name = "dsc-own"

    def setup(self, worker: Any) -> None:  # noqa: ARG002
        """When the worker joins."""
        with suppress(ValueError):  # not in the main thread
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        logging.getLogger("distributed.worker").setLevel(logging.CRITICAL)
        logging.getLogger("distributed.worker.memory").setLevel(logging.WARNING)


@contextmanager
def prepared_workers(client: Any, ask: Callable[[Any], Any]) -> Iterator[set[Any]]:
    """Prepare all workers, also those that join meanwhile; gives the keys of finished tasks.

    `ask` calls a function that waits for all workers.
    """
    name = f"dsc-{uuid4().hex}"
    finished: set[Any] = set()
    try:
        client.subscribe_topic(name, lambda event: finished.add(_key(event[1])))
        ask(partial(client.register_plugin, PreparedWorker(name), name=name))
        yield finished
    finally:
        with suppress(Exception):  # the cluster may be gone
            client.unsubscribe_topic(name)
            Answer(partial(client.unregister_worker_plugin, name)).wait(LEAVE)


class ClusterLog:
    """Tells the scheduler what happens, for the pages of its dashboard, at most twice a second."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.run = uuid4().hex
        self.card = Card("dsc")
        self.last = -float("inf")

    def __call__(self, event: Any) -> None:
        """Log one event."""
        card, bar, now = event.card(), event.bar(), time.monotonic()
        self.card = replace(card or self.card, progress=bar or self.card.progress)
        if (card is None and bar is None) or (now - self.last < PERIOD and not event.is_last):
            return
        self.last = now
        parts = self.card.cards or (self.card,)
        message = {
            "run": self.run,
            "curves": {one.title: list(one.curve) for one in parts if one.curve},
            "pace": getattr(event, "patches_per_second", None) or None,  # unknown at the begin
            "html": self.card.html() if card is not None else "",
        }
        with suppress(Exception):  # the cluster may be gone, which others will notice
            self.client.log_event(TOPIC, message)


def _key(message: Any) -> Any:
    return tuple(message) if isinstance(message, list) else message
