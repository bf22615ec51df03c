"""Signs of life of the commands: a bar on a terminal, few lines in a log."""

import fcntl
import json
import os
import re
import struct
import subprocess
import sys
import termios
from contextlib import suppress

import numpy as np
import pytest
from PIL import Image


@pytest.fixture(scope="module")
def inputs(made, image, tmp_path_factory):
    """(folder with an image, images of two classes, patches and a run)."""
    folder = tmp_path_factory.mktemp("inputs")
    grey = np.round(255 * image("camera")[100:300, 100:300]).astype(np.uint8)
    Image.fromarray(grey).save(folder / "one.png")
    for name in ("brick", "gravel"):
        (folder / "classes" / name).mkdir(parents=True)
        pixels = np.round(255 * image(name)).astype(np.uint8)
        for number in range(2):
            part = pixels[100 * number : 100 * number + 48, :48]
            Image.fromarray(part).save(folder / "classes" / name / f"{number}.png")
    return folder, made[0]


def words_of(name, inputs, out):
    folder, made = inputs
    fit = ["--n-atoms", 2, "--diameter", 7, "--n-iterations", 2, "--patches-per-image", 100]
    return {
        "patches": ["patches", folder / "one.png", "--out", out / "p.zarr", "--diameter", 7],
        "materialised": [
            *("patches", folder / "one.png", "--out", out / "m.zarr", "--diameter", 7),
            *("--materialize", "disk"),
        ],
        "encode": ["encode", made / "patches.zarr", made / "run", "--out", out / "codes.zarr"],
        "reconstruct": ["reconstruct", folder / "one.png", made / "run", "--out", out / "r.png"],
        "texture fit": ["texture", "fit", folder / "classes", "--out", out / "texture", *fit],
        "demo": ["demo", "--out", out / "demo"],
    }[name]


NAMES = ["patches", "materialised", "encode", "reconstruct", "texture fit", "demo"]
SPINNER = "[⠀-⣿]"  # Braille, of which spinners are made


PROGRAM = """
import json, sys
from dsc.cli.main import main
for name, words in json.loads(sys.argv[1]).items():
    sys.stderr.write(f"=== {name}\\n")
    main(words, standalone_mode=False)
"""


@pytest.fixture(scope="module")
def on_terminal(inputs, tmp_path_factory):
    """What a terminal on stderr got from each command, all of them run by one process."""
    out = tmp_path_factory.mktemp("terminal")
    words = {name: list(map(str, words_of(name, inputs, out))) for name in NAMES}
    leader, follower = os.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, json.dumps(words)],
        stdout=subprocess.DEVNULL,
        stderr=follower,
        stdin=subprocess.DEVNULL,
    ) as process:
        os.close(follower)
        shown = b""
        with suppress(OSError):  # how Linux says that the other end is closed
            while piece := os.read(leader, 4096):
                shown += piece
    os.close(leader)
    assert process.returncode == 0, shown.decode()
    parts = re.split(r"=== (.*)\r\n", shown.decode())
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.mark.parametrize("name", NAMES)
def test_command__shows_on_a_terminal_that_it_lives(on_terminal, name):
    shown = on_terminal[name]
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown)
    assert re.search(rf"{SPINNER}.*\d+%", plain)
    if "\x1b[?25l" in shown:  # the cursor is given back
        assert shown.rindex("\x1b[?25h") > shown.rindex("\x1b[?25l")


@pytest.mark.parametrize("name", [name for name in NAMES if name != "demo"])
def test_command__is_short_in_a_log(dsc, inputs, tmp_path, name):
    result = dsc(*words_of(name, inputs, tmp_path))
    assert result.exit_code == 0, result.output
    lines = result.stderr.splitlines()
    assert len(lines) <= 6
    assert all(line.strip() and "\x1b" not in line and "\r" not in line for line in lines)
    if name in ("encode", "reconstruct", "texture fit"):
        assert lines[0].startswith("running on ")


def test_command__json_is_alone_on_stdout_while_stderr_is_a_log(dsc, inputs, tmp_path):
    result = dsc(*words_of("encode", inputs, tmp_path), "--json")
    assert result.stdout.count("\n") == 1
    assert result.stdout.startswith("{")
