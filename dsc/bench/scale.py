"""Peak memory of a process that learns from few and from many patches under one memory limit."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from dsc.bench.timing import Say
from dsc.errors import DscError
from dsc.patches import PatchConfig, extract_patches

LIMIT = "1GB"
FEW, MANY = 1_010, 4_483  # sides of images with 1 and with 20 million 11-pixel windows
RUNS = {
    "1 million": (FEW, "batch"),
    "20 million": (MANY, "batch"),
    "20 million, online": (MANY, "online"),
}

# The peak is VmHWM: ru_maxrss of a new process begins with what its parent had.
PROGRAM = """
import json, re, sys
from pathlib import Path
import dsc
patches, limit, mode = sys.argv[1:]
model = dsc.learn(patches, 10, 2, n_iterations=1, mode=mode, memory_limit=limit)
peak = 1024 * int(re.search(r"VmHWM:\\s*(\\d+) kB", Path("/proc/self/status").read_text())[1])
print(json.dumps({"peak": peak, "mse": model.mse, "n_patches": model.patches["n_patches"]}))
"""


def run(quick: bool, say: Say) -> dict[str, Any]:
    """One iteration with each image of noise; online that is one pass, and the final one."""
    if quick:
        raise DscError("quick and scale: found both, need one of them: scale has no quick version")
    if not Path("/proc/self/status").is_file():
        raise DscError("bench: the peak memory of a process is read from /proc, need Linux")
    results = {}
    say(f"peak memory of learning under --memory-limit {LIMIT}")
    with TemporaryDirectory() as folder:
        for name, (side, mode) in RUNS.items():
            results[name] = found = measure_peak(side, mode, Path(folder))
            say(f"  {found['n_patches']:>12,} patches, {mode}: {found['peak'] / 1e6:,.0f} MB")
    ratio = results["20 million"]["peak"] / results["1 million"]["peak"]
    say(f"  ratio {ratio:.3f}")
    return {"limit": LIMIT, "runs": results, "ratio": ratio}


def measure_peak(side: int, mode: str, folder: Path) -> dict[str, Any]:
    """Peak memory of a process that learns from the patches of noise of so many pixels a side.

    The patches stay in the folder, and are found there by the next call.
    """
    image, patches = folder / f"{side}.npy", folder / f"{side}.zarr"
    if not patches.exists():
        np.save(image, np.random.default_rng(0).random((side, side), dtype=np.float32))
        extract_patches([image], patches, PatchConfig(diameter=11))
    command = [sys.executable, "-c", PROGRAM, str(patches), LIMIT, mode]
    return dict(json.loads(subprocess.check_output(command)))
