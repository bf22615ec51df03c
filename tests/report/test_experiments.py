"""Results of experiments as files and figures."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from dsc.errors import DscError
from dsc.experiments import AtomGrid, Lines
from dsc.report import write_result, write_summary
from dsc.report.experiments import markdown_table, plot_figure
from dsc.report.figures import SERIES, draw, themed_url


def test_write_result__writes_all_files_once(result, tmp_path):
    out = write_result(result, tmp_path)
    figures = {f"{name}.{end}" for name in result.figures for end in ("png", "svg")}
    assert {p.name for p in out.iterdir()} == {"index.html", "result.json", "table.md"} | figures
    saved = json.loads((out / "result.json").read_text(encoding="utf-8"))
    assert saved == {**saved, **result.to_dict()}
    with pytest.raises(DscError, match="exists already"):
        write_result(result, tmp_path)


def test_write_result__escapes_what_it_shows(result, tmp_path):
    page = (write_result(result, tmp_path) / "index.html").read_text(encoding="utf-8")
    assert "<b>" not in page
    assert "some &lt;b&gt;data&lt;/b&gt;" in page
    assert "atoms &amp; &lt;frames&gt;" in page
    assert "a &lt; b: holds" in page


def test_write_summary__links_every_page(result, tmp_path):
    some = [result, replace(result, name="other")]
    table = write_summary(some, tmp_path)
    assert table.count("d\\|e") == 2
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert all(f'href="{one.name}/index.html"' in page for one in some)


def test_markdown_table__keeps_bars_in_cells():
    assert markdown_table(("a", "b"), [("1|2", "3")]) == "| a | b |\n| --- | --- |\n| 1\\|2 | 3 |"


def test_plot_figure__lines_of_a_label_share_a_colour_and_those_of_a_kind_a_dash(result):
    axes = plot_figure(result.figures["lines"]).axes[0]
    lines = axes.lines[:4]  # before the bound
    looks = [(line.get_color(), line.get_linestyle()) for line in lines]
    assert looks == [(SERIES[k], dash) for k in (0, 1) for dash in ("-", "--")]
    assert axes.get_yscale() == "log"


@pytest.mark.parametrize("name", ["lines", "plain", "rows", "scaled", "atoms"])
def test_plot_figure__draws_the_same_bytes_every_time(result, name):
    first, second = (draw(plot_figure(result.figures[name])) for _ in range(2))
    assert first == second
    assert themed_url(first).startswith("data:image/svg+xml;base64,")


def test_plot_figure__draws_corner_cases_without_warnings():
    nothing = np.full((3, 5, 5), np.nan)
    draw(plot_figure(AtomGrid("nothing", nothing)))
    many = {f"line {n}": [1.0, 2.0] for n in range(len(SERIES) + 1)}
    draw(plot_figure(Lines("many", many, [1, 2], "x", "y")))


def test_plot_figure__refuses_what_is_no_figure():
    with pytest.raises(TypeError, match="need Lines, ImageRows or AtomGrid"):
        plot_figure("an image")
