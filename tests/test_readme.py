"""What the README shows is true: its code runs, its commands are understood."""

import re
import shlex
from pathlib import Path

import click
import pytest

from dsc.cli.main import main

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.S)


def commands():
    """Every line of a code block, and every `word` in the text, that calls dsc."""
    code = re.findall(r"```(?:console|sh|bash)?\n(.*?)```", README, re.S)
    code += re.findall(r"^    (.+)$", README, re.M)
    lines = "\n".join(code).replace("\\\n", " ").splitlines()
    lines += re.findall(r"`(dsc [^`]+)`", README)
    found = []
    for line in lines:
        for part in re.split(r"&&|\|(?= )|;", line):
            call = re.match(r"^\s*(?:\$ )?(?:\S*/)?dsc ([a-z].*)$", part)
            if call:
                found.append(call[1].split(" # ")[0].strip())
    return sorted(set(found))


def test_readme__has_python_code():
    assert BLOCKS


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_readme__python_code_runs(number, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(BLOCKS[number], f"README.md, block {number}", "exec"), {"__name__": "readme"})


def test_readme__shows_commands():
    assert {"demo", "patches", "learn", "encode"} <= {line.split()[0] for line in commands()}


@pytest.mark.parametrize("line", commands())
def test_readme__commands_are_understood(line):
    words = shlex.split(re.sub(r"[\[\]]", " ", line))
    command = main.get_command(click.Context(main), words[0])
    assert command is not None
    if isinstance(command, click.Group) and len(words) > 1:
        words = words[1:]
        command = command.get_command(click.Context(command), words[0])
        assert command is not None
    if len(words) > 1 and any(word.startswith("--out") for word in words):
        words = [word for word in words if not word.startswith("--config")]
        if "--config" in line:  # names a file of the reader
            words = [word for word in words if not word.endswith(".toml")] + ["PATCHES"]
        command.make_context(words[0], words[1:])
    else:  # mentioned in the text, maybe in part
        known = {n for param in command.params for n in (*param.opts, *param.secondary_opts)}
        assert {word.split("=")[0] for word in words if word.startswith("-")} <= known | {"--help"}


def test_readme__has_the_test_command_where_ci_looks():
    command = re.search(r"<!-- test command -->\s+(?:```\w*\n)?\s*(\S.*)", README)
    assert command
    assert "pip install" in command[1]
    assert "pytest" in command[1]


def test_readme__images_are_there():
    for path in re.findall(r"!\[[^]]*\]\(([^)]+)\)", README):
        assert path.startswith("http") or (Path(__file__).parent.parent / path).is_file(), path
