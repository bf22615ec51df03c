"""`dsc learn` in a process of its own, at the smallest memory limit that its plan accepts."""

import json
import os
import subprocess
import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from dsc.bench import scale
from dsc.patches import PatchConfig, extract_patches

SIDE = 77  # windows along an image: 5929 patches of any diameter
NOISE = 2 * 10**6  # by how much processes differ when they begin
STEP, MOST_STEPS = 10**7, 6  # where the C library holds back freed memory, they differ by more

# What begins as `dsc learn` does, and asks for the smallest limit instead of learning.
SMALLEST = """
import json, sys
import dsc.cli.main, dsc.cli.dictionary
from dsc.dictionary.config import LearnConfig
from dsc.dictionary.learning import make_problem
from dsc.dictionary.loop import plan_problems
from dsc.engine import open_engine
from dsc.errors import DscError

patches, options, n_workers = sys.argv[1], json.loads(sys.argv[2]), int(sys.argv[3])
problem = make_problem(patches, LearnConfig(**options))
refused, accepted = 10**7, 10**11
while accepted - refused > 10**5:
    limit = (refused + accepted) // 2
    try:
        with open_engine("threads", n_workers, limit, progress=False) as engine:
            plan_problems([problem], engine)
        accepted = limit
    except DscError:
        refused = limit
print(accepted)
"""

# The peak is VmHWM: ru_maxrss of a new process begins with what its parent had.
LEARN = """
import atexit, re, sys
from pathlib import Path

def say():
    peak = re.search(r"VmHWM:\\s*(\\d+) kB", Path("/proc/self/status").read_text())[1]
    print(1024 * int(peak), file=sys.stderr)

atexit.register(say)
from dsc.cli.main import main
main(sys.argv[1:])
"""

GRID = list(product((11, 21, 42), (10, 50), (1, 4), ("ksvd", "mod", "online"), (1, 2)))
SOME = [
    (11, 10, 4, "ksvd", 2),
    (21, 50, 4, "ksvd", 2),
    (42, 10, 1, "mod", 2),
    (21, 50, 4, "online", 2),
]

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/status").is_file(), reason="the peak is read from /proc"
)


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """stored(diameter): the path of a patch set, made once."""
    folder = tmp_path_factory.mktemp("memory")

    def get(diameter):
        path = folder / f"{diameter}.zarr"
        if not path.exists():
            side = SIDE + diameter - 1
            image = np.random.default_rng(0).random((side, side), dtype=np.float32)
            np.save(folder / f"{diameter}.npy", image)
            extract_patches([folder / f"{diameter}.npy"], path, PatchConfig(diameter=diameter))
        return str(path)

    return get


def run_python(program, *words, **environment):
    command = [sys.executable, "-c", program, *map(str, words)]
    return subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, **environment}
    )


def measure(path, out, setting, **environment):
    """(limit, peak): bytes, of a run with one update."""
    n_atoms, sparsity, update, n_workers = setting
    way = {"mode": "online"} if update == "online" else {"update": update}
    options = {"n_atoms": n_atoms, "sparsity": sparsity, **way, "n_iterations": 1}
    others = {name: f"{value}-of-the-plan" for name, value in environment.items()}
    found = run_python(SMALLEST, path, json.dumps(options), n_workers, **others)
    assert found.returncode == 0, found.stderr
    smallest = int(found.stdout) + NOISE
    words = [word for name, value in options.items() for word in (_flag(name), value)]
    for limit in range(smallest, smallest + MOST_STEPS * STEP, STEP):
        how = ["--scheduler", "threads", "--n-workers", n_workers, "--memory-limit", limit]
        done = run_python(LEARN, "learn", path, "--out", out, *words, *how, **environment)
        if "learning needs about" not in done.stderr:  # else it is refused: nothing was begun
            break
    assert done.returncode == 0, done.stderr
    peak = int(done.stderr.splitlines()[-1])
    line = f"{Path(path).stem} {setting}: {limit / 1e6:.0f} MB, {peak / 1e6:.0f} MB, "
    print(line + f"{peak / limit:.3f}", flush=True)
    return limit, peak


def _flag(name):
    return "--" + name.replace("_", "-")


@pytest.mark.parametrize("setting", SOME, ids=str)
def test_learn__keeps_the_smallest_limit(stored, tmp_path, setting):
    limit, peak = measure(stored(setting[0]), tmp_path / "run", setting[1:])
    assert peak <= limit


@pytest.mark.soak
@pytest.mark.parametrize("update", ["ksvd", "mod"])
def test_learn__keeps_the_smallest_limit_while_it_compiles(stored, tmp_path, update):
    cache = str(tmp_path / "cache")
    setting = (10, 4, update, 2)
    limit, peak = measure(stored(11), tmp_path / "run", setting, NUMBA_CACHE_DIR=cache)
    assert peak <= limit


@pytest.mark.soak
@pytest.mark.parametrize("setting", GRID, ids=str)
def test_learn__keeps_the_smallest_limit_everywhere(stored, tmp_path, setting):
    limit, peak = measure(stored(setting[0]), tmp_path / "run", setting[1:])
    assert peak <= limit


@pytest.mark.soak
def test_learn__one_online_pass_over_20_million_patches_takes_1_gb(tmp_path):
    """What `dsc bench --scale` prints."""
    found = scale.measure_peak(scale.MANY, "online", tmp_path)
    print(f"{found['n_patches']:,} patches: {found['peak'] / 1e6:.0f} MB", flush=True)
    assert found["n_patches"] > 20_000_000
    assert found["peak"] <= 10**9


def test_bench_scale__says_the_peak_of_each_mode(monkeypatch):
    runs = {name: (40, mode) for name, (_, mode) in scale.RUNS.items()}
    monkeypatch.setattr(scale, "RUNS", runs)
    said = []
    found = scale.run(False, said.append)
    assert [line.split(":")[0] for line in said[1:4]] == [
        f"           900 patches, {mode}" for mode in ("batch", "batch", "online")
    ]
    one, two, online = found["runs"].values()
    assert one["mse"] == two["mse"] != online["mse"]  # it was learned in the mode that is named
    assert 10**7 < online["peak"] <= 10**9
    assert found["ratio"] == two["peak"] / one["peak"]
