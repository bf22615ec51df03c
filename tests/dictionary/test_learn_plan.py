"""`dsc.plan`: what `learn` would do, without doing it."""

import json
import re

import numpy as np
import psutil
import pytest

import dsc
from dsc.errors import DscError

LINES = [
    "patches",
    "leaves",
    "tasks",
    "statistics",
    "memory of a task",
    "coordinates",
    "estimated time",
]


@pytest.fixture(scope="module")
def patches():
    return np.random.default_rng(0).random((3000, 7, 7), np.float32)


@pytest.fixture(scope="module")
def plan(patches):
    return dsc.plan(patches, 5, 2, n_iterations=4, n_workers=2)


def test_plan__as_text_has_a_line_for_everything(plan):
    lines = str(plan).splitlines()
    assert [line[:18].strip() for line in lines] == LINES
    assert all(line[18:].strip() for line in lines)
    assert "3,000" in lines[0]
    assert "on 2 threads" in lines[2]


def test_plan__as_html_has_the_same_words(plan):
    html = plan._repr_html_()
    for name, text in plan.lines().items():
        assert f"<dt>{name}</dt><dd>{text}</dd>" in html


def test_plan__as_dict_is_plain_json(plan):
    about = plan.to_dict()
    assert json.loads(json.dumps(about)) == about
    assert about["n_patches"] == 3000
    assert about["n_threads"] == 2
    assert about["seconds"] > 0


def test_plan__is_what_a_run_writes_down(plan, patches, tmp_path):
    dsc.learn(patches, 5, 2, n_iterations=4, n_workers=2, run=tmp_path / "run", progress=False)
    start = dsc.dictionary.Run(tmp_path / "run").events()[0]
    assert start["plan"]["n_tasks"] == plan.plan.n_tasks
    assert start["plan"]["leaf_size"] == plan.plan.leaf_size


@pytest.mark.parametrize(
    "options",
    [
        {"n_atoms": 0},
        {"sparsity": 10**6},
        {"n_atom": 3},
        {"basis": "no"},
        {"n_workers": 0},
        {"scheduler": "no"},
        {"memory_limit": "much"},
        {"n_atoms": 40_000, "n_workers": 2, "memory_limit": "little"},
    ],
    ids=str,
)
def test_plan__refuses_what_learn_refuses_in_the_same_words(patches, options, tmp_path):
    if options.get("memory_limit") == "little":
        rss = psutil.Process().memory_info().rss
        options = {**options, "memory_limit": rss + 20 * 10**6}
    said = []
    for ask in (
        lambda: dsc.plan(patches, **options),
        lambda: dsc.learn(patches, run=tmp_path / "run", progress=False, **options),
    ):
        with pytest.raises(DscError) as refusal:
            ask()
        text = str(refusal.value).split(" has ")[0]  # then comes the memory of now
        said.append(re.sub(r"already uses \d+ MB", "already uses some", text))
    if "n_atom" not in options:  # learn takes some more options, and lists them
        assert said[0] == said[1]
    assert not (tmp_path / "run").exists()
