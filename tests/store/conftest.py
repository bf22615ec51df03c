"""Stores to be broken, and an S3 server on loopback."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
import pytest

from dsc.store import create, schema_of

SIZES = {"patch": 10, "slot": 2, "atom": 3, "coord": 4, "pixel": 5, "y": 3, "x": 3, "iteration": 2}
SIZES |= {"label": 2, "image": 6, "value": 12, "entry": 4, "problem": 2, "basis_value": 20, "c": 2}
SIZES |= {"channel": 2, "sum": 10, "normal_value": 8, "right_value": 12, "idle_atom": 3}
SIZES |= {"measure": 6, "row": 2, "column": 2}


@pytest.fixture
def arrays():
    """arrays(kind): values of every variable of a kind, the same every time."""

    def make(kind):
        rng = np.random.default_rng(0)
        made = {}
        for variable in schema_of(kind).values():
            if not variable.group:
                shape = tuple(SIZES[dim] for dim in variable.dims)
                made[variable.name] = rng.integers(0, 2, shape).astype(variable.dtype)
        return made

    return make


@pytest.fixture
def finished(tmp_path, arrays):
    """finished(kind): the path of a small finished store, patches in chunks of four."""

    def make(kind="codes", name="store.zarr"):
        url = tmp_path / name
        store = create(url, kind, SIZES, {"patch": 4}, {"answer": 42}, list(arrays(kind)))
        for variable, values in arrays(kind).items():
            store.write(variable, 0, values)
        store.finish()
        return url

    return make


@pytest.fixture
def flip():
    """flip(path, position): change one bit of a file."""

    def change(path, position=-1):
        data = bytearray(Path(path).read_bytes())
        data[position] ^= 4
        Path(path).write_bytes(data)

    return change


@pytest.fixture(scope="session")
def s3(forget_s3):
    """s3(name): the URL of a place in a bucket of a real S3 server (moto's) on 127.0.0.1."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    endpoint = f"http://127.0.0.1:{port}"
    server = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    settings = {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    forget_s3()
    try:
        _wait(endpoint, server)
        request = urllib.request.Request(f"{endpoint}/bucket", method="PUT")
        urllib.request.urlopen(request).close()
        yield lambda name: f"s3://bucket/{name}"
    finally:
        server.terminate()
        server.wait()
        forget_s3()
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def _wait(endpoint, server):
    for _ in range(300):
        assert server.poll() is None, "moto's server did not start: pip install 'moto[server]'"
        try:
            urllib.request.urlopen(endpoint).close()
            return
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.1)
    raise AssertionError("moto's server did not answer in 30 s")
