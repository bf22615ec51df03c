"""`deploy/cluster-job.sh`: a cluster that lives as long as its command."""

import json
import signal
import stat
import subprocess
import time
from pathlib import Path

import psutil
import pytest

from dsc.dictionary import learn

SCRIPT = Path(__file__).parents[2] / "deploy" / "cluster-job.sh"
SMALL = ["--n-atoms", "4", "--sparsity", "2", "--n-iterations", "2"]


@pytest.fixture
def job(environment, tmp_path):
    """job(*words, **variables): the script, started in an empty folder."""
    (tmp_path / "cluster").mkdir()

    def start(*words, **variables):
        return subprocess.Popen(
            ["bash", str(SCRIPT), *map(str, words)],
            cwd=tmp_path,
            env={**environment, "DSC_CLUSTER_DIR": str(tmp_path / "cluster"), **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return start


def related(folder):
    """Processes that have a folder on their command line."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        if any(str(folder) in word for word in process.info["cmdline"] or ()):
            found.append(process)
    return found


def assert_nothing_left(folder):
    deadline = time.monotonic() + 15
    while related(folder) and time.monotonic() < deadline:
        time.sleep(0.2)
    left = related(folder)
    commands = [" ".join(process.info["cmdline"]) for process in left]
    for process in left:
        process.kill()
    assert not commands
    assert not list((folder / "cluster").iterdir())


def test_cluster_job__learns_with_the_same_bits_and_leaves_nothing(made, job, tmp_path):
    patches = made[0] / "patches.zarr"
    words = ["learn", patches, "--out", tmp_path / "run", "--resume", *SMALL, "--json"]
    process = job(*words, N_WORKERS="2")
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert json.loads(out)["atoms_sha256"] == made[1]["learn"]["atoms_sha256"]
    assert_nothing_left(tmp_path)


def test_cluster_job__runs_commands_that_know_no_scheduler(made, job, tmp_path):
    process = job("info", made[0] / "run", "--json", N_WORKERS="0")
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert json.loads(out)["kind"] == "run"
    assert_nothing_left(tmp_path)


def test_cluster_job__hands_on_the_exit_code_of_a_mistake(made, job, tmp_path):
    words = ["learn", tmp_path / "none.zarr", "--out", tmp_path / "run"]
    process = job(*words, N_WORKERS="0")  # it does not get as far as to need one
    err = process.communicate(timeout=120)[1]
    assert process.returncode == 2
    assert "nothing is there" in err
    assert_nothing_left(tmp_path)


def test_cluster_job__cancelled_under_slurm_leaves_a_run_to_resume(
    made, job, environment, tmp_path
):
    """`srun` stands for one task here; `scancel` sends SIGTERM to the script."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "srun").write_text('#!/bin/sh\nexec "$@"\n')
    (folder / "srun").chmod(stat.S_IRWXU)
    patches, run = made[0] / "patches.zarr", tmp_path / "run"
    options = {"n_atoms": 4, "sparsity": 2, "n_iterations": 2000}
    words = [w for name, v in options.items() for w in ("--" + name.replace("_", "-"), v)]
    process = job(
        "learn",
        patches,
        "--out",
        run,
        "--resume",
        *words,
        SLURM_JOB_ID="1",
        PATH=f"{folder}:{environment['PATH']}",
    )
    deadline = time.monotonic() + 60
    while not list(run.glob("checkpoints/*/manifest.json")) and time.monotonic() < deadline:
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode != 0
    assert_nothing_left(tmp_path)
    events = []

    def stop(event):
        events.append(event)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        learn(str(patches), run=run, resume=True, progress=stop, **options)
    assert events[0].iteration > 1
