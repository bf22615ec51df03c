"""Ctrl-C and SIGTERM at any moment: one message, the right code, nothing left, the same bits."""

import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
from PIL import Image

from dsc.dictionary import learn
from dsc.patches import PatchConfig, extract_patches

# what the installed command does
PROGRAM = [sys.executable, "-c", "import sys; from dsc.cli.entry import run; sys.exit(run())"]
CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}
OPTIONS = {"n_atoms": 8, "sparsity": 3, "n_iterations": 30, "seed": 2}
WORDS = [str(w) for name, v in OPTIONS.items() for w in ("--" + name.replace("_", "-"), v)]
PROCESSES = ["--scheduler", "processes", "--n-workers", "1"]
PROGRESS = re.compile(r"running on|iteration|final pass|encoding|cutting|\d+ ")


@pytest.fixture(scope="module")
def place(image, tmp_path_factory):
    """A folder with patches, a dictionary, and images of two classes."""
    folder = tmp_path_factory.mktemp("signals")
    crop = image("camera")[100:194, 100:194]
    extract_patches(crop, folder / "patches.zarr", PatchConfig(diameter=9, unit=True))
    learn(str(folder / "patches.zarr"), n_atoms=4, sparsity=2, n_iterations=1, run=folder / "run")
    for name in ("camera", "gravel"):
        (folder / "images" / name).mkdir(parents=True)
        grey = np.round(255 * image(name)[:128, :128]).astype(np.uint8)
        Image.fromarray(grey).save(folder / "images" / name / "a.png")
    return folder


@pytest.fixture(scope="module")
def undisturbed(place):
    return learn(str(place / "patches.zarr"), **OPTIONS).sha256


def is_ready(process):
    """Whether the program handles SIGTERM: before, Python itself has not begun to run it."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    caught = int(re.search(r"SigCgt:\s*(\w+)", status)[1], 16)
    return bool(caught >> (signal.SIGTERM - 1) & 1)


def disturbed(words, environment, how, moment, to_group=True):
    """Send a signal when `moment` (seconds, or a function) has come; what the process said."""
    process = subprocess.Popen(
        [*PROGRAM, *map(str, words)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + 60
    while not is_ready(process) and time.monotonic() < deadline:
        time.sleep(0.005)
    if callable(moment):
        while not moment() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
    else:
        time.sleep(moment)
    if process.poll() is not None:
        return process.returncode, process.communicate()[1]
    children = psutil.Process(process.pid).children(recursive=True)
    (os.killpg if to_group else os.kill)(process.pid, how)
    begin = time.monotonic()
    err = process.communicate(timeout=60)[1]
    assert time.monotonic() - begin < 10
    assert not psutil.wait_procs(children, timeout=5)[1]
    return process.returncode, err


def assert_quiet(code, err, how, may_end=False):
    said = [line for line in err.splitlines() if not PROGRESS.match(line)]
    if may_end and code == 0:
        return
    assert code == CODES[how], err
    assert len(said) == 1, err
    assert "interrupted" in said[0]


def has_checkpoint(run):
    return lambda: any(run.glob("checkpoints/*/manifest.json"))


@pytest.mark.parametrize(
    ("how", "scheduler", "to_group"),
    [
        (signal.SIGINT, PROCESSES, True),
        pytest.param(signal.SIGTERM, PROCESSES, False, marks=pytest.mark.soak),
        (signal.SIGTERM, [], False),
    ],
    ids=["ctrl-c processes", "sigterm processes", "sigterm threads"],
)
def test_learn__is_interrupted_and_resumes_to_the_same_bits(
    place, undisturbed, environment, ask, tmp_path, how, scheduler, to_group
):
    run = tmp_path / "run"
    words = ["learn", place / "patches.zarr", "--out", run, *WORDS]
    code, err = disturbed([*words, *scheduler], environment, how, has_checkpoint(run), to_group)
    assert_quiet(code, err, how)
    assert re.search(rf"--resume to continue {run}$", err)
    assert ask(*words, "--resume")["atoms_sha256"] == undisturbed


@pytest.mark.parametrize(("moment", "how"), [(0.0, 2), (0.1, 15), (0.4, 2), (1.0, 15)])
def test_learn__is_interrupted_while_it_begins(place, environment, tmp_path, moment, how):
    words = ["learn", place / "patches.zarr", "--out", tmp_path / "run", *WORDS, *PROCESSES]
    code, err = disturbed(words, environment, signal.Signals(how), moment)
    assert_quiet(code, err, signal.Signals(how))


def test_command__a_signal_after_its_end_does_not_change_its_code(environment):
    late = "import os, signal\nclass Late:\n def __del__(self, kill=os.kill, me=os.getpid()):"
    late += "\n  kill(me, 2)\nlate = Late()\n"  # goes when Python has let go of all handlers
    program = [*PROGRAM[:2], late + PROGRAM[2]]
    done = subprocess.run(
        [*program, "--version"], env=environment, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")


def other_commands(place, out):
    return {
        "encode": ["encode", place / "patches.zarr", place / "run", "--out", out],
        "encode processes": [
            *("encode", place / "patches.zarr", place / "run", "--out", out, *PROCESSES)
        ],
        "patches": ["patches", place / "images", "--out", out, "--diameter", 9],
        "texture fit": [
            *("texture", "fit", place / "images", "--out", out, "--n-atoms", 8, "--diameter", 9)
        ],
    }


@pytest.mark.parametrize("name", ["encode", "patches", "texture fit"])
def test_command__is_interrupted(place, environment, tmp_path, name):
    out = tmp_path / "out"
    words = other_commands(place, out)[name]
    code, err = disturbed(words, environment, signal.SIGINT, out.exists)
    assert_quiet(code, err, signal.SIGINT, may_end=True)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(60))
def test_command__is_interrupted_at_any_moment(place, environment, tmp_path, seed):
    rng = random.Random(seed)
    out = tmp_path / "out"
    learning = ["learn", place / "patches.zarr", "--out", out, *WORDS]
    commands = [learning, [*learning, *PROCESSES], *other_commands(place, out).values()]
    how = rng.choice(list(CODES))
    moment = rng.choice([1.0, 5.0]) * rng.random()
    words = rng.choice(commands)
    code, err = disturbed(words, environment, how, moment, rng.random() < 0.5)
    assert_quiet(code, err, how, may_end=True)
