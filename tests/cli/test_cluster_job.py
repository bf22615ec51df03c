"""`deploy/cluster-job.sh`: a cluster that lives as long as its command."""

import json
import re
import signal
import socket
import ssl
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


def listening(folder):
    """Addresses at which the processes of a job listen."""
    found = set()
    for process in related(folder):
        for one in [process, *process.children(recursive=True)]:
            found |= {c.laddr for c in one.net_connections() if c.status == psutil.CONN_LISTEN}
    return found


def answer(host, port, certificate=None):
    """What a server says to a request over TLS; empty if it refuses."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if certificate is not None:
        context.load_cert_chain(*certificate)
    with socket.create_connection((host, port), timeout=10) as plain:
        try:
            with context.wrap_socket(plain) as secure:
                return secure.recv(100)
        except (ssl.SSLError, ConnectionError):
            return b""


def plain_answer(host, port):
    """What a server says to a request over HTTP, without TLS."""
    host = host if re.search(r"[1-9a-f]", host) else "127.0.0.1"  # 0.0.0.0 and :: are all addresses
    with socket.create_connection((host, port), timeout=10) as plain:
        try:
            plain.sendall(b"GET / HTTP/1.0\r\n\r\n")
            return plain.recv(100)
        except ConnectionError:
            return b""


def assert_closed_to_others(folder, other):
    """Only who has the job's certificate gets an answer; HTTP is not open to the network."""
    (place,) = (folder / "cluster").iterdir()
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    assert stat.S_IMODE((place / "key.pem").stat().st_mode) == 0o600
    address = json.loads((place / "scheduler.json").read_text())["address"]
    host, port = re.fullmatch(r"tls://(.+):(\d+)", address).groups()
    assert answer(host, int(port), (place / "cert.pem", place / "key.pem"))
    assert not answer(host, int(port))
    assert not answer(host, int(port), other)
    to_network = {found for found in listening(folder) if not found.ip.startswith("127.")}
    assert to_network
    assert not any(plain_answer(*found) for found in to_network)


@pytest.fixture
def other_certificate(tmp_path_factory):
    """A certificate that is not the job's."""
    folder = tmp_path_factory.mktemp("other")
    files = folder / "cert.pem", folder / "key.pem"
    words = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    words += ["-subj", "/CN=other", "-out", files[0], "-keyout", files[1]]
    subprocess.run(["openssl", "req", *words], check=True, capture_output=True)
    return files


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


def test_cluster_job__under_slurm_is_closed_to_others_and_leaves_a_run_to_resume(
    made, job, environment, other_certificate, tmp_path
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
    assert_closed_to_others(tmp_path, other_certificate)
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
