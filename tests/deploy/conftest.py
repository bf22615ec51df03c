"""The files of `deploy/`, and the processes that their command lines become here."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path

import numpy as np
import psutil
import pytest
import yaml
from PIL import Image

import dsc

DEPLOY = Path(__file__).parents[2] / "deploy"
SMALL = {"n_atoms": 4, "sparsity": 2, "n_iterations": 2}


@pytest.fixture(scope="session")
def deploy():
    """The folder of the files."""
    return DEPLOY


@pytest.fixture(scope="session")
def documents():
    """documents(name): the documents of a YAML file."""
    return lambda name: list(yaml.safe_load_all((DEPLOY / name).read_text(encoding="utf-8")))


@pytest.fixture(scope="session")
def environment():
    """The environment of a process, with the commands next to this Python on the path."""
    folder = str(Path(sys.executable).parent)
    return {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}


@pytest.fixture(scope="session")
def made(image, tmp_path_factory):
    """A folder with images, their patches (patches.zarr), and atoms learned in this process."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "images").mkdir()
    for name in ("camera", "coins"):
        grey = np.round(255 * image(name)[100:160, 100:150]).astype(np.uint8)
        Image.fromarray(grey).save(folder / "images" / f"{name}.png")
    config = dsc.PatchConfig(diameter=11, center=True)
    patches = dsc.extract_patches([str(folder / "images")], str(folder / "patches.zarr"), config)
    return folder, dsc.learn(patches, **SMALL).sha256


@pytest.fixture(scope="session")
def small_words():
    """The options that the reference was learned with."""
    return [w for name, v in SMALL.items() for w in ("--" + name.replace("_", "-"), str(v))]


@pytest.fixture(scope="session")
def free_port():
    """free_port(): a port of loopback that nobody uses, another one every time."""
    found = set()

    def find():
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        if port in found:
            return find()
        found.add(port)
        return port

    return find


class Processes:
    """Commands as processes of this machine, ended with the test."""

    def __init__(self, folder):
        self.folder, self.started = folder, []

    def start(self, words, env):
        """Start one; its output goes into a file."""
        with (self.folder / f"log-{len(self.started)}").open("w") as log:
            self.started.append(
                subprocess.Popen(
                    words, env=env, cwd=self.folder, stdout=log, stderr=subprocess.STDOUT
                )
            )
        return self.started[-1]

    def run(self, words, env):
        """Run one to its end, which must be a good one."""
        assert self.start(words, env).wait(120) == 0, self.logs()

    def logs(self):
        """What all of them said."""
        return "\n".join(path.read_text() for path in sorted(self.folder.glob("log-*")))

    def wait_for(self, url):
        """Wait until a server of ours answers."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            assert all(one.poll() in (None, 0) for one in self.started), self.logs()
            try:
                return urllib.request.urlopen(url, timeout=5).read()
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.05)
        raise AssertionError(f"{url} does not answer: {self.logs()}")

    def end(self):
        """End all that is left, with what they started."""
        left = [psutil.Process(one.pid) for one in self.started if one.poll() is None]
        for process in [*left, *(child for one in left for child in one.children(recursive=True))]:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        for process in self.started:
            process.wait(20)


@pytest.fixture(scope="module")
def processes(tmp_path_factory):
    """Commands as processes."""
    started = Processes(tmp_path_factory.mktemp("processes"))
    yield started
    started.end()
