"""The one renderer: escaping, marks, and what a place for files refuses or replaces."""

from __future__ import annotations

import json

import pytest

from dsc.errors import DscError
from dsc.report.figures import Rendering
from dsc.report.render import Page, Place, derived, show, text_of

PLOT = Rendering(b"png", b"<svg></svg>")
NASTY = "<b>\"a\" & 'c'</b>"


@pytest.fixture
def page(monkeypatch):
    """page(**facts): a page that shows all its facts, with a plot of each name in `plots`."""

    def make(title="a title", plots=(), **facts):
        facts = {"kind": "dsc test", **facts}
        return Page("base.html", title, facts, dict.fromkeys(plots, PLOT))

    return make


def names_in(folder):
    return {path.name for path in folder.iterdir()}


def test_show__escapes_name_and_value():
    text = str(show({"run": {"name": NASTY}}, "run.name"))
    assert "<b>" not in text
    assert "&lt;b&gt;" in text
    assert text.count('"') == 4  # those of the two attributes
    assert "<b>" not in str(derived(NASTY, NASTY))


@pytest.mark.parametrize(
    ("value", "form", "text"),
    [
        (None, "", "none"),
        (True, "", "yes"),
        (17330, ",", "17,330"),
        (0.123456, ".1%", "12.3 %"),
        ([1, 2], "", "1, 2"),
        ("100%", ",", "100%"),
    ],
)
def test_text_of__is_for_people(value, form, text):
    assert text_of(value, form) == text


def test_page__escapes_its_title_and_may_load_nothing(page):
    text = page(NASTY).html()
    assert "<b>" not in text
    assert "default-src 'none'; img-src data:" in text
    assert "://" not in text


def test_place__writes_facts_plots_and_the_page(page, tmp_path):
    facts = Place.folder(tmp_path / "new" / "report").write(page(plots=["a"], n=1))
    folder = tmp_path / "new" / "report"
    assert names_in(folder) == {"index.html", "report.json", "a.png", "a.svg"}
    assert json.loads((folder / "report.json").read_text(encoding="utf-8")) == facts
    assert facts == {"kind": "dsc test", "n": 1, "files": ["a.png", "a.svg", "index.html"]}


def test_place__replaces_its_own_and_leaves_what_is_not(page, tmp_path):
    place = Place.folder(tmp_path)
    place.write(page(plots=["a", "b"]))
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "c.png").write_text("mine")
    place.write(page(plots=["b"]))
    assert names_in(tmp_path) == {
        "index.html", "report.json", "b.png", "b.svg", "notes.txt", "c.png",
    }  # fmt: skip
    with pytest.raises(DscError, match=r"c\.png: exists and is no part of a dsc test"):
        place.write(page(plots=["c"]))
    assert (tmp_path / "c.png").read_text() == "mine"
    assert (tmp_path / "index.html").exists()


def test_place__replaces_a_report_that_does_not_name_its_files(page, tmp_path):
    (tmp_path / "report.json").write_text('{"kind": "dsc test"}')
    for name in ("index.html", "a.png"):
        (tmp_path / name).write_text("of an older version")
    Place.folder(tmp_path).write(page(plots=["a"]))
    assert (tmp_path / "a.png").read_bytes() == b"png"


@pytest.mark.parametrize("name", ["index.html", "report.json", "a.svg"])
def test_place__refuses_what_is_not_its_own(page, tmp_path, name):
    (tmp_path / name).write_text('{"kind": "letter"}')
    with pytest.raises(DscError, match="is no part of a dsc test; it is not overwritten"):
        Place.folder(tmp_path).write(page(plots=["a"]))
    assert names_in(tmp_path) == {name}


def test_place__a_page_is_there_only_with_all_of_it(page, tmp_path, monkeypatch):
    place = Place.folder(tmp_path)
    place.write(page(plots=["a", "b"], n=1))
    from dsc.report import render

    def stopped(path, content, write=render.write_whole):
        if path.name == "b.png":
            raise OSError("no space")
        write(path, content)

    with monkeypatch.context() as patched:
        patched.setattr(render, "write_whole", stopped)
        with pytest.raises(DscError, match="the report cannot be written: no space"):
            place.write(page(plots=["a", "b"], n=2))
    assert "index.html" not in names_in(tmp_path)
    place.write(page(plots=["a", "b"], n=3))
    assert "index.html" in names_in(tmp_path)


def test_place__facts_are_json_that_anyone_reads(page, tmp_path):
    with pytest.raises(ValueError, match="JSON"):
        Place.folder(tmp_path / "new").write(page(n=float("nan")))
    assert not (tmp_path / "new").exists()
