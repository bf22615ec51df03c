"""Peak memory of a process that learns from few and from many patches under one memory limit."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from dsc.errors import DscError
from dsc.patches import PatchConfig, extract_patches

LIMIT = "1GB"
SIDES = {"1 million": 1_010, "20 million": 4_483}  # pictures with so many 11-pixel windows

# The peak is VmHWM: ru_maxrss of a new process begins with what its parent had.
PROGRAM = """
import json, re, sys
from pathlib import Path
import dsc
model = dsc.learn(sys.argv[1], 10, 2, n_iterations=1, memory_limit=sys.argv[2])
peak = 1024 * int(re.search(r"VmHWM:\\s*(\\d+) kB", Path("/proc/self/status").read_text())[1])
print(json.dumps({"peak": peak, "mse": model.mse, "n_patches": model.patches["n_patches"]}))
"""


def run(quick: bool = False) -> dict[str, Any]:
    """Learn from pictures of noise of both sizes, each in a process of its own."""
    if quick:
        raise DscError("quick and scale: found both, need one of them: scale has no quick version")
    if not Path("/proc/self/status").is_file():
        raise DscError("bench: the peak memory of a process is read from /proc, need Linux")
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, side in SIDES.items():
            image, store = f"{folder}/{side}.npy", f"{folder}/{side}.zarr"
            np.save(image, np.random.default_rng(0).random((side, side), dtype=np.float32))
            extract_patches([image], store, PatchConfig(diameter=11))
            command = [sys.executable, "-c", PROGRAM, store, LIMIT]
            results[name] = json.loads(subprocess.check_output(command))
    few, many = (results[name]["peak"] for name in SIDES)
    return {"limit": LIMIT, "runs": results, "ratio": many / few}


def describe(summary: dict[str, Any]) -> str:
    """The results for people."""
    lines = [f"peak memory of learning under --memory-limit {summary['limit']}"]
    for run in summary["runs"].values():
        lines.append(f"  {run['n_patches']:>12,} patches: {run['peak'] / 1e6:,.0f} MB")
    return "\n".join([*lines, f"  ratio {summary['ratio']:.3f}"])
