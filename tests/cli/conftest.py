"""Images, what the commands make of them, and ways to call the commands."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

from dsc.cli.main import main


@pytest.fixture(scope="session")
def dsc():
    """dsc(*words): the result of a command, run in this process."""

    def run(*words):
        return CliRunner().invoke(main, [str(word) for word in words])

    return run


@pytest.fixture(scope="session")
def ask(dsc):
    """ask(*words): the JSON of a command that must succeed with exactly that on stdout."""

    def run(*words):
        result = dsc(*words, "--json")
        assert result.exit_code == 0, result.output
        assert result.stdout.count("\n") == 1
        return json.loads(result.stdout)

    return run


@pytest.fixture(scope="session")
def command():
    """The installed `dsc` command."""
    return str(Path(sys.executable).parent / "dsc")


@pytest.fixture(scope="session")
def environment():
    """The environment of a subprocess, with the commands next to this Python on the path."""
    folder = str(Path(sys.executable).parent)
    return {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}


@pytest.fixture(scope="session")
def images(image, tmp_path_factory):
    """A folder of two small images."""
    folder = tmp_path_factory.mktemp("images")
    for name in ("camera", "coins"):
        grey = np.round(255 * image(name)[100:160, 100:150]).astype(np.uint8)
        Image.fromarray(grey).save(folder / f"{name}.png")
    return folder


@pytest.fixture(scope="session")
def made(images, ask, tmp_path_factory):
    """A patch set and a finished run of it, as the commands make them: (folder, summaries)."""
    folder = tmp_path_factory.mktemp("made")
    cut = ask("patches", images, "--out", folder / "patches.zarr", "--diameter", 7, "--center")
    words = ["--n-atoms", 4, "--sparsity", 2, "--n-iterations", 2]
    learned = ask("learn", folder / "patches.zarr", "--out", folder / "run", *words)
    return folder, {"patches": cut, "learn": learned}
