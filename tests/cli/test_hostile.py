"""Texts, names and places that nobody means well with: one message, exit code 2, no work."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from dsc.errors import DscError
from dsc.report.figures import draw, drawing, make_axes
from dsc.texture import read_suite

HOSTILE = {
    "types": b'n_atoms = "x"\nseed = 1.5\n',
    "dates": b"n_atoms = 1979-05-27\nseed = 1979-05-27T07:32:00\nbasis = 07:32:00\n",
    "a list": b"n_atoms = [1, 2]\n",
    "a table": b"[n_atoms]\na = 1\n",
    "deep": b"a = " + b"[" * 100_000,
    "no text": b"\xff\xfe",
    "5,000 digits": b"n_atoms = " + b"9" * 5000,
    "4,000 digits": b"n_atoms = " + b"9" * 4000,
    "no number": b"min_improvement = inf\nreplace_twins = nan\n",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_toml__one_message(made, dsc, tmp_path, name):
    (tmp_path / "a.toml").write_bytes(HOSTILE[name])
    out = tmp_path / "run"
    result = dsc("learn", made[0] / "patches.zarr", "--out", out, "--config", tmp_path / "a.toml")
    assert result.exit_code == 2, repr(result.exception)
    assert result.stderr.startswith("dsc: ")
    assert len(result.stderr) < 1000
    assert not out.exists()


def test_toml__a_huge_stride(images, dsc, tmp_path):
    (tmp_path / "a.toml").write_text(f"stride = {10**30}")
    result = dsc("patches", images, "--out", tmp_path / "p", "--config", tmp_path / "a.toml")
    assert result.exit_code == 2
    assert "stride: found" in result.stderr


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.sampled_from(["n_atoms", "seed", "basis", "resume", "min_improvement", "scheduler"]),
    value=st.sampled_from(["1", "-1", "1.5", "nan", "true", "'x'", "[]", "[[1]]", "{}", "{a=1}"])
    | st.text(max_size=8),
)
def test_toml__any_value_is_taken_or_refused(dsc, tmp_path_factory, name, value):
    folder = tmp_path_factory.mktemp("any")
    (folder / "a.toml").write_bytes(f"{name} = {value}".encode("utf-8", "replace"))
    words = ("learn", folder / "none.zarr", "--out", folder / "r", "--config", folder / "a.toml")
    assert dsc(*words).exit_code == 2  # at least the patches are not there
    assert not (folder / "r").exists()


@pytest.mark.parametrize(
    "words",
    [
        "learn {0}/patches.zarr --out memory://a/run",
        "texture predict {0}/run {0} --features memory://a/f",
        "demo --out memory://a",
        "watch memory://a",
        "report memory://a",
        "experiment toy --out memory://a",
        "learn {0}/patches.zarr --out {0}/new --scheduler tls://127.0.0.1:9",
    ],
)
def test_places__that_are_no_folders(made, dsc, tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    result = dsc(*words.format(made[0]).split())
    assert result.exit_code == 2, repr(result.exception)
    assert "Traceback" not in result.output
    assert not any(tmp_path.iterdir())


def test_names__control_characters_are_escaped(dsc, tmp_path):
    result = dsc("info", tmp_path / "no\x1b[31mred\x07")
    assert result.exit_code == 2
    assert "no\\x1b[31mred\\x07: nothing is there" in result.stderr


def test_names__not_in_utf_8_are_refused_before_any_work(dsc, tmp_path):
    grey = np.random.default_rng(0).integers(0, 256, (40, 40), np.uint8)
    for name in (b"a\xff", b"b"):
        folder = Path(os.fsdecode(os.fsencode(tmp_path / "in") + b"/" + name))
        folder.mkdir(parents=True)
        Image.fromarray(grey).save(folder / "0.png")
    result = dsc("texture", "fit", tmp_path / "in", "--out", tmp_path / "run")
    assert result.exit_code == 2
    assert "not in UTF-8: rename it" in result.stderr
    assert not (tmp_path / "run").exists()


def test_names__with_dollars_are_drawn_as_they_are():
    with drawing():
        figure, axes = make_axes("a$x_{$", "$$")
        axes.plot([1, 2], label="$\\frac$")
        axes.legend()
    assert b"<svg" in draw(figure).svg


@settings(max_examples=40)
@given(
    name=st.sampled_from(["classes.txt", "train.txt", "test.txt"]),
    text=st.text("0123 ab.\n\x00\x85$-", max_size=40).map(str.encode) | st.binary(max_size=40),
)
def test_split_files__any_text_is_read_or_refused(name, text):
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "000").mkdir()
        (root / "images").mkdir()
        (root / "images" / "a.png").write_bytes(b"")
        for file, content in {
            "classes": "1\nx 0 1\n",
            "train": "1\na.png 0\n",
            "test": "0\n",
        }.items():
            (root / "000" / f"{file}.txt").write_text(content)
        (root / "000" / name).write_bytes(text)
        try:
            read_suite(root)
        except DscError as error:
            assert len(str(error)) < 2000  # noqa: PT017


def test_split_files__a_pipe_is_refused(tmp_path):
    (tmp_path / "000").mkdir()
    (tmp_path / "images").mkdir()
    (tmp_path / "000" / "classes.txt").write_text("1\nx 0 1\n")
    for name in ("train.txt", "test.txt"):
        os.mkfifo(tmp_path / "000" / name)
    with pytest.raises(DscError, match=r"train\.txt: is no file"):
        read_suite(tmp_path)
