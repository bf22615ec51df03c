"""The pages in headless Chromium: first what holds for all, then the report of a run."""

from __future__ import annotations

import io
import json
import re
from contextlib import contextmanager

import numpy as np
import pytest
from PIL import Image

from dsc.report.render import look_up

WIDTHS = {"desktop": 1280, "phone": 400}
KINDS = ("learn", "demo", "experiment", "experiments")


@contextmanager
def opened(browser, page, width=1280, scheme="light"):
    """(tab, requests, messages) of the page."""
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    tab = context.new_page()
    requests, messages = [], []
    tab.on("request", lambda request: requests.append(request.url))
    tab.on("console", lambda message: messages.append(message.text))
    tab.on("pageerror", lambda error: messages.append(str(error)))
    tab.goto(page.as_uri(), wait_until="load")
    try:
        yield tab, requests, messages
    finally:
        context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS.values(), ids=WIDTHS)
@pytest.mark.parametrize("kind", KINDS)
def test_page__opens_quietly_from_disk_and_fits(browser, pages, kind, width, scheme):
    with opened(browser, pages[kind], width, scheme) as (tab, requests, messages):
        assert messages == []
        outside = [url for url in requests if not url.startswith(("file://", "data:"))]
        assert outside == []
        assert [url for url in requests if url.startswith("file://")] == [pages[kind].as_uri()]
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
        wide = tab.evaluate(
            "w => [...document.body.querySelectorAll('*')].filter(e => !e.closest('.scroll > *'))"
            ".filter(e => e.getBoundingClientRect().right > w + 1).map(e => e.outerHTML)",
            width,
        )
        assert wide == []
        paper = tab.evaluate("getComputedStyle(document.body).backgroundColor")
        assert paper == {"light": "rgb(255, 255, 255)", "dark": "rgb(23, 25, 28)"}[scheme]


@pytest.mark.parametrize("kind", KINDS)
def test_page__all_images_are_loaded_described_and_none_is_inverted(browser, pages, kind):
    with opened(browser, pages[kind], scheme="dark") as (tab, _, _):
        images = tab.evaluate(
            "[...document.images].map(i => [i.complete, i.naturalWidth, i.alt, i.clientWidth,"
            "!getComputedStyle(i).filter.includes('invert')])"
        )
    assert bool(images) == (kind != "experiments")
    assert all(all(image) for image in images)


def test_page__has_every_plot_atom_and_patch(browser, report):
    facts = report[1]
    n_triples = len(facts["sample"]["examples"]) + len(facts["sample"]["worst"])
    with opened(browser, report[0]) as (tab, _, _):
        n_images = tab.evaluate("document.images.length")
    assert n_images == 4 + facts["atoms"]["n_atoms"] + 3 * n_triples


def test_page__works_without_javascript(browser, report):
    context = browser.new_context(java_script_enabled=False)
    tab = context.new_page()
    tab.goto(report[0].as_uri())
    assert tab.get_by_text("Worst-coded patches").is_visible()
    assert tab.locator("script").count() == 0
    context.close()


def test_page__numbers_are_those_of_the_json(browser, report):
    page, facts = report
    with opened(browser, page) as (tab, _, _):
        shown = tab.evaluate(
            "[...document.querySelectorAll('[data-name]')]"
            ".map(e => [e.dataset.name, e.dataset.value, e.textContent])"
        )
    for name, exact, text in shown:
        value = look_up(facts, name)
        assert json.loads(exact) == value, name
        assert says(text, value), (name, value, text)
    names = {name for name, _, _ in shown}
    assert {f"history.{i}" for i in range(len(facts["history"]))} <= names
    assert {f"atoms.count.{i}" for i in range(facts["atoms"]["n_atoms"])} <= names
    assert {"error.last", "time.first", "time.patches_per_second", "patches.fingerprint"} <= names
    assert {"sample.n_patches", "sample.worst.0.error", "numerics.cpu", "run.dsc"} <= names


def says(text, value):
    """Whether a text shows a value, to the digits that it has."""
    if value is None or isinstance(value, bool):
        return text == {None: "none", True: "yes", False: "no"}[value]
    if isinstance(value, str):
        return text == value
    scale = 100 if text.endswith(" %") else 1
    plain = text.removesuffix(" %").replace(",", "")
    digits = plain.split("e")[0].partition(".")[2]
    exponent = int(plain.split("e")[1]) if "e" in plain else 0
    if isinstance(value, int) and scale == 1:
        return plain == str(value)
    half = 0.5000001 * 10.0 ** (exponent - len(digits))
    return abs(float(plain) - scale * value) <= half


def test_page__shows_no_number_that_is_not_in_the_json(browser, report):
    with opened(browser, report[0]) as (tab, _, _):
        rest = tab.evaluate(
            "() => { document.querySelectorAll('[data-name], td.index, style')"
            ".forEach(e => e.remove()); return document.body.textContent }"
        )
    assert re.findall(r"\d+", rest.replace("SHA-256", "")) == []


@pytest.mark.parametrize("kind", ["learn", "demo", "experiment"])
def test_page__plots_are_readable_in_light_and_dark(browser, pages, kind):
    for scheme in ("light", "dark"):
        with opened(browser, pages[kind], scheme=scheme) as (tab, _, _):
            plots = tab.locator("figure.plot:not(.natural) img:not([alt*=polar])").all()
            assert plots
            for plot in plots:
                image = Image.open(io.BytesIO(plot.screenshot())).convert("L")
                label = np.asarray(image, np.float64)[:, : image.width // 20]  # of the y axis
                paper = np.median(label)
                assert paper < 60 if scheme == "dark" else paper > 200
                ink = label.max() if scheme == "dark" else label.min()
                assert abs(ink - paper) > 130


@pytest.mark.parametrize("width", WIDTHS.values(), ids=WIDTHS)
def test_demo__what_is_compared_stands_side_by_side(browser, pages, width):
    with opened(browser, pages["demo"], width, "light") as (tab, _, _):
        tops = tab.evaluate(
            "[...document.querySelectorAll('.first-wide figure')]"
            ".map(figure => figure.getBoundingClientRect().top)"
        )
        lines = tab.evaluate(
            "[...document.querySelectorAll('.first-wide figcaption [data-name]')]"
            ".map(value => value.getClientRects().length)"
        )
    assert tops[0] <= tops[1] == tops[2] < tops[3] == tops[4]
    assert set(lines) == {1}  # no value is broken
