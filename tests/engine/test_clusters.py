"""Clusters that fail: it is said in time, it is waited for, and it ends in one line."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from dask import delayed
from distributed import Client

from dsc.engine import clusters, open_engine
from dsc.errors import DscError
from dsc.patches import PatchConfig, extract_patches

DASK, DSC = (str(Path(sys.executable).parent / name) for name in ("dask", "dsc"))


class Cluster:
    """A scheduler and workers without nannies, all of them ours to end."""

    def __init__(self, folder):
        self.folder, self.file, self.workers = folder, folder / "scheduler.json", []
        place = ["--scheduler-file", str(self.file), "--host", "127.0.0.1"]
        self.place = place
        self.scheduler = self.start("scheduler", *place, "--port", "0", "--no-dashboard")

    def start(self, *words):
        with (self.folder / "log").open("a") as log:
            return subprocess.Popen(
                [DASK, *words], cwd=self.folder, stdout=log, stderr=subprocess.STDOUT
            )

    def add(self):
        place = [*self.place, "--nthreads", "1", "--no-nanny", "--no-dashboard"]
        self.workers.append(self.start("worker", *place))
        return self.workers[-1]

    def address(self):
        return address_in(self.file)

    def end(self):
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait(30)


def address_in(file):
    for _ in range(600):
        try:
            return json.loads(file.read_text())["address"]
        except (FileNotFoundError, json.JSONDecodeError):
            time.sleep(0.05)
    raise TimeoutError("no scheduler after 30 s")


@pytest.fixture
def cluster(tmp_path):
    made = Cluster(tmp_path)
    yield made
    made.end()


@pytest.fixture
def lines():
    return []


@pytest.fixture
def opened(cluster, lines):
    """opened(patience): an engine whose lines are kept."""

    def start(patience):
        def listen(event):
            lines.append(event.line())

        return open_engine(cluster.address(), progress=listen, patience=patience)

    return start


def disturb(file, seconds=0.0):
    """Say that the task runs, then take some time."""
    Path(file).write_text(str(os.getpid()))
    time.sleep(seconds)
    return 7


def when_running(file, act):
    """Act in a thread as soon as a task runs."""

    def run():
        while not file.exists():
            time.sleep(0.02)
        act()

    return clusters.Answer(run)


def test_no_workers__is_said_and_is_an_error_after_a_while(opened, lines, monkeypatch):
    monkeypatch.setattr(clusters, "EMPTY", 0.5)
    with pytest.raises(DscError, match=r"no workers at tcp://.*dask worker.*--resume"), opened(2):
        pass
    notice = next(line for line in lines if "no workers" in line)
    assert "--patience" in notice


def test_no_workers__is_said_within_ten_seconds():
    assert clusters.EMPTY + 2 <= 10


def test_all_workers_die__others_go_on(cluster, opened, lines, monkeypatch, tmp_path):
    monkeypatch.setattr(clusters, "EMPTY", 0.1)
    worker = cluster.add()

    def replace():
        worker.kill()
        time.sleep(2)
        cluster.add()

    with opened(60) as engine:
        file = tmp_path / "running"
        when_running(file, replace)
        assert engine.compute([delayed(disturb)(str(file), 1.5)]) == [7]
    assert any("no workers" in line for line in lines)
    assert "the workers are there again" in lines


def test_a_stopped_worker__is_named_and_ends_the_run(cluster, opened, tmp_path):
    worker = cluster.add()
    with opened(4) as engine:
        file = tmp_path / "running"
        when_running(file, lambda: worker.send_signal(signal.SIGSTOP))
        begin = time.monotonic()
        with pytest.raises(DscError, match=r"worker tcp://\S+ does not answer.*--resume"):
            engine.compute([delayed(disturb)(str(file), 1.0)])
    assert time.monotonic() - begin < 30


def test_a_lost_scheduler__is_one_line(cluster, opened, tmp_path):
    cluster.add()
    with opened(60) as engine:
        file = tmp_path / "running"
        when_running(file, cluster.scheduler.kill)
        begin = time.monotonic()
        with pytest.raises(DscError, match=r"^the scheduler at tcp://\S+ is gone: .*--resume.*$"):
            engine.compute([delayed(disturb)(str(file), 30.0)])
        assert time.monotonic() - begin < 20


def test_fingerprints__are_asked_again_when_a_worker_vanishes(cluster, opened, monkeypatch):
    cluster.add()
    with opened(60) as engine:
        watch, gone = engine.watch, OSError("gone")
        client, asked = watch.client, []
        real = client.run

        def run(*words, workers, **options):
            asked.append(workers)
            return real(*words, workers=workers, **options) if asked[1:] else {workers[0]: gone}

        monkeypatch.setattr(client, "run", run)
        watch._seen.clear()
        watch.check(engine.report)
    assert len(asked) == 2
    assert len(watch._seen) == 1


def test_fingerprints__a_worker_that_is_killed_while_it_is_asked_is_left_out(
    cluster, opened, monkeypatch, tmp_path
):
    silent, _ = cluster.add(), cluster.add()
    asked = threading.Event()
    real = Client.run

    def run(*words, **options):
        asked.set()
        return real(*words, **options)

    def kill():
        asked.wait(60)
        time.sleep(1)  # it was asked, and cannot answer
        silent.kill()

    with Client(cluster.address(), set_as_default=False) as client:
        client.wait_for_workers(2, timeout=60)
    silent.send_signal(signal.SIGSTOP)
    monkeypatch.setattr(Client, "run", run)
    clusters.Answer(kill)
    with opened(60) as engine:
        assert silent.poll() == -signal.SIGKILL
        assert engine.compute([delayed(disturb)(str(tmp_path / "running"))]) == [7]
        assert len(engine.watch._seen) == 1


def test_a_task_that_kills_its_workers__is_one_line(tmp_path, monkeypatch):
    monkeypatch.setenv("DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES", "1")
    other = Cluster(tmp_path)
    try:
        workers = [other.add(), other.add()]
        with (
            open_engine(other.address(), progress=lambda _: None, patience=60) as engine,
            pytest.raises(DscError, match=r"^workers died 2 times in the task .*--resume.*$"),
        ):
            engine.compute([delayed(kill_itself)()])
        assert all(worker.wait(30) == -signal.SIGKILL for worker in workers)
    finally:
        other.end()


def kill_itself():
    os.kill(os.getpid(), signal.SIGKILL)


# --- dsc itself ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def patches(tmp_path_factory):
    image = np.random.default_rng(0).random((90, 90), np.float32)
    path = tmp_path_factory.mktemp("patches") / "p.zarr"
    extract_patches([image], path, PatchConfig(diameter=9))
    return path


def learn(patches, out, *words):
    options = ["--n-atoms", "8", "--sparsity", "3", "--n-iterations", "200"]
    return subprocess.Popen(
        [DSC, "learn", str(patches), "--out", str(out), *options, *map(str, words)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_learn__the_scheduler_ends__is_one_line_with_what_to_do(cluster, patches, tmp_path):
    cluster.add()
    run = tmp_path / "run"
    process = learn(patches, run, "--scheduler", cluster.address())
    for _ in range(600):
        assert process.poll() is None, process.communicate()
        if any(run.glob("checkpoints/*/manifest.json")):
            break
        time.sleep(0.05)
    cluster.scheduler.kill()
    _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "Traceback" not in err
    (line,) = [line for line in err.splitlines() if line.startswith("dsc: ")]
    assert line == err.splitlines()[-1]
    assert re.search(r"the scheduler at tcp://\S+ is gone: start it again and .*--resume", line)
    assert any(run.glob("checkpoints/*/manifest.json"))


def certificate(folder, name):
    """The certificate and the key of somebody."""
    files = folder / f"{name}.pem", folder / f"{name}.key"
    words = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    words += ["-subj", f"/CN={name}", "-out", files[0], "-keyout", files[1]]
    subprocess.run(["openssl", "req", *words], check=True, capture_output=True)
    return files


@pytest.mark.parametrize("has_other", [False, True], ids=["no certificate", "another's"])
def test_learn__without_the_certificate_of_a_scheduler_is_refused_in_one_line(
    patches, tmp_path, has_other
):
    cert, key = certificate(tmp_path, "cluster")
    file = tmp_path / "scheduler.json"
    words = ["--scheduler-file", file, "--host", "tls://127.0.0.1", "--port", "0", "--no-dashboard"]
    words += ["--tls-ca-file", cert, "--tls-cert", cert, "--tls-key", key]
    with (tmp_path / "log").open("w") as log:
        scheduler = subprocess.Popen(
            [DASK, "scheduler", *map(str, words)], stdout=log, stderr=subprocess.STDOUT
        )
    try:
        address = address_in(file)
        assert address.startswith("tls://127.0.0.1:")
        mine, my_key = certificate(tmp_path, "other")
        own = ["--tls-ca", cert, "--tls-cert", mine, "--tls-key", my_key] if has_other else []
        process = learn(patches, tmp_path / "run", "--scheduler", address, *own)
        _, err = process.communicate(timeout=60)
    finally:
        scheduler.kill()
        scheduler.wait(30)
    assert process.returncode == 2
    (line,) = err.splitlines()
    said = "nothing that accepts these certificates answers" if has_other else "needs certificates"
    assert line.startswith("dsc: scheduler: ")
    assert said in line
    assert not (tmp_path / "run").exists()


# --- certificates -------------------------------------------------------------------------------


def test_tls__without_certificates_says_what_is_needed():
    with (
        pytest.raises(DscError, match=r"tls://127.0.0.1:1 needs certificates: give --tls-ca"),
        open_engine("tls://127.0.0.1:1"),
    ):
        pass


def test_tls__needs_all_three_files(tmp_path):
    with (
        pytest.raises(DscError, match="need all of tls_ca, tls_cert and tls_key"),
        open_engine("tls://127.0.0.1:1", tls={"ca": "x"}),
    ):
        pass
    none = dict.fromkeys(("ca", "cert", "key"), str(tmp_path / "none.pem"))
    with (
        pytest.raises(DscError, match=r"tls_ca: .*none.pem does not exist"),
        open_engine("tls://127.0.0.1:1", tls=none),
    ):
        pass
