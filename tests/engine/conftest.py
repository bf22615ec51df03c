"""Patches, and the clusters that they are learned on: one of each kind per session."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

from dsc.engine import open_engine


@pytest.fixture(scope="session")
def windows(image):
    """windows(diameter, n_patches): patches of three images, (patch, y, x) float32."""

    def take(diameter, n_patches):
        shares = np.array_split(np.arange(n_patches), 3)
        taken = []
        for name, share in zip(("camera", "coins", "gravel"), shares, strict=True):
            every = sliding_window_view(image(name), (diameter, diameter))
            rng = np.random.default_rng(n_patches)
            y, x = rng.integers(0, np.array(every.shape[:2])[:, None], (2, len(share)))
            taken.append(every[y, x])
        return np.concatenate(taken).astype(np.float32)

    return take


@pytest.fixture(scope="session")
def process_engine():
    """What scheduler="processes" runs on: two worker processes with one thread each."""
    with open_engine("processes", 2) as engine:
        yield engine


@pytest.fixture(scope="session")
def client(process_engine):
    """A `distributed.Client` of a cluster with two worker processes."""
    return process_engine.scheduler


@pytest.fixture(scope="session")
def command_cluster(tmp_path_factory):
    """A scheduler and two workers started by the `dask` command: (address, scheduler file)."""
    folder = tmp_path_factory.mktemp("dask")
    file = folder / "scheduler.json"
    dask = str(Path(sys.executable).parent / "dask")
    where = ["--scheduler-file", str(file), "--host", "127.0.0.1"]
    worker = [
        dask,
        "worker",
        *where,
        "--nthreads",
        "1",
        "--no-dashboard",
        "--local-directory",
        str(folder),
    ]
    commands = [
        [dask, "scheduler", *where, "--port", "0", "--dashboard-address", "127.0.0.1:0"],
        worker,
        worker,
    ]
    with (folder / "log").open("w") as log:
        started = [subprocess.Popen(c, stdout=log, stderr=subprocess.STDOUT) for c in commands]
        try:
            yield _address(file), str(file)
        finally:
            for process in started:
                process.kill()
            for process in started:
                process.wait(30)


def _address(file):
    for _ in range(600):
        try:
            return json.loads(file.read_text())["address"]
        except (FileNotFoundError, json.JSONDecodeError):
            time.sleep(0.05)
    raise TimeoutError(f"{file}: no scheduler after 30 s")
