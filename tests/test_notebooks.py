"""The manual: notebooks run, end in an image, and are stored without outputs; all is listed."""

import os
import re
from pathlib import Path

import click
import nbformat
import pytest
from nbclient import NotebookClient

import dsc
from dsc.cli.main import main

FOLDER = Path(__file__).parent.parent / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))

each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def test_notebooks__are_there():
    assert {"quickstart", "how_it_works"} <= {path.stem for path in NOTEBOOKS}


@each_notebook
def test_notebook__is_stored_without_outputs(path):
    for cell in code_cells(nbformat.read(path, 4)):
        assert cell.outputs == []
        assert cell.execution_count is None


def execute(path, folder):
    """The notebook with its outputs, run in quick mode in a folder."""
    notebook = nbformat.read(path, 4)
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(folder)}}).execute()
    return notebook


@pytest.mark.parametrize(  # the site runs all of them
    "path",
    [p if p.stem == "quickstart" else pytest.param(p, marks=pytest.mark.full) for p in NOTEBOOKS],
    ids=lambda path: path.stem,
)
def test_notebook__runs_and_ends_in_an_image(path, tmp_path, monkeypatch):
    monkeypatch.setenv("DSC_QUICK", "1")
    monkeypatch.delenv("DSC_DATA", raising=False)
    cells = code_cells(execute(path, tmp_path))
    outputs = [output for cell in cells for output in cell.outputs]
    assert not [output.text for output in outputs if output.get("name") == "stderr"]
    assert any("image/png" in output.get("data", {}) for output in cells[-1].outputs)


@pytest.mark.skipif("DSC_DATA" not in os.environ, reason="needs the paper's images")
def test_the_paper__takes_its_own_images_where_they_are(tmp_path, monkeypatch):
    monkeypatch.setenv("DSC_QUICK", "1")
    notebook = execute(FOLDER / "the_paper.ipynb", tmp_path)
    shown = str([cell.outputs for cell in code_cells(notebook)])
    assert "17,330 patches" in shown  # the paper's number
    assert "in place of" not in shown


@each_notebook
def test_notebook__names_commands_that_exist(path):
    text = "\n".join(cell.source for cell in nbformat.read(path, 4).cells)
    for line in re.findall(r"(?:`|^\$ )dsc ([a-z][^`#\n]*)", text, re.M):
        command, words = main, line.split()
        while isinstance(command, click.Group) and words:
            command = command.get_command(click.Context(command), words.pop(0))
        known = {n for option in command.params for n in (*option.opts, *option.secondary_opts)}
        assert {word for word in words if word.startswith("-")} <= known, line


def test_site__lists_every_notebook():
    index = (FOLDER / "index.md").read_text(encoding="utf-8")
    trees = "".join(re.findall(r"```{toctree}\n(.*?)```", index, re.S))
    assert {path.stem for path in NOTEBOOKS} <= set(re.findall(r"^\w+$", trees, re.M))


def test_site__documents_every_public_name():
    api = (FOLDER / "api.md").read_text(encoding="utf-8")
    documented = re.findall(r"^\.\. auto(?:function|class|data|exception):: (\w+)$", api, re.M)
    assert sorted(documented) == sorted(dsc.__all__)
