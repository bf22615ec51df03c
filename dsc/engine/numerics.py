"""What decides the bits of a result besides the data: library versions and CPU type."""

from __future__ import annotations

import importlib.metadata
from functools import cache
from pathlib import Path
from typing import Any

from llvmlite import binding
from threadpoolctl import threadpool_info


def numerics_fingerprint() -> dict[str, str]:
    """What must agree between machines for results to agree to the bit."""
    import scipy.linalg  # loads the BLAS that eigh uses

    del scipy
    found = {name: _version(name) for name in ("numpy", "scipy", "numba", "llvmlite")}
    found["cpu"] = binding.get_host_cpu_name()
    names = {
        f"{library.get('internal_api')} {library.get('version')} "
        f"{library.get('architecture', '')}".strip()
        for library in _blas_libraries()
    }
    found["blas"] = ", ".join(sorted(names))
    return found


def _blas_libraries() -> list[dict[str, Any]]:
    """The BLAS of NumPy and SciPy; where they bring none of their own, all that are loaded."""
    loaded = [library for library in threadpool_info() if library.get("user_api") == "blas"]
    ours = [
        library
        for library in loaded
        if {"numpy.libs", "scipy.libs"} & set(Path(library["filepath"]).parts)
    ]
    return ours or loaded


@cache
def _version(package: str) -> str:
    return importlib.metadata.version(package)  # reads a file


def fingerprint_difference(mine: dict[str, str], theirs: dict[str, str]) -> str:
    """The entries that differ, in words; empty if none do."""
    keys = sorted(mine.keys() | theirs.keys())
    return "; ".join(
        f"{key}: {theirs.get(key)} instead of {mine.get(key)}"
        for key in keys
        if mine.get(key) != theirs.get(key)
    )
