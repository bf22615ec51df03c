"""Rules of the house that no linter holds."""

import ast
import builtins
import re
import subprocess
import sys
from pathlib import Path

import pytest

import dsc
from dsc.cli.main import COMMANDS, main

PACKAGE = Path(dsc.__file__).parent
VAGUE = {"need", "worth", "told", "where", "elsewhere"}
HEAVY = (
    "dask",
    "distributed",
    "matplotlib",
    "numba",
    "numpy",
    "scipy",
    "skimage",
    "xarray",
    "zarr",
)


def names_bound(tree):
    """Names that a module gives to values, functions, classes and parameters."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda p: str(p.name))
def test_names__say_what_they_are(path):
    names = set(names_bound(ast.parse(path.read_text(encoding="utf-8"))))
    assert not names & VAGUE


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda p: str(p.name))
def test_words__are_image_and_rotate(path):
    text = path.read_text(encoding="utf-8")
    assert "picture" not in text.lower()
    assert not re.search(r"\b(un)?turned\b|\bturns? (an? |the )?(atom|patch|image)", text)


@pytest.mark.parametrize("words", [["--version"], ["--help"], []])
def test_command__answers_before_anything_heavy_is_imported(words):
    program = (
        "import sys; from dsc.cli.main import main\n"
        f"try: main({words!r})\nexcept SystemExit: pass\n"
        f"found = [name for name in {HEAVY!r} if name in sys.modules]; assert not found, found"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_import__is_light():
    program = f"import sys, dsc; assert not [n for n in {HEAVY!r} if n in sys.modules]"
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("name", COMMANDS)
def test_help__of_all_commands_is_that_of_each(name):
    command = main.get_command(None, name)
    first = command.help.split("\n")[0].rstrip(".")
    listed = COMMANDS[name][1]
    assert listed.rstrip(".").split(":")[0].split(" (")[0].split(",")[0] in first


def test_public_names__are_there_and_shadow_nothing_but_open():
    for name in dsc.__all__:
        assert getattr(dsc, name) is not None
    assert {name for name in dsc.__all__ if hasattr(builtins, name)} == {"open"}
