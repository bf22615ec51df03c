"""`dsc learn` as a process: what it prints where, and what happens when it is killed."""

import json
import os
import re
import signal
import subprocess
import time
from contextlib import suppress

import pytest

from dsc.dictionary import Run, learn
from dsc.patches import PatchConfig, extract_patches

N_ITERATIONS = 24
OPTIONS = {"n_atoms": 8, "sparsity": 3, "n_iterations": N_ITERATIONS, "seed": 2}
LINE = (
    r"(iteration \d+|final pass) of \d+: [\d.e-]+ % of the energy left, mse [\d.e-]+, "
    r"[\d,]+ patches/s(, \d+ s to go)?"  # one pass
)


def words_of(options):
    return [str(w) for name, v in options.items() for w in ("--" + name.replace("_", "-"), v)]


@pytest.fixture(scope="module")
def patches(image, tmp_path_factory):
    """7,396 patches of diameter 9: an iteration and its checkpoint take some 40 ms."""
    url = tmp_path_factory.mktemp("patches") / "patches.zarr"
    extract_patches(image("coins")[100:194, 100:194], url, PatchConfig(diameter=9, unit=True))
    return str(url)


@pytest.fixture(scope="module")
def undisturbed(patches):
    return learn(patches, **OPTIONS)


def wait_for_checkpoint(run, process, iteration):
    """Until some iteration is on disk, complete."""
    for _ in range(6000):
        assert process.poll() is None, "the run ended before it could be disturbed"
        if any(int(p.parent.stem) >= iteration for p in run.glob("checkpoints/*/manifest.json")):
            return
        time.sleep(0.01)
    raise TimeoutError("no checkpoint in 60 s")


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT], ids=["kill -9", "ctrl-c"])
def test_learn__ended_in_the_middle_resumes_to_the_same_bits(
    patches, undisturbed, command, environment, ask, tmp_path, how
):
    run = tmp_path / "run"
    words = ["learn", patches, "--out", str(run), *words_of(OPTIONS)]
    process = subprocess.Popen(
        [command, *words],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for_checkpoint(run, process, 2)
    process.send_signal(how)
    out, err = process.communicate(timeout=60)
    assert not Run(run).finished
    if how == signal.SIGINT:
        assert process.returncode == 130
        assert out == ""
        assert re.search(rf"interrupted.*--resume.*{run}", err)
        assert "Traceback" not in err
    summary = ask(*words, "--resume")
    assert summary["atoms_sha256"] == undisturbed.sha256
    assert summary["history"] == undisturbed.history.tolist()
    starts = [e["iteration"] for e in Run(run).events() if e["event"] == "start"]
    assert starts[0] == 0
    assert 2 <= starts[1] < N_ITERATIONS


def test_learn__suspended_while_another_took_its_lock_ends_in_one_line(
    patches, undisturbed, command, environment, ask, tmp_path
):
    run, lock = tmp_path / "run", tmp_path / ".run.lock"
    words = ["learn", patches, "--out", str(run), *words_of(OPTIONS)]
    process = subprocess.Popen(
        [command, *words], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    wait_for_checkpoint(run, process, 2)
    process.send_signal(signal.SIGSTOP)
    theirs = {**json.loads(lock.read_text()), "host": "elsewhere", "pid": 7, "token": "x"}
    lock.write_text(json.dumps(theirs))
    before = {path.name for path in run.glob("checkpoints/*")}
    process.send_signal(signal.SIGCONT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    *_, last = err.splitlines()
    assert re.match(rf"dsc: {run}: process 7 on elsewhere has taken it over", last)
    assert "Traceback" not in err
    assert json.loads(lock.read_text()) == theirs
    done = {path.name for path in run.glob("checkpoints/*")}
    assert len(done ^ before) <= 2  # no more than what was written just then
    assert not Run(run).finished
    lock.unlink()
    assert ask(*words, "--resume")["atoms_sha256"] == undisturbed.sha256


def test_learn__prints_a_line_per_pass_where_there_is_no_terminal(patches, dsc, tmp_path):
    words = ["--out", tmp_path / "run", "--n-iterations", 3, "--n-atoms", 2]
    place, *lines = dsc("learn", patches, *words).stderr.splitlines()
    assert re.fullmatch(r"running on \d+ threads? of this process", place)
    assert all(re.fullmatch(LINE, line) for line in lines)
    assert [line.split(" of ")[0] for line in lines] == [
        *(f"iteration {i}" for i in (1, 2, 3)),
        "final pass",
    ]


def test_learn__draws_a_bar_on_a_terminal_and_json_on_stdout(
    patches, command, environment, tmp_path
):
    leader, follower = os.openpty()
    words = ["--out", str(tmp_path / "run"), "--n-iterations", "3", "--n-atoms", "2", "--json"]
    with subprocess.Popen(
        [command, "learn", patches, *words],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=follower,
        text=True,
    ) as process:
        os.close(follower)
        shown = b""
        with suppress(OSError):  # how Linux says that the other end is closed
            while piece := os.read(leader, 4096):
                shown += piece
        out = process.stdout.read()
    os.close(leader)
    assert process.returncode == 0
    assert json.loads(out)["n_patches"] == 7396
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown.decode())
    place, *_, last = filter(None, re.split(r"[\r\n]+", plain))
    assert re.fullmatch(r"running on \d+ threads? of this process", place)
    shares = [int(share) for share in re.findall(r"(\d+)% ", plain)]
    assert shares == sorted(shares)  # it grows
    assert len(shares) > 1
    assert re.search("━.*% final pass", plain)
    assert re.fullmatch(LINE, last)  # what stays
    assert shown.endswith(b"\n")
