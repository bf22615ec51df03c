"""Ctrl-C and SIGTERM: one message and an exit code, no tracebacks, and an end within seconds.

Until a command begins, and after it has ended, there is nothing to clean up: the process ends at
once. In between an exception is raised, and whatever is said later by others is kept back.
"""

from __future__ import annotations

import _thread
import atexit
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}
MOST_SECONDS = 8.0  # from a signal to the end of the process

_process = {"is_ours": False, "was_told": False}


class Terminated(KeyboardInterrupt):
    """SIGTERM came."""


def own_process() -> None:
    """From now on this process is the program: signals end it at once."""
    if not _process["is_ours"]:
        _process["is_ours"] = True
        _handle(_leave)
        atexit.register(_ignore)  # the first to be registered is the last to be called


@contextmanager
def raised_signals() -> Iterator[None]:
    """Raise signals as exceptions while a command runs."""
    before = _handle(_raise)
    try:
        yield
    finally:
        for number, handler in before.items():
            if signal.getsignal(number) is _raise:  # else one came: no second one is needed
                signal.signal(number, handler)


@contextmanager
def left_at_once() -> Iterator[None]:
    """End the process at once for a moment, if it is ours: imports do not bear exceptions."""
    before = _handle(_leave) if _process["is_ours"] else {}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def tell(interrupt: KeyboardInterrupt) -> int:
    """Say that the program was interrupted, and what to do if somebody knew; the exit code."""
    _write("\n".join(getattr(interrupt, "__notes__", ["dsc: interrupted"])))
    return CODES[signal.SIGTERM if isinstance(interrupt, Terminated) else signal.SIGINT]


def _handle(handler: Callable[[int, Any], None]) -> dict[signal.Signals, Any]:
    """Set the handler of those signals that are not ignored; what it was before."""
    try:
        return {
            number: signal.signal(number, handler)
            for number in CODES
            if signal.getsignal(number) is not signal.SIG_IGN  # such as with nohup
        }
    except ValueError:  # not in the main thread
        return {}


def _raise(number: int, _: Any) -> None:
    if _process["is_ours"]:
        for one in CODES:
            signal.signal(one, signal.SIG_IGN)
        _silence()
        _thread.start_new_thread(_leave_later, (number,))  # `threading` may hold a lock here
    raise Terminated if number == signal.SIGTERM else KeyboardInterrupt


def _silence() -> None:
    """Keep back what threads, loops and destructors say of an interrupt."""
    import logging
    import threading
    import warnings

    def nothing(_: Any) -> None:
        pass

    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    sys.unraisablehook = nothing
    threading.excepthook = nothing


def _ignore() -> None:
    """At the very end, when Python takes the handlers away: a signal would change the exit code."""
    for number in CODES:
        signal.signal(number, signal.SIG_IGN)


def _leave_later(number: int) -> None:
    time.sleep(MOST_SECONDS)
    _leave(number)


def _leave(number: int, _: Any = None) -> None:
    _write("dsc: interrupted")
    os._exit(CODES[signal.Signals(number)])


def _write(text: str) -> None:
    """Write the one message."""
    if not _process["was_told"]:
        _process["was_told"] = _process["is_ours"]
        try:
            sys.stderr.write(text + "\n")
            sys.stderr.flush()
        except (OSError, RuntimeError, ValueError):  # closed, or being written to
            os.write(2, f"{text}\n".encode())
