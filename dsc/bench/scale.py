"""Peak memory of a process that learns from few and from many patches under one memory limit."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from dsc.bench.timing import Say
from dsc.errors import DscError
from dsc.patches import PatchConfig, extract_patches

LIMIT = "1GB"
SIDES = {"1 million": 1_010, "20 million": 4_483}  # images with so many 11-pixel windows

# The peak is VmHWM: ru_maxrss of a new process begins with what its parent had.
PROGRAM = """
import json, re, sys
from pathlib import Path
import dsc
model = dsc.learn(sys.argv[1], 10, 2, n_iterations=1, memory_limit=sys.argv[2])
peak = 1024 * int(re.search(r"VmHWM:\\s*(\\d+) kB", Path("/proc/self/status").read_text())[1])
print(json.dumps({"peak": peak, "mse": model.mse, "n_patches": model.patches["n_patches"]}))
"""


def run(quick: bool, say: Say) -> dict[str, Any]:
    """Learn from images of noise of both sizes, each in a process of its own."""
    if quick:
        raise DscError("quick and scale: found both, need one of them: scale has no quick version")
    if not Path("/proc/self/status").is_file():
        raise DscError("bench: the peak memory of a process is read from /proc, need Linux")
    results = {}
    say(f"peak memory of learning under --memory-limit {LIMIT}")
    with tempfile.TemporaryDirectory() as folder:
        for name, side in SIDES.items():
            image, store = f"{folder}/{side}.npy", f"{folder}/{side}.zarr"
            np.save(image, np.random.default_rng(0).random((side, side), dtype=np.float32))
            extract_patches([image], store, PatchConfig(diameter=11))
            command = [sys.executable, "-c", PROGRAM, store, LIMIT]
            results[name] = found = json.loads(subprocess.check_output(command))
            say(f"  {found['n_patches']:>12,} patches: {found['peak'] / 1e6:,.0f} MB")
    few, many = (results[name]["peak"] for name in SIDES)
    say(f"  ratio {many / few:.3f}")
    return {"limit": LIMIT, "runs": results, "ratio": many / few}
