"""BLAS threads: two give other bits than one, and their number is a property of the process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from threadpoolctl import threadpool_limits

_lock = threading.RLock()
_limits: list[Any] = []
_users = 0


def use_one_blas_thread() -> None:
    """Set BLAS to one thread in this process, until as many `restore_blas_threads`."""
    import scipy.linalg  # brings a BLAS of its own: what is loaded later would not be limited

    del scipy
    global _users
    with _lock:
        _users += 1
        if not _limits:
            _limits.append(threadpool_limits(limits=1, user_api="blas"))


def restore_blas_threads() -> None:
    """Undo one `use_one_blas_thread`."""
    global _users
    with _lock:
        _users = max(0, _users - 1)
        if not _users and _limits:
            _limits.pop().restore_original_limits()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """One BLAS thread for a short computation; nobody changes their number meanwhile."""
    with _lock:
        if _limits:
            yield
        else:
            with threadpool_limits(limits=1, user_api="blas"):
                yield
