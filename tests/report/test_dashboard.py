"""Pages of the Dask dashboard, in a browser: listed, quiet, and full once something is learned."""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack, contextmanager
from urllib.request import urlopen

import dask
import numpy as np
import pytest
from distributed import Client, LocalCluster

from dsc.dictionary import Problem, advance, make_problem
from dsc.dictionary.config import LearnConfig
from dsc.engine import open_engine
from dsc.engine.dashboard import PAGES, messages
from dsc.engine.workers import TOPIC

EVIL = ("<script>alert(1)</script>", '"><img src=x onerror=alert(1)>')
PATIENCE = 60_000  # milliseconds


@pytest.fixture(scope="module")
def client():
    """A cluster whose scheduler has the pages, as its documentation says."""
    with (
        dask.config.set({"distributed.scheduler.preload": ["dsc.engine.dashboard"]}),
        LocalCluster(
            n_workers=1,
            threads_per_worker=1,
            processes=False,
            host="127.0.0.1",
            protocol="tcp",
            dashboard_address="127.0.0.1:0",
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def address(client):
    return client.dashboard_link.removesuffix("/status")


@contextmanager
def opened(browser, url):
    """(tab, messages) of a page."""
    context = browser.new_context(viewport={"width": 900, "height": 700})
    context.set_default_timeout(PATIENCE)
    tab = context.new_page()
    messages = []
    tab.on("console", lambda one: messages.append(one.text) if one.type == "error" else None)
    tab.on("pageerror", lambda error: messages.append(str(error)))
    tab.on("dialog", lambda dialog: (messages.append(dialog.message), dialog.dismiss()))
    tab.goto(url, wait_until="load")
    tab.wait_for_function("() => window.Bokeh && Bokeh.documents.length > 0")
    try:
        yield tab, messages
    finally:
        context.close()


def learn_some(client, names=("",), n_iterations=2):
    """Learn a dictionary for every name on the cluster."""
    patches = np.random.default_rng(0).random((900, 7, 7), np.float32)
    config = LearnConfig(n_atoms=3, sparsity=2, n_iterations=n_iterations, n_angles=16)
    problem = make_problem(patches, config)
    problems = [Problem(problem.source, problem.basis, config, name) for name in names]
    with open_engine(client, progress=False) as engine:
        return advance(problems, engine)


CURVES = """() => Bokeh.documents.flatMap(d => [...d._all_models.values()])
  .filter(m => m.type === "ColumnDataSource").map(m => m.data.y).filter(y => y.length)"""


def test_pages__are_listed_among_those_of_dask(address):
    with urlopen(f"{address}/individual-plots.json", timeout=30) as answer:
        listed = json.load(answer).values()
    assert set(PAGES) <= set(listed)
    assert len(PAGES) == 3


def test_pages__open_quietly_also_before_anything_was_learned(browser, address):
    with ExitStack() as stack:
        tabs = [stack.enter_context(opened(browser, address + page)) for page in PAGES]
        tabs[0][0].wait_for_timeout(700)  # some looks at the events
        for tab, errors in tabs:
            assert tab.title() == "dsc"
            assert errors == []


def test_pages__fill_while_they_are_open(browser, client, address):
    with (
        opened(browser, f"{address}/individual-dsc-error") as (error, error_messages),
        opened(browser, f"{address}/individual-dsc-atoms") as (atoms, atoms_messages),
        opened(browser, f"{address}/individual-dsc-pace") as (pace, pace_messages),
    ):
        learn_some(client, n_iterations=3)
        error.wait_for_function(f"() => ({CURVES})().some(y => y[0].length === 4)")
        atoms.wait_for_selector("img")
        assert atoms.get_by_text("3 atoms of 7 × 7 pixels").is_visible()
        assert atoms.locator("polyline").count() == 1
        pace.wait_for_function(f"() => ({CURVES})().some(y => y.every(one => one > 0))")
        learn_some(client, n_iterations=1)  # another run takes its place
        error.wait_for_function(f"() => ({CURVES})().some(y => y[0].length === 2)")
        assert error_messages == atoms_messages == pace_messages == []


def test_pages__names_of_classes_stay_words(browser, client, address):
    learn_some(client, (*EVIL, "plain"))
    with (
        opened(browser, f"{address}/individual-dsc-atoms") as (tab, errors),
        opened(browser, f"{address}/individual-dsc-error") as (error, error_errors),
    ):
        tab.wait_for_selector("img")
        for name in (*EVIL, "plain"):
            assert tab.get_by_text(name, exact=True).is_visible()
        assert tab.locator(".dsc-card img").count() == 3
        assert tab.locator(".dsc-card script").count() == 0
        error.wait_for_function(f"() => ({CURVES})().some(y => y.length === 3)")
        tab.wait_for_timeout(700)
        assert errors == error_errors == []


def test_pages__events_of_others_under_the_same_name_break_nothing(browser, client, address):
    learn_some(client)
    for stranger in ("words", {"a": 1}, None, 3):
        client.log_event(TOPIC, stranger)
    with opened(browser, f"{address}/individual-dsc-atoms") as (tab, errors):
        tab.wait_for_selector("img")
        assert errors == []


def test_messages__are_those_of_the_last_run(client):
    learn_some(client)
    learn_some(client)
    found = client.run_on_scheduler(lambda dask_scheduler: messages(dask_scheduler))
    assert len({message["run"] for _, message in found}) == 1
    assert found[-1][1]["curves"]


@pytest.mark.parametrize("missing", ["the name", "the module"])
def test_add_pages__without_a_place_for_them_says_no_and_breaks_nothing(monkeypatch, missing):
    from distributed.dashboard import scheduler

    from dsc.engine.dashboard import add_pages

    assert add_pages()
    if missing == "the name":
        monkeypatch.delattr(scheduler, "applications")
    else:
        monkeypatch.setitem(sys.modules, "distributed.dashboard.scheduler", None)
    assert add_pages() is False
