"""The report of a sweep, made up, in headless Chromium."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from dsc.errors import DscError
from dsc.report import sweep_table, write_sweep_report
from dsc.report.paper import validated
from dsc.report.render import look_up
from dsc.report.sweep import KIND, lowest, percent, plot_sweep
from dsc.texture import (
    CAUTION,
    SettingResult,
    Sweep,
    SweepGrid,
    SweepResult,
    TextureConfig,
    Validation,
)
from dsc.texture.config import METHODS

BASE = TextureConfig(n_iterations=2, patches_per_image=100, stride=3)
GRID = SweepGrid(
    n_atoms=(2, 4), diameter=(7, 9), sparsity=(1, 2), method=("rotational", "standard")
)


def made_up(means, grid, std=0.01):
    """A result with these mean accuracies, in the order of the settings."""
    results = tuple(
        SettingResult(
            config, (mean - std, mean + std), "0" * 64, 1000, pruned_share(config), 1.25, 2000.0
        )
        for config, mean in zip(grid.settings(BASE), means, strict=True)
    )
    identity = {
        "data": {"n_images": 12, "images_sha256": "f00d" * 16},
        "config": {"stride": 3, "n_angles": None},
        "validation": {"held_out": 0.88, "repeats": 2},
        "numerics": {"numpy": "2.3.1", "cpu": "Some <Processor> 9000"},
    }
    sweep = Sweep(BASE, grid, Validation(0.88, 2))
    options = {"images": "a <suite>", "classes": []}
    return SweepResult(Path("run"), sweep, identity, ("a & b", "c"), options, results)


def pruned_share(config):
    return 0.5 if (config.method, config.sparsity) == ("rotational", 1) else None


@pytest.fixture(scope="module")
def result():
    means = [0.7 + 0.015 * (7 * i % 16) for i in range(16)]
    return made_up(means, GRID)


@pytest.fixture(scope="module")
def folder(result, tmp_path_factory):
    path = tmp_path_factory.mktemp("sweep") / "report"
    write_sweep_report(path, result)
    return path


def read(path):
    return path.read_text(encoding="utf-8")


# --- the table ------------------------------------------------------------------------------------


def test_paper__has_a_number_for_each_of_its_settings():
    settings = SweepGrid().settings(BASE)
    assert len(settings) == 108
    found = {(c.method, c.diameter[0], c.sparsity, c.n_atoms): validated(c) for c in settings}
    assert all(0.95 < value < 1 for value in found.values())
    # some of its table, one of each corner, and the best of each method
    assert found["standard", 11, 1, 10] == 0.990
    assert found["augmented", 15, 3, 10] == 0.961
    assert found["rotational", 13, 2, 25] == 0.979
    assert found["standard", 11, 3, 100] == 0.999
    assert found["augmented", 15, 1, 100] == 0.993
    assert found["rotational", 15, 1, 100] == found["rotational", 15, 3, 100] == 0.990
    others = ({"n_atoms": 11}, {"diameter": (9,)}, {"diameter": (11, 15)}, {"sparsity": 4})
    assert [validated(replace(BASE, **one)) for one in others] == [None] * 4


def test_sweep__of_the_papers_suite_sets_its_numbers_beside_ours(tmp_path):
    grid = SweepGrid(n_atoms=(10, 11), diameter=(11,), sparsity=(1,), method=("rotational",))
    ours = made_up((0.9, 0.8), grid)
    theirs = replace(
        ours,
        options={"images": "/some/where/Outex_TC_00010"},
        identity=ours.identity | {"data": {"n_images": 480}},
        label_names=tuple(f"class {i}" for i in range(24)),
    )
    for other in ({"identity": ours.identity}, {"label_names": ("a", "b")}):
        assert "(96.9)" not in sweep_table(replace(theirs, **other))
    assert "(96.9)" not in sweep_table(ours)
    assert "| **90.00 ± 1.00** (96.9) | 80.00 ± 1.00 |" in sweep_table(theirs)
    for result, n in ((ours, 0), (theirs, 1)):
        write_sweep_report(tmp_path / str(n), result)
        page = read(tmp_path / str(n) / "index.html")
        assert page.count('data-derived="paper.') == page.count("cited, not run here") == n


def test_sweep_table__says_that_upright_images_do_not_judge_methods():
    one, two = SweepGrid((5,), (7,), (1,), ("standard",)), SweepGrid((5,), (7,), (1,))
    assert CAUTION not in sweep_table(made_up([0.9], one))
    assert CAUTION in sweep_table(made_up([0.7, 0.8, 0.9], two))


def test_sweep_table__a_block_per_method_with_its_winner_in_bold():
    grid = SweepGrid(n_atoms=(10, 25), diameter=(11, 13), sparsity=(1, 2))
    means = [0.9] * 24
    means[3], means[13], means[16] = 0.97, 0.95, 0.99
    text = sweep_table(made_up(means, grid))
    assert "2 repeats with 0.88 of the training images held out" in text
    lines = text.splitlines()
    assert [line[3:] for line in lines if line.startswith("## ")] == list(METHODS)
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line[:1] == "|"]
    assert [row for row in rows if row[0] == "N"] == [["N", "K", "M = 10", "M = 25"]] * 3
    body = [row for row in rows if row[0].isdigit()]
    assert [row[:2] for row in body] == [["11", "1"], ["11", "2"], ["13", "1"], ["13", "2"]] * 3
    assert body[0][2] == "90.00 ± 1.00"
    bold = {(i, j) for i, row in enumerate(body) for j, cell in enumerate(row) if "**" in cell}
    assert bold == {(1, 3), (6, 3), (8, 2)}
    assert body[8][2] == "**99.00 ± 1.00**"


# --- plots ----------------------------------------------------------------------------------------


def test_plot_sweep__a_line_for_every_diameter_and_sparsity():
    grid = SweepGrid(n_atoms=(25, 10), diameter=(11, 13), sparsity=(1, 2), method=("standard",))
    means = [0.9, 0.8, 0.91, 0.81, 0.92, 0.82, 0.93, 0.83]
    sweep = made_up(means, grid)
    low = lowest(sweep)
    assert 0.7 <= low < 0.8
    axes = plot_sweep(sweep, "standard", low).axes[0]
    assert [line.get_label() for line in axes.lines] == [
        "N = 11, K = 1", "N = 11, K = 2", "N = 13, K = 1", "N = 13, K = 2",
    ]  # fmt: skip
    assert axes.lines[1].get_xydata().tolist() == [[10, 0.81], [25, 0.91]]
    assert [t.get_text() for t in axes.get_xticklabels()] == ["10", "25"]
    assert axes.get_ylim() == (low, 1)
    assert len({(line.get_color(), line.get_marker()) for line in axes.lines}) == 4


@pytest.mark.parametrize("mean", [0.0, 0.004, 0.5, 0.95, 0.995, 1.0])
def test_lowest__below_every_accuracy_and_round(mean):
    grid = SweepGrid((2,), (7,), (1,), ("standard",))
    low = lowest(made_up([mean], grid, std=0.0))
    assert 0 <= low < 1
    assert low < mean or low == 0
    assert round(100 * low, 9) == round(100 * low)


# --- the page -------------------------------------------------------------------------------------


def test_page__shows_the_winner_all_tables_and_plots_by_itself(folder, result):
    text = read(folder / "index.html")
    plain = re.sub("<[^>]*>", "", text)
    best = result.winner.config
    setting = f"{best.method}, N = {best.diameter[0]}, K = {best.sparsity}, M = {best.n_atoms}"
    assert f"is {setting}, with an accuracy of\n{percent(result.winner)} %" in plain
    assert text.count("data:image/svg+xml;base64,") == 2
    assert "http://" not in text
    assert "https://" not in text
    assert text.count("★") == 2 + 1 + 1  # one in each table, one among the winners, the note
    for one in result.results:
        assert f"{100 * one.mean:.2f} ± {100 * one.std:.2f}" in text
        assert f"N = {one.config.sizes}, K = {one.config.sparsity}" in plain
    assert CAUTION in text
    assert "a &lt;suite&gt;" in text
    assert "a &amp; b, c" in text
    assert "<suite>" not in text
    assert "<Processor>" not in text
    assert result.identity["data"]["images_sha256"] in text


def test_page__of_one_setting(tmp_path):
    write_sweep_report(tmp_path, made_up([1.0], SweepGrid((2,), (7,), (1,), ("standard",)), 0.0))
    text = re.sub("<[^>]*>", "", read(tmp_path / "index.html"))
    assert "Sweep of 1 texture setting\n" in text
    assert re.search(r"The best of 1\s+setting is", text)
    assert CAUTION not in text


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
def test_page__opens_quietly_from_disk_and_fits(browser, folder, width, scheme):
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    tab, requests, messages = context.new_page(), [], []
    tab.on("request", lambda request: requests.append(request.url))
    tab.on("console", lambda message: messages.append(message.text))
    tab.on("pageerror", lambda error: messages.append(str(error)))
    page = folder / "index.html"
    tab.goto(page.as_uri(), wait_until="load")
    assert messages == []
    assert [url for url in requests if not url.startswith("data:")] == [page.as_uri()]
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    assert tab.evaluate("[...document.images].every(i => i.naturalWidth > 0 && i.alt)")
    heads = "[...document.querySelectorAll('.scroll th')].every(e => e.scope && e.textContent)"
    assert tab.evaluate(heads)
    context.close()


def test_page__numbers_are_those_of_the_json(browser, folder, result):
    facts = json.loads(read(folder / "report.json"))
    context = browser.new_context()
    tab = context.new_page()
    tab.goto((folder / "index.html").as_uri())
    named = tab.evaluate(
        "[...document.querySelectorAll('[data-name]')].map(e => [e.dataset.name, e.dataset.value])"
    )
    derived = tab.evaluate(
        "[...document.querySelectorAll('[data-derived]')]"
        ".map(e => [e.dataset.derived, e.textContent])"
    )
    rest = tab.evaluate(
        "() => { document.querySelectorAll('[data-name], [data-derived], h1, style')"
        ".forEach(e => e.remove()); return document.body.textContent }"
    )
    context.close()
    assert [name for name, value in named if json.loads(value) != look_up(facts, name)] == []
    expected = {"settings": {"16", "20.0", "32,000.0"}, "label_names": {"2"}}
    for i, one in enumerate(result.results):
        expected[f"settings.{i}"] = {"2,001.2"}
        expected[f"settings.{i}.accuracy"] = {percent(one)}
    assert [(name, text) for name, text in derived if text not in expected[name]] == []
    assert {f"settings.{i}.accuracy" for i in range(16)} <= {name for name, _ in derived}
    names = {name for name, _ in named}
    assert {"identity.data.images_sha256", "identity.numerics.cpu", "version"} <= names
    assert re.findall(r"\d+", rest.replace("SHA-256", "").replace("_sha256", "")) == []


# --- files ----------------------------------------------------------------------------------------


def test_report__files_are_there_and_replaced(folder, result, tmp_path):
    plots = {f"{method}.{end}" for method in GRID.method for end in ("png", "svg")}
    names = {"index.html", "report.json", "table.md", *plots}
    assert {path.name for path in folder.iterdir()} == names
    assert read(folder / "table.md") == sweep_table(result)
    facts = json.loads(read(folder / "report.json"))
    expected = {**json.loads(json.dumps(result.to_dict())), "kind": KIND}
    assert {key: facts[key] for key in expected} == expected
    write_sweep_report(tmp_path, result)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    write_sweep_report(tmp_path, result)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    fewer = SweepGrid((2,), (7,), (1,), ("standard",))
    write_sweep_report(tmp_path, made_up([0.5], fewer))
    assert {path.name for path in tmp_path.iterdir()} == {
        name for name in names if "rotational" not in name
    }
    assert read(tmp_path / "table.md") == sweep_table(made_up([0.5], fewer))


@pytest.mark.parametrize("name", ["index.html", "report.json", "table.md", "standard.png"])
def test_report__overwrites_nothing_that_is_not_its_own(tmp_path, result, name):
    (tmp_path / name).write_text('{"kind": "dsc report"}')
    with pytest.raises(DscError, match="is no part of a dsc texture sweep report"):
        write_sweep_report(tmp_path, result)
    assert [path.name for path in tmp_path.iterdir()] == [name]
