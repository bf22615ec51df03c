"""`dsc denoise` and `inpaint` in processes of their own: memory does not grow with the image."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import zarr

CHUNK = 500
SIDES = tuple(map(int, os.environ.get("DSC_SIDES", "20000").split(",")))  # pixels across
LIMIT = 10**9
QUICK = ["--n-atoms", "2", "--n-iterations", "1", "--diameter", "3", "--json"]

# The peak is VmHWM: ru_maxrss of a new process begins with what its parent had.
RUN = """
import atexit, re, sys
from pathlib import Path

def say():
    peak = re.search(r"VmHWM:\\s*(\\d+) kB", Path("/proc/self/status").read_text())[1]
    print(1024 * int(peak), file=sys.stderr)

atexit.register(say)
from dsc.cli.main import main
main(sys.argv[1:])
"""

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/status").is_file(), reason="the peak is read from /proc"
)


def write_image(path, side, dtype):
    """Waves and noise, chunk by chunk, and a mask with a hole in every ninth one beside it."""
    how = {"shape": (side, side), "chunks": (CHUNK, CHUNK), "config": {"write_empty_chunks": True}}
    image = zarr.create_array(path, dtype=dtype, **how)
    mask = zarr.create_array(f"{path}.mask", dtype="uint8", **how)
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:CHUNK, :CHUNK]
    hole = np.uint8(np.hypot(y - 200, x - 300) < 12)
    n_chunks = -(-side // CHUNK)
    for number in range(n_chunks**2):
        i, j = (CHUNK * n for n in divmod(number, n_chunks))
        waves = 120 + 60 * np.sin(0.1 * (x + j) + 0.07 * (y + i))
        noisy = (waves + rng.normal(0, 15, waves.shape)).clip(0, 255)
        image[i : i + CHUNK, j : j + CHUNK] = noisy.astype(dtype)[: side - i, : side - j]
        mask[i : i + CHUNK, j : j + CHUNK] = (number % 9 == 0) * hole[: side - i, : side - j]


def peak_of(*words):
    """Bytes that a command takes at most."""
    words = [*map(str, words), *QUICK, "--memory-limit", str(LIMIT), "--n-workers", "2"]
    done = subprocess.run([sys.executable, "-c", RUN, *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["out"].endswith(".zarr")
    return int(done.stderr.splitlines()[-1])


@pytest.mark.soak
@pytest.mark.parametrize("command", ["denoise", "inpaint"])
@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
@pytest.mark.parametrize("side", SIDES)
def test_restore__keeps_the_limit(tmp_path, command, dtype, side):
    """`DSC_SIDES=4000,8000 pytest -m soak tests/restore -s` for smaller images."""
    image = tmp_path / "image.zarr"
    write_image(image, side, dtype)
    more = ["--mask", f"{image}.mask"] if command == "inpaint" else ["--sigma", "15"]
    peak = peak_of(command, image, "--out", tmp_path / "new.zarr", *more)
    print(f"{command} {side} × {side} {dtype}: {peak / 1e6:.0f} MB of {LIMIT / 1e6:.0f} MB")
    assert peak <= LIMIT
