"""A mistake gets one message without a traceback, and exit code 2; nothing is left behind."""

import re
import shutil
import subprocess

import numpy as np
import pytest
from PIL import Image


@pytest.fixture
def place(made, images, tmp_path):
    """A folder with good and bad things in it."""
    folder, _ = made
    (tmp_path / "good").symlink_to(folder)
    shutil.copytree(folder / "run", tmp_path / "unfinished")
    (tmp_path / "unfinished" / "model.zarr" / "manifest.json").unlink()
    shutil.copy(images / "coins.png", tmp_path / "coins.png")
    Image.fromarray(np.zeros((40, 40), np.uint8)).save(tmp_path / "flat.png")
    Image.fromarray(np.zeros((4, 4), np.uint8)).save(tmp_path / "tiny.png")
    (tmp_path / "broken.png").write_bytes((tmp_path / "coins.png").read_bytes()[:200])
    (tmp_path / "text.png").write_text("no image")
    (tmp_path / "notes.txt").write_text("notes")
    return tmp_path


MISTAKES = {
    "patches: no file": ("patches {0}/none.png --out {0}/new", "none.png: does not exist"),
    "patches: no match": ("patches {0}/*.jpg --out {0}/new", "nothing matches"),
    "patches: broken": ("patches {0}/broken.png {0}/text.png --out {0}/new", "broken.png"),
    "patches: text": ("patches {0}/notes.txt --out {0}/new", "unknown type of file"),
    "patches: flat": ("patches {0}/flat.png --out {0}/new --min-std 0.1", "lower min_std"),
    "patches: tiny": ("patches {0}/tiny.png --out {0}/new", "tiny.png"),
    "patches: diameter": ("patches {0}/coins.png --out {0}/new --diameter 1", "diameter: found 1"),
    "patches: word": ("patches {0}/coins.png --out {0}/new --diameter x", "'x' is not a valid int"),
    "patches: there": ("patches {0}/coins.png --out {0}/good/patches.zarr", "not overwritten"),
    "patches: not ours": ("patches {0}/coins.png --out {0}/notes.txt", "not overwritten|exists"),
    "patches: below a file": ("patches {0}/coins.png --out {0}/notes.txt/p.zarr", "notes.txt"),
    "learn: nothing": ("learn {0}/none.zarr --out {0}/new", "nothing is there"),
    "learn: no patches": ("learn {0}/good/run/model.zarr --out {0}/new", "store of model, need"),
    "learn: n_atoms": ("learn {0}/good/patches.zarr --out {0}/new --n-atoms 0", "n_atoms: found 0"),
    "learn: basis": ("learn {0}/good/patches.zarr --out {0}/new --basis disc", "'disc'"),
    "learn: option": ("learn {0}/good/patches.zarr --out {0}/new --n-atom 3", "--n-atoms"),
    "learn: sparsity": ("learn {0}/good/patches.zarr --out {0}/new --sparsity 99", "sparsity"),
    "learn: memory": ("learn {0}/good/patches.zarr --out {0}/new --memory-limit x", "memory_limit"),
    "learn: scheduler": ("learn {0}/good/patches.zarr --out {0}/new --scheduler x", "scheduler:"),
    "learn: workers": ("learn {0}/good/patches.zarr --out {0}/new --n-workers 0", "n-workers"),
    "learn: there": ("learn {0}/good/patches.zarr --out {0}/good/run", "finished run"),
    "learn: not ours": ("learn {0}/good/patches.zarr --out {0}/notes.txt", "no run of dsc"),
    "learn: below a file": ("learn {0}/good/patches.zarr --out {0}/notes.txt/run", "notes.txt"),
    "learn: no out": ("learn {0}/good/patches.zarr", "--out"),
    "learn: config": ("learn --config {0}/none.toml --out {0}/new", "none.toml"),
    "learn: resume": (
        "learn {0}/good/patches.zarr --out {0}/good/run --resume --n-atoms 4 --seed 7 "
        "--sparsity 2 --n-iterations 2",
        "config: seed: 0 instead of 7",
    ),
    "encode: unfinished": (
        "encode {0}/good/patches.zarr {0}/unfinished --out {0}/new",
        "not finished: .*--resume",
    ),
    "encode: no model": (
        "encode {0}/good/patches.zarr {0}/good/patches.zarr --out {0}/new",
        "store of patches, need one of model",
    ),
    "encode: nothing": ("encode {0}/good/patches.zarr {0}/none --out {0}/new", "nothing is there"),
    "encode: there": (
        "encode {0}/good/patches.zarr {0}/good/run --out {0}/good/patches.zarr",
        "not overwritten",
    ),
    "reconstruct: type": ("reconstruct {0}/coins.png {0}/good/run --out {0}/a.jpg", "a.jpg"),
    "reconstruct: image": ("reconstruct {0}/none.png {0}/good/run --out {0}/a.png", "none.png"),
    "reconstruct: tiny": ("reconstruct {0}/tiny.png {0}/good/run --out {0}/a.png", "at least 7"),
    "reconstruct: there": (
        "reconstruct {0}/coins.png {0}/good/run --out {0}/coins.png",
        "coins.png: is the image itself",
    ),
    "reconstruct: no folder": (
        "reconstruct {0}/coins.png {0}/good/run --out {0}/none/a.png",
        "none",
    ),
    "reconstruct: stride": (
        "reconstruct {0}/coins.png {0}/good/run --out {0}/a.png --stride 9",
        "stride: found 9",
    ),
    "info: nothing": ("info {0}/none", "nothing is there"),
    "info: not ours": ("info {0}/notes.txt", "notes.txt"),
    "demo: there": ("demo --out {0}/good", "exists already"),
    "no command": ("lern", "lern"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes__one_message_and_exit_code_2(place, dsc, mistake):
    words, message = MISTAKES[mistake]
    before = sorted(path.name for path in place.iterdir())
    result = dsc(*words.format(place).split())
    assert result.exit_code == 2, result.output + repr(result.exception)
    assert re.search(message, " ".join(result.stderr.split())), result.stderr
    assert "Traceback" not in result.output
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) <= 12  # one screen
    assert sorted(path.name for path in place.iterdir()) == before


def test_mistakes__as_a_process(command, environment, tmp_path):
    """The installed command, also with --json: nothing on stdout, exit code 2."""
    found = subprocess.run(
        [command, "learn", "none.zarr", "--out", "new", "--json"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 2
    assert found.stdout == ""
    assert found.stderr.startswith("dsc: ")
    assert "nothing is there" in found.stderr
    assert "Traceback" not in found.stderr
    assert not any(tmp_path.iterdir())


def test_damage__is_named_by_the_command(made, dsc, tmp_path):
    folder, _ = made
    shutil.copytree(folder / "patches.zarr", tmp_path / "p.zarr")
    chunk = next(p for p in (tmp_path / "p.zarr" / "y" / "c").rglob("*") if p.is_file())
    data = bytearray(chunk.read_bytes())
    data[5] ^= 1
    chunk.write_bytes(data)
    result = dsc("encode", tmp_path / "p.zarr", folder / "run", "--out", tmp_path / "codes.zarr")
    assert result.exit_code == 2
    assert re.search(r"chunk 0 of array 'y'.*damaged", result.stderr)
    assert dsc("info", tmp_path / "codes.zarr").exit_code == 2  # not finished
