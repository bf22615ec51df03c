"""Taking patches from a large image: one thread against two, and the peak memory of each."""

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

SIDES = {"small": 5_000, "large": 20_000}
CHUNK = 1_000
STRIDE, MIN_STD = 4, 0.02
REPEATS = 3  # the fastest counts

# The peak is VmHWM: ru_maxrss of a new process begins with what its parent had.
PROGRAM = """
import json, re, shutil, sys, time
from pathlib import Path
import dsc
image, out, n_threads, stride, min_std, repeats = sys.argv[1:]
config = dsc.PatchConfig(stride=int(stride), min_std=float(min_std))
times = []
for _ in range(int(repeats)):
    shutil.rmtree(out, ignore_errors=True)
    begin = time.perf_counter()
    patches = dsc.extract_patches(image, out, config, False, n_workers=int(n_threads))
    times.append(time.perf_counter() - begin)
peak = 1024 * int(re.search(r"VmHWM:\\s*(\\d+) kB", Path("/proc/self/status").read_text())[1])
found = {"seconds": min(times), "peak": peak, "n_patches": patches.n_patches}
print(json.dumps({**found, "fingerprint": patches.fingerprint}))
"""


def run(quick: bool, say: Say) -> dict[str, Any]:
    """Take patches of images of both sizes, each in a process of its own."""
    if not Path("/proc/self/status").is_file():
        raise DscError("bench: the peak memory of a process is read from /proc, need Linux")
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, side in {"small": 2_000}.items() if quick else SIDES.items():
            image = f"{folder}/{name}.zarr"
            _write_image(image, side)
            say(f"{side:,} × {side:,} pixels in Zarr, stride {STRIDE}, min_std {MIN_STD}")
            for n_threads in (1, 2):
                words = [image, f"{folder}/out.zarr", n_threads, STRIDE, MIN_STD, REPEATS]
                command = [sys.executable, "-c", PROGRAM, *map(str, words)]
                results[f"{name}, {n_threads}"] = found = json.loads(
                    subprocess.check_output(command)
                )
                say(
                    f"  {n_threads} thread{'s' * (n_threads > 1)}: {found['seconds']:.2f} s for "
                    f"{found['n_patches']:,} patches, peak {found['peak'] / 1e6:,.0f} MB"
                )
            one, two = (results[f"{name}, {n}"] for n in (1, 2))
            if one["fingerprint"] != two["fingerprint"]:
                raise DscError("bench: one thread and two made different patch sets")
            results[f"{name}, ratio"] = one["seconds"] / two["seconds"]
            say(f"  two threads are {results[f'{name}, ratio']:.2f} × as fast; the same patch set")
    return results


def _write_image(path: str, side: int) -> None:
    """Noise whose contrast changes from chunk to chunk, written chunk by chunk."""
    import zarr

    rng = np.random.default_rng(0)
    array = zarr.create_array(path, shape=(side, side), chunks=(CHUNK, CHUNK), dtype="uint8")
    tile = rng.integers(0, 100, (CHUNK, CHUNK), np.uint8)
    for y in range(0, side, CHUNK):
        for x in range(0, side, CHUNK):
            contrast = np.uint8(rng.integers(1, 40))
            array[y : y + CHUNK, x : x + CHUNK] = np.roll(tile, y + x) // contrast
