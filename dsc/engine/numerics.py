"""What decides the bits of a result besides the data: library versions, CPU type, BLAS threads."""

from __future__ import annotations

import importlib.metadata
import threading
from typing import Any

from llvmlite import binding
from threadpoolctl import threadpool_info, threadpool_limits

_lock = threading.Lock()
_limits: list[Any] = []


def use_one_blas_thread() -> None:
    """Set BLAS to one thread in this process, once: two threads give other bits than one."""
    with _lock:
        if not _limits:
            _limits.append(threadpool_limits(limits=1, user_api="blas"))


def restore_blas_threads() -> None:
    """Undo `use_one_blas_thread`."""
    with _lock:
        while _limits:
            _limits.pop().restore_original_limits()


def numerics_fingerprint() -> dict[str, str]:
    """What must agree between machines for results to agree to the bit."""
    import scipy.linalg  # loads the BLAS that eigh uses

    del scipy
    found = {
        name: importlib.metadata.version(name) for name in ("numpy", "scipy", "numba", "llvmlite")
    }
    found["cpu"] = binding.get_host_cpu_name()
    found["blas"] = ", ".join(
        sorted(
            {
                f"{library.get('internal_api')} {library.get('version')} "
                f"{library.get('architecture', '')}".strip()
                for library in threadpool_info()
                if library.get("user_api") == "blas"
            }
        )
    )
    return found


def fingerprint_difference(mine: dict[str, str], theirs: dict[str, str]) -> str:
    """The entries that differ, in words; empty if none do."""
    keys = sorted(mine.keys() | theirs.keys())
    return "; ".join(
        f"{key}: {theirs.get(key)} instead of {mine.get(key)}"
        for key in keys
        if mine.get(key) != theirs.get(key)
    )
