"""Clusters that fail: it is said in time, it is waited for, and it ends in one line."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from dask import delayed

from dsc.engine import clusters, open_engine
from dsc.errors import DscError

DASK = str(Path(sys.executable).parent / "dask")


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
        for _ in range(600):
            try:
                return json.loads(self.file.read_text())["address"]
            except (FileNotFoundError, json.JSONDecodeError):
                time.sleep(0.05)
        raise TimeoutError("no scheduler after 30 s")


@pytest.fixture
def cluster(tmp_path):
    made = Cluster(tmp_path)
    yield made
    for process in (*made.workers, made.scheduler):
        process.kill()
        process.wait(30)


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
