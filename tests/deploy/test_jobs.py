"""The job scripts: a cluster that lives as long as its command."""

import json
import re
import signal
import socket
import ssl
import stat
import subprocess
import sys
import time
from contextlib import contextmanager, suppress

import click
import psutil
import pytest

from dsc.cli.main import main
from dsc.dictionary import learn

# the commands of SLURM that the scripts use, as processes of this machine
SRUN = """#!/bin/bash
while [[ $1 == --* ]]; do [[ $1 == --output=* ]] && logs=${1#*=}; shift; done
for ((i = 0; i < SLURM_NTASKS; i++)); do "$@" >"${logs/\\%t/$i}" 2>&1 & done
trap 'kill $(jobs -p)' TERM
wait; wait
"""
SBATCH = """#!/bin/bash
cp "$1" submitted
setsid bash submitted >submitted.log 2>&1 &
echo $! >submitted.pid
echo "Submitted batch job 11"
"""
SCANCEL = """#!/bin/bash
kill -- "-$(cat submitted.pid)"
"""


@contextmanager
def processes(folder):
    """start(words, variables) of processes in a folder, which are ended with the block."""
    started = []

    def start(words, variables):
        pipe = subprocess.PIPE
        words = list(map(str, words))
        process = subprocess.Popen(
            words, cwd=folder, env=variables, stdout=pipe, stderr=pipe, text=True
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.terminate()
        process.communicate(timeout=60)


@pytest.fixture
def job(environment, deploy, tmp_path):
    """job(script, *words, **variables): a script, started in an empty folder."""
    (tmp_path / "cluster").mkdir()
    cluster = {**environment, "DSC_CLUSTER_DIR": str(tmp_path / "cluster")}
    with processes(tmp_path) as start:
        yield lambda script, *words, **more: start([deploy / script, *words], {**cluster, **more})


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
        with suppress(psutil.NoSuchProcess):  # it ended meanwhile
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
    assert stat.S_IMODE((place / "config" / "key.pem").stat().st_mode) == 0o600
    address = json.loads((place / "scheduler.json").read_text())["address"]
    host, port = re.fullmatch(r"tls://(.+):(\d+)", address).groups()
    assert answer(
        host, int(port), tuple(place / "config" / name for name in ("cert.pem", "key.pem"))
    )
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


def test_local_job__learns_with_the_same_bits_and_leaves_nothing(made, job, small_words, tmp_path):
    words = ["learn", made[0] / "patches.zarr", "--out", tmp_path / "run", "--resume"]
    process = job("local/job.sh", *words, *small_words, "--json", N_WORKERS="2")
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert json.loads(out)["atoms_sha256"] == made[1]
    assert_nothing_left(tmp_path)


def test_local_job__runs_commands_that_know_no_scheduler(made, job, tmp_path):
    process = job("local/job.sh", "info", made[0] / "patches.zarr", "--json", N_WORKERS="0")
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert json.loads(out)["kind"] == "patches"
    assert_nothing_left(tmp_path)


def test_local_job__hands_on_the_exit_code_of_a_mistake(made, job, tmp_path):
    words = ["learn", tmp_path / "none.zarr", "--out", tmp_path / "run"]
    process = job("local/job.sh", *words, N_WORKERS="0")  # it does not get as far as to need one
    err = process.communicate(timeout=120)[1]
    assert process.returncode == 2
    assert "nothing is there" in err
    assert_nothing_left(tmp_path)


def test_local_job__gives_the_scheduler_to_all_commands_that_take_one(deploy):
    text = (deploy / "local" / "job.sh").read_text(encoding="utf-8")
    cases = re.search(r"case .*? in\n(.*?)\*\) where=", text, re.S)[1]
    listed = {words.strip() for words in re.findall(r'"([a-z ]+)"', cases)}
    assert listed == set(commands_with_scheduler(main, ()))


def commands_with_scheduler(command, words):
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            yield from commands_with_scheduler(command.get_command(context, name), (*words, name))
    elif any("--scheduler" in parameter.opts for parameter in command.params):
        yield " ".join(words)


@pytest.fixture
def slurm(environment, deploy, tmp_path):
    """slurm(**variables): the variables of a SLURM job; `srun` starts its tasks here."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "srun").write_text(SRUN)
    (folder / "srun").chmod(stat.S_IRWXU)

    def variables(**given):
        return {
            "SLURM_JOB_ID": "7",
            "SLURM_NTASKS": "2",
            "SLURM_CPUS_PER_TASK": "1",
            "SLURM_MEM_PER_CPU": "2048",
            "SLURM_SUBMIT_DIR": str(deploy.parent),
            "PATH": f"{folder}:{environment['PATH']}",
            **given,
        }

    return variables


def test_slurm_job__of_one_node_keeps_to_loopback_and_keeps_logs(
    made, job, slurm, small_words, tmp_path
):
    words = ["learn", made[0] / "patches.zarr", "--out", tmp_path / "run", "--resume"]
    process = job("slurm/job.sh", *words, *small_words, "--json", **slurm())
    found = set()
    while process.poll() is None:
        found |= {address.ip for address in listening(tmp_path)}
        time.sleep(1)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert found == {"127.0.0.1"}
    assert json.loads(out)["atoms_sha256"] == made[1]
    assert_nothing_left(tmp_path)
    logs = tmp_path / "dsc-logs-7"
    workers = [(logs / f"worker-{task}.log").read_text() for task in range(2)]
    assert all(re.search(r"Memory: +2\.00 GiB", text) for text in workers)
    assert "dashboard at:  http://127.0.0.1:" in (logs / "scheduler.log").read_text()


def test_slurm_job__of_many_nodes_is_closed_to_others_and_leaves_a_run_to_resume(
    made, job, slurm, other_certificate, tmp_path
):
    """`scancel` sends SIGTERM to the script."""
    patches, run = made[0] / "patches.zarr", tmp_path / "run"
    options = {"n_atoms": 4, "sparsity": 2, "n_iterations": 2000}
    words = [w for name, v in options.items() for w in ("--" + name.replace("_", "-"), v)]
    words = ["learn", patches, "--out", run, "--resume", *words]
    process = job("slurm/job.sh", *words, **slurm(SLURM_NTASKS="1", SLURM_JOB_NUM_NODES="2"))
    deadline = time.monotonic() + 60
    while not list(run.glob("checkpoints/*/manifest.json")) and time.monotonic() < deadline:
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.05)
    assert_closed_to_others(tmp_path, other_certificate)
    process.send_signal(signal.SIGTERM)
    err = process.communicate(timeout=60)[1]
    assert process.returncode == 143
    assert "--resume" in err
    assert_nothing_left(tmp_path)
    events = []

    def stop(event):
        events.append(event)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        learn(str(patches), run=run, resume=True, progress=stop, **options)
    assert events[0].iteration > 1


@pytest.fixture
def settings(job, slurm, deploy, tmp_path):
    """settings(**variables): what slurm/job.sh hands on to the script that starts the cluster."""
    shown = tmp_path / "deploy" / "local"
    shown.mkdir(parents=True)
    (shown / "job.sh").write_text("#!/bin/bash\nexport -p\n")
    (shown / "job.sh").chmod(stat.S_IRWXU)

    def run(**given):
        given = slurm(DSC_DEPLOY=str(tmp_path / "deploy"), **given)
        out, err = job("slurm/job.sh", "info", **given).communicate(timeout=30)
        assert not err
        return dict(re.findall(r'^declare -x (DSC_\w+)="(.*)"$', out, re.M))

    return run


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"SLURM_MEM_PER_CPU": "2048", "SLURM_CPUS_PER_TASK": "3"}, "6144MiB"),
        ({"SLURM_MEM_PER_NODE": "16000"}, "16000MiB"),
        ({"SLURM_MEM_PER_NODE": "16000", "SLURM_TASKS_PER_NODE": "4"}, "4000MiB"),
        ({"SLURM_MEM_PER_NODE": "16000", "SLURM_TASKS_PER_NODE": "2,10(x3),1"}, "1600MiB"),
        ({"SLURM_MEM_PER_NODE": "16000", "DSC_MEMORY": "3GB"}, "3GB"),
        ({"SLURM_MEM_PER_CPU": "2048", "DSC_MEMORY": "3GB"}, "3GB"),
        ({"SLURM_MEM_PER_NODE": "0"}, None),  # all that the node has
        ({}, None),
    ],
)
def test_slurm_job__gives_workers_the_memory_that_was_asked_for(settings, given, wanted):
    assert settings(**{"SLURM_MEM_PER_CPU": "", **given}).get("DSC_MEMORY") == wanted


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({}, None),
        ({"SLURM_JOB_NUM_NODES": "2"}, ""),
        ({"SLURM_JOB_NUM_NODES": "2", "DSC_HOST": "10.0.0.1"}, "10.0.0.1"),
        ({"DSC_HOST": ""}, ""),
    ],
)
def test_slurm_job__listens_where_its_user_says(settings, given, wanted):
    assert settings(**given).get("DSC_HOST") == wanted


@pytest.mark.soak
def test_slurm_job__of_many_nodes_keeps_to_the_network_that_is_named(
    made, job, slurm, small_words, tmp_path
):
    variables = slurm(SLURM_NTASKS="1", SLURM_JOB_NUM_NODES="2", DSC_INTERFACE="lo")
    words = ["learn", made[0] / "patches.zarr", "--out", tmp_path / "run", *small_words, "--json"]
    process = job("slurm/job.sh", *words, **variables)
    found = set()
    while process.poll() is None:
        found |= {address.ip for address in listening(tmp_path)}
        time.sleep(0.5)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert json.loads(out)["atoms_sha256"] == made[1]
    assert found == {"127.0.0.1"}


def test_slurm_job__says_what_it_cannot_find(job, slurm, tmp_path):
    process = job("slurm/job.sh", "info", "x", **slurm(SLURM_SUBMIT_DIR=str(tmp_path)))
    err = process.communicate(timeout=30)[1]
    assert process.returncode == 2
    assert "set DSC_DEPLOY" in err


def test_config__is_readable_to_its_owner_only_and_made_once(deploy, tmp_path):
    folder = tmp_path / "config"
    made = [deploy / "config.sh", folder, "/somewhere"]
    subprocess.run(made, check=True, capture_output=True)
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert "ca-file: /somewhere/cert.pem" in (folder / "tls.yaml").read_text()
    again = subprocess.run(made, capture_output=True, text=True)
    assert again.returncode == 2
    assert "remove the folder" in again.stderr


@pytest.fixture
def jobqueue(deploy, slurm, environment, tmp_path):
    """jobqueue(*words): slurm/jobqueue.py, for which `sbatch` and `scancel` are stand-ins."""
    pytest.importorskip("dask_jobqueue")
    variables = slurm()
    for name, program in (("sbatch", SBATCH), ("scancel", SCANCEL)):
        (tmp_path / "bin" / name).write_text(program)
        (tmp_path / "bin" / name).chmod(stat.S_IRWXU)
    config = tmp_path / "config"
    subprocess.run([deploy / "config.sh", config], check=True, capture_output=True)
    program = [sys.executable, deploy / "slurm/jobqueue.py", "--jobs", "1"]
    variables = {**environment, **variables, "DASK_CONFIG": str(config)}
    with processes(tmp_path) as start:
        yield lambda *words: start([*program, *words], variables)


def test_jobqueue__learns_on_jobs_that_sbatch_starts(made, jobqueue, small_words, tmp_path):
    words = ["learn", made[0] / "patches.zarr", "--out", tmp_path / "run", *small_words]
    process = jobqueue(*words, "--json")
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert json.loads(out)["atoms_sha256"] == made[1]
    assert "tls://" in (tmp_path / "run" / "events.jsonl").read_text()
    script = (tmp_path / "submitted").read_text()
    assert "#SBATCH --cpus-per-task=4" in script  # as dask.yaml says
    assert not related(tmp_path / "config")


def test_jobqueue__that_is_told_to_end_cancels_its_jobs_and_leaves_a_run_to_resume(
    made, jobqueue, tmp_path
):
    run = tmp_path / "run"
    words = ["--out", run, "--n-atoms", 4, "--sparsity", 2, "--n-iterations", 2000]
    process = jobqueue("learn", made[0] / "patches.zarr", *words)
    deadline = time.monotonic() + 90
    while not list(run.glob("checkpoints/*/manifest.json")) and time.monotonic() < deadline:
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.1)
    job = psutil.Process(int((tmp_path / "submitted.pid").read_text()))
    workers = [job, *job.children(recursive=True)]
    process.send_signal(signal.SIGTERM)
    err = process.communicate(timeout=60)[1]
    assert process.returncode == 143, err
    assert "--resume" in err
    assert not psutil.wait_procs(workers, timeout=20)[1]
    assert not related(run)
