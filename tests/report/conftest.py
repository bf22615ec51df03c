"""A small finished run, a page of every kind, and a browser to look at them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess

import numpy as np
import pytest
from skimage import data

import dsc
from dsc.experiments import AtomGrid, Demo, Finding, ImageRows, Lines, Result, tell_story
from dsc.experiments.demo import KINDS
from dsc.report import write_demo, write_report, write_result, write_summary

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
    """(run, patch set beside it), finished, on two small images; not to be changed."""
    folder = tmp_path_factory.mktemp("small")
    images = [data.camera()[100:180, 200:300], data.coins()[60:140, 60:160]]
    run, patches = folder / "run", folder / "patches.zarr"
    dsc.extract_patches(
        [np.asarray(image, np.float32) / 255 for image in images],
        patches,
        dsc.PatchConfig(diameter=9, stride=2, min_std=0.02, center=True, unit=True),
    )
    dsc.learn(str(patches), 7, 2, n_iterations=3, n_angles=24, run=run)
    made = dsc.Run(run)
    made.write_options({**made.options(), "patches": "old/patches.zarr"})  # both were moved
    return run, patches


@pytest.fixture(scope="session")
def report(small_run):
    """(page, what is in report.json) of the small run."""
    write_report(small_run[0])
    folder = small_run[0] / "report"
    return folder / "index.html", json.loads((folder / "report.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def result():
    """A result of an experiment with a figure of every kind."""
    rng = np.random.default_rng(0)
    images = dsc.disk_basis(9).to_image(rng.normal(size=(6, dsc.disk_basis(9).n_coords)))
    lines = {(f"K = {k}", kind): [k, 2 * k, 30 * k] for k in (1, 2) for kind in ("ours", "theirs")}
    return Result(
        data="some <b>data</b>",
        header=("a method", *(f"a number of {n} words" for n in range(9))),
        rows=tuple((f"method {i}", *(f"{i}.{n}" for n in range(9))) for i in range(3)),
        figures={
            "lines": Lines("lines", lines, [1, 10, 30], "x", "y", bound=("bound", 0.5)),
            "plain": Lines("plain", {"a": [1, 2], "b": [0, 3]}, [1, 2], "x", "y", is_log=False),
            "rows": ImageRows("rows", {"atom": images[:1], "patches": images}, like="patches"),
            "scaled": ImageRows(
                "rows", {"it": images}, "it", [f"l\n{i}" for i in "abcdef"], (0, 1)
            ),
            "atoms": AtomGrid("atoms & <frames>", images, groups=[[0, 3], [1, 2]]),
        },
        numbers={"n": 1.5},
        findings=(Finding("a < b", "1 < 2", True), Finding("c", "no", False, "d|e", by="dsc")),
        notes=("a note",),
        name="some",
        title="Some experiment",
    )


@pytest.fixture(scope="session")
def pages(small_run, report, result, tmp_path_factory):
    """The page of every kind by name."""
    folder = tmp_path_factory.mktemp("pages")
    models = {
        kind: dsc.learn(str(small_run[1]), 5, 2, n_iterations=10, basis=b, run=folder / kind)
        for kind, b in KINDS.items()
    }
    patches = dsc.open_patches(small_run[1])
    mse, share = ({k: getattr(m, name) for k, m in models.items()} for name in ("mse", "share"))
    images = data.camera()[100:148, 200:248] / 255, data.coins()[60:108, 60:108] / 255
    story = tell_story(models, *images, lambda _: None, n_atoms=4, n_iterations=1, diameter=7)
    write_demo(Demo(folder, patches.n_patches, models, share, mse, story, 1.0))
    write_result(result, folder / "experiments")
    write_summary([result], folder / "experiments")
    return {
        "learn": report[0],
        "demo": folder / "index.html",
        "experiment": folder / "experiments" / "some" / "index.html",
        "experiments": folder / "experiments" / "index.html",
    }


@pytest.fixture
def copied_run(small_run, report, tmp_path):
    """(run, patch set beside it) with the report, which a test may change."""
    for path in small_run:
        shutil.copytree(path, tmp_path / path.name)
    return tmp_path / "run", tmp_path / "patches.zarr"


@pytest.fixture(scope="module")  # while it is open, this thread has a running event loop
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
