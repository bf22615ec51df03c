"""A `distributed` cluster as its client sees it: the way in, and what to do when nobody answers."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import CancelledError
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import dask
from distributed import Client, KilledWorker, Security
from distributed.comm import CommClosedError

from dsc.engine.numerics import fingerprint_difference, numerics_fingerprint
from dsc.errors import DscError
from dsc.show import PERIOD, Listener, Notice

PATIENCE = 300.0  # seconds to wait for workers that are gone or silent
EMPTY = 6.0  # seconds without workers until it is said
SILENT = 20.0  # seconds without a heartbeat until it is said; compiling may take some
AGAIN = "repeat the command, with --resume if it has it (in Python: resume=True)"
TLS = {"ca": "tls_ca_file", "cert": "tls_client_cert", "key": "tls_client_key"}


def connect(place: Mapping[str, str], address: str, tls: Mapping[str, str] | None) -> Client:
    """A client of the scheduler at an address, which `place` says as `Client` takes it."""
    security = _security(tls)
    if security is None and address.startswith("tls://") and not _has_certificates():
        raise DscError(
            f"scheduler: {address} needs certificates: give --tls-ca, --tls-cert and --tls-key "
            "(in Python: tls={'ca': …, 'cert': …, 'key': …})"
        )
    if security is not None and address.startswith("tcp://"):
        raise DscError(f"scheduler: found certificates for {address}, need an address tls://…")
    try:
        return Client(**place, timeout=10, set_as_default=False, security=security)
    except (OSError, TimeoutError, ValueError, TypeError, RuntimeError) as error:
        fits = " that accepts these certificates" if address.startswith("tls://") else ""
        text = " ".join(str(error).split())
        raise DscError(
            f"scheduler: nothing{fits} answers at {next(iter(place.values()))}: start one with "
            f"`dask scheduler`, or use --scheduler threads ({text})"
        ) from error


def _has_certificates() -> bool:
    """Whether the configuration of Dask names some."""
    return bool(dask.config.get("distributed.comm.tls.ca-file", None))


def _security(tls: Mapping[str, str] | None) -> Security | None:
    if tls is None:
        return None
    if set(tls) != set(TLS):
        found = ", ".join(f"tls_{name}" for name in tls) or "none"
        raise DscError(f"tls: found {found}, need all of tls_ca, tls_cert and tls_key")
    for name, path in tls.items():
        if not Path(path).is_file():
            raise DscError(f"tls_{name}: {path} does not exist: need a file in PEM format")
    return Security(require_encryption=True, **{TLS[name]: str(p) for name, p in tls.items()})


class Watch:
    """Looks after the workers while the client waits for them.

    Parameters
    ----------
    client
        The client of the cluster.
    patience
        Seconds to wait for workers, if there are none or one of them does not answer.
    """

    def __init__(self, client: Any, patience: float = PATIENCE) -> None:
        self.client = client
        self.patience = patience
        self.address = str(client.scheduler.address)
        self._seen: dict[str, dict[str, str]] = {}  # fingerprints
        self._beats: dict[str, tuple[float, float]] = {}  # the last one, and when we learned of it
        self._progress: tuple[Any, float] = (None, time.monotonic())
        self._filled = time.monotonic()  # when there were workers
        self._told = False

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """Say in one line that the scheduler is gone, or that a task ends its workers."""
        try:
            yield
        except KilledWorker as error:
            n_died = error.allowed_failures + 1
            raise DscError(
                f"workers died {'once' if n_died == 1 else f'{n_died} times'} in the task "
                f"{error.task}, the last one was "
                f"{error.last_worker}: look into its log, give workers more memory, then {AGAIN}"
            ) from None
        except (CancelledError, OSError, RuntimeError) as error:
            lost = isinstance(error, CancelledError | CommClosedError)
            if lost or self.client.status != "running":
                raise self._gone() from None
            raise

    def check(self, report: Listener) -> None:
        """Wait for workers, and refuse such as give other bits; those that were seen already pass.

        Workers that vanish while they are asked are left out.
        """
        self._filled = time.monotonic()
        wanted = None
        while not (workers := self.look(report)):
            # a cluster that grows with its work needs some
            wanted = wanted or self.client.submit(int, pure=False)
            time.sleep(PERIOD)
        begin = time.monotonic()
        while new := [name for name in workers if name not in self._seen]:
            if time.monotonic() - begin > self.patience:
                raise DscError(
                    f"worker {new[0]} cannot be reached from the scheduler at {self.address} for "
                    f"{self.patience:.0f} s: end it, or open the way to it, then {AGAIN}"
                )
            ask = partial(self.client.run, numerics_fingerprint, workers=new, on_error="return")
            for name, found in self.patiently(ask, report).items():
                if isinstance(found, dict):
                    self._seen[name] = found
                elif not isinstance(found, OSError):  # else it is gone
                    raise DscError(f"worker {name}: {found}: give all workers one environment")
            self._refuse_others()
            time.sleep(PERIOD if any(name not in self._seen for name in new) else 0)
            workers = self.look(report)

    def look(self, report: Listener, progress: Any = None) -> dict[str, Any]:
        """Who works now. Says so if nobody does, and is an error when that lasts too long."""
        if self.client.status != "running":
            raise self._gone()
        try:
            ask = self.client.scheduler.identity
            workers = self.client.sync(ask, n_workers=-1, callback_timeout=self.patience)["workers"]
        except (OSError, TimeoutError):
            raise self._gone() from None
        now = time.monotonic()
        if progress != self._progress[0]:
            self._progress = progress, now
        self._filled = now if workers else self._filled
        before = self._beats
        self._beats = {
            name: before[name]
            if before.get(name, (None, 0))[0] == worker["last_seen"]
            else (worker["last_seen"], now)
            for name, worker in workers.items()
        }
        self._judge(report, now)
        return dict(workers)

    def patiently(self, call: Callable[[], Any], report: Listener) -> Any:
        """What a call to all workers gives; it is repeated if one of them vanishes meanwhile."""
        begin = time.monotonic()
        while True:
            answer = Answer(call)
            while not answer.wait(PERIOD):
                self.look(report)
            try:
                return answer.value()
            except OSError:
                if time.monotonic() - begin > self.patience:
                    raise
                self.look(report)

    def _judge(self, report: Listener, now: float) -> None:
        """Say what is wrong, once; raise what is wrong for too long."""
        stuck = now - self._progress[1]
        silent = {name: min(stuck, now - when) for name, (_, when) in self._beats.items()}
        name = max(silent, key=silent.__getitem__, default="")
        if not self._beats:
            problem, seconds, least = "the cluster has no workers", now - self._filled, EMPTY
            cure = "start some with `dask worker`"
        else:
            problem, seconds, least = f"worker {name} does not answer", silent[name], SILENT
            cure = "end it, or start it again"
        if seconds >= self.patience:
            raise DscError(
                f"scheduler: {problem} at {self.address} for {seconds:.0f} s: {cure}, then {AGAIN}"
            )
        if seconds >= least and not self._told:
            left = self.patience - seconds
            report(Notice(f"{problem}: waiting {left:.0f} s more (--patience); {cure}"))
        elif seconds < least and self._told:
            report(Notice("the workers are there again"))
        self._told = seconds >= least

    def _refuse_others(self) -> None:
        first = next(iter(self._seen.values()), {})
        wrong = {
            worker: text
            for worker, theirs in self._seen.items()
            if (text := fingerprint_difference(first, theirs))
        }
        if wrong:
            listed = "\n".join(f"  {worker}: {text}" for worker, text in wrong.items())
            raise DscError(
                f"workers differ in what decides the bits of a result:\n{listed}\n"
                "give all workers one environment and one type of CPU"
            )

    def _gone(self) -> DscError:
        for name in ("client", "batched", "core"):  # they complain at length, about the same
            logging.getLogger(f"distributed.{name}").setLevel(logging.CRITICAL)
        return DscError(f"the scheduler at {self.address} is gone: start it again and {AGAIN}")


class Answer:
    """A call in a thread of its own, which is left alone if it never ends."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self._call = call
        self._value: Any = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def wait(self, seconds: float) -> bool:
        """Whether it ended within some seconds."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def value(self) -> Any:
        """What the call gave, or raised."""
        if self._error is not None:
            raise self._error
        return self._value

    def _run(self) -> None:
        try:
            self._value = self._call()
        except BaseException as error:
            self._error = error
