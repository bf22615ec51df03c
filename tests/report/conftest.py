"""A small finished run, and a browser to look at its report."""

from __future__ import annotations

import json
import os
import shutil
import subprocess

import numpy as np
import pytest
from skimage import data

import dsc
from dsc.dictionary.run import from_toml, to_toml
from dsc.report import write_report

HINT = (
    "the pages are tested in a real browser: apt-get install chromium, and pip install playwright "
    "(`playwright install` is not needed)"
)
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip


@pytest.fixture(scope="session")
def small_run(tmp_path_factory):
    """(run, patch set beside it), finished, on two small pictures; not to be changed."""
    folder = tmp_path_factory.mktemp("small")
    pictures = [data.camera()[100:180, 200:300], data.coins()[60:140, 60:160]]
    run, patches = folder / "run", folder / "patches.zarr"
    dsc.extract_patches(
        [np.asarray(picture, np.float32) / 255 for picture in pictures],
        patches,
        dsc.PatchConfig(diameter=9, stride=2, min_std=0.02, center=True, unit=True),
    )
    dsc.learn(str(patches), 7, 2, n_iterations=3, n_angles=24, run=run)
    options = {**from_toml(run / "run.toml"), "patches": "old/patches.zarr"}  # both were moved
    (run / "run.toml").write_text(to_toml(options))
    return run, patches


@pytest.fixture(scope="session")
def report(small_run):
    """(page, what is in report.json) of the small run."""
    write_report(small_run[0])
    folder = small_run[0] / "report"
    return folder / "index.html", json.loads((folder / "report.json").read_text(encoding="utf-8"))


@pytest.fixture
def copied_run(small_run, report, tmp_path):
    """(run, patch set beside it) with the report, which a test may change."""
    for path in small_run:
        shutil.copytree(path, tmp_path / path.name)
    return tmp_path / "run", tmp_path / "patches.zarr"


@pytest.fixture(scope="session")
def browser():
    """Debian's Chromium without a window."""
    program = shutil.which("chromium")
    if program is None and os.environ.get("CI"):
        pytest.fail(f"found no chromium: {HINT}")
    if program is None:
        pytest.skip(f"found no chromium: {HINT}")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        pytest.fail(f"found no playwright: {HINT}")
    subprocess.run([program, "--version"], check=True, capture_output=True)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=program, args=FLAGS)
        yield chromium
        chromium.close()
