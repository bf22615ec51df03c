"""The live page of a run: the command, its server, and what a browser shows while others train."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from skimage import data

import dsc
from dsc.cli.main import main
from dsc.dictionary import Run, RunTarget
from dsc.dictionary.cards import SILENCE
from dsc.engine import open_engine
from dsc.experiments import write_suite
from dsc.report import make_server
from dsc.report.watch import watch_card
from dsc.texture import (
    Sweep,
    SweepGrid,
    TextureConfig,
    Validation,
    fit_texture,
    read_inputs,
    run_sweep,
)

COMMAND = str(Path(sys.executable).parent / "dsc")
WIDTHS = (1280, 400)
SCHEMES = ("light", "dark")
KINDS = ("dictionary", "texture", "sweep", "evil folder", "missing")
PATIENCE = 60_000  # milliseconds, on a machine that is busy with other things
EVIL = ("<script>alert(1)</script>", '"><img src=x onerror=alert(1)>')


@contextmanager
def started(*words):
    """A command that is ended with the test."""
    process = subprocess.Popen(
        [COMMAND, *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        process.wait(30)
        process.stdout.close()


@contextmanager
def watching(run, *words):
    """(process, address) of `dsc watch`."""
    with started("watch", run, "--port", 0, *words) as process:
        line = process.stdout.readline()
        found = re.search(r"http://\S+/", line)
        assert found, line + process.stdout.read()
        yield process, found[0]


@contextmanager
def opened(browser, url):
    """(tab, requests, messages) of the page."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(PATIENCE)
    tab = context.new_page()
    requests, messages = [], []
    tab.on("request", lambda request: requests.append(request.url))
    tab.on("console", lambda message: messages.append(message.text))
    tab.on("pageerror", lambda error: messages.append(str(error)))
    tab.on("dialog", lambda dialog: (messages.append(dialog.message), dialog.dismiss()))
    tab.goto(url, wait_until="load")
    try:
        yield tab, requests, messages
    finally:
        context.close()


def answer_of(url, path="/", **headers):
    """(status, text) of one request."""
    connection = http.client.HTTPConnection(*re.search(r"//(.*):(\d+)", url).groups(), timeout=30)
    connection.request("GET", path, headers=headers)
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    return response.status, text


def wait_for(tab, text):
    tab.wait_for_function("t => document.body.innerText.includes(t)", arg=text)


@pytest.fixture(scope="module")
def patches(tmp_path_factory):
    """Patches that a training goes through in about half a second."""
    url = tmp_path_factory.mktemp("watched") / "patches.zarr"
    image = np.asarray(data.camera()[100:260, 100:260], np.float32) / 255
    dsc.extract_patches(image, url, dsc.PatchConfig(diameter=9, unit=True))
    return url


def training(patches, run, *words):
    options = ["--n-atoms", 24, "--sparsity", 4, "--n-iterations", 400, "--seed", 1]
    return ["learn", patches, "--out", run, *options, *words]


def points(tab):
    return tab.locator("polyline").first.get_attribute("points").split()


SEE = """([curve, atoms]) => {
  const line = document.querySelector("polyline"), image = document.querySelector("img");
  return line && image && line.getAttribute("points").split(" ").length > curve
    && image.src !== atoms;
}"""


def see_more(tab):
    """Wait until the curve is longer and the atoms are others."""
    n_points, image = len(points(tab)), tab.locator("img").first.get_attribute("src")
    tab.wait_for_function(SEE, arg=[n_points, image])


def is_quiet(url, requests, messages):
    assert messages == []
    outside = [one for one in requests if not one.startswith((url, "data:"))]
    assert outside == []


def fits_everywhere(tab, name):
    """Nothing sticks out on a desk and on a phone, and the paper is that of the scheme."""
    for width, scheme in product(WIDTHS, SCHEMES):
        tab.set_viewport_size({"width": width, "height": 900})
        tab.emulate_media(color_scheme=scheme)
        if folder := os.environ.get("DSC_SHOTS"):
            tab.screenshot(path=f"{folder}/{name}-{width}-{scheme}.png", full_page=True)
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
        wide = tab.evaluate(
            "w => [...document.body.querySelectorAll('*')].filter("
            "e => e.getBoundingClientRect().right > w + 1).map(e => e.outerHTML)",
            width,
        )
        assert wide == []
        paper = tab.evaluate("getComputedStyle(document.body).backgroundColor")
        assert paper == {"light": "rgb(255, 255, 255)", "dark": "rgb(23, 25, 28)"}[scheme]


# --- a real training ----------------------------------------------------------------------------


def test_watch__follows_a_training_that_is_killed_damaged_and_resumed(browser, patches, tmp_path):
    run = tmp_path / "run"
    with watching(run) as (server, url), opened(browser, url) as (tab, requests, messages):
        wait_for(tab, "there is no run here yet")
        with started(*training(patches, run)) as trainer:
            tab.wait_for_selector("polyline", state="attached")
            see_more(tab)
            see_more(tab)
            wait_for(tab, "running on")
            wait_for(tab, " patches/s, ")
            fits_everywhere(tab, "training")
            assert trainer.poll() is None
            trainer.send_signal(signal.SIGKILL)
            trainer.wait(30)
        # the page is still there; nothing comes, and after a while it says so
        assert len(points(tab)) > 2
        pulse = json.loads((run / "progress.json").read_text())
        old = {**pulse, "time": time.time() - SILENCE - 65}
        (run / "progress.json").write_text(json.dumps(old))
        wait_for(tab, "no sign of life for 2 min")
        # a damaged checkpoint
        last = [one for one in Run(run).checkpoints() if (one / "manifest.json").is_file()][-1]
        chunk = max(last.rglob("c/*"), key=lambda path: path.stat().st_size)
        whole = chunk.read_bytes()
        chunk.write_bytes(whole[: len(whole) // 2])
        wait_for(tab, "checkpoint cannot be read")
        fits_everywhere(tab, "damaged")
        chunk.write_bytes(whole)
        tab.wait_for_selector("polyline", state="attached")
        # a damaged mark
        mark = (run / "run.json").read_text()
        (run / "run.json").write_text(mark.replace('"format": 3', '"format": 99'))
        wait_for(tab, "run.json is damaged")
        (run / "run.json").write_text(mark)
        tab.wait_for_selector("polyline", state="attached")
        # and on it goes
        with started(*training(patches, run, "--resume")) as trainer:
            see_more(tab)
            assert trainer.poll() is None
            tab.wait_for_function("() => !document.body.innerText.includes('no sign of life')")
        is_quiet(url, requests, messages)
        assert tab.locator("#lost").is_hidden()
        # nobody answers any more
        server.send_signal(signal.SIGTERM)
        assert server.wait(30) == 0
        tab.wait_for_selector("#lost", state="visible")
        assert "Nobody answers" in tab.inner_text("#lost")
        fits_everywhere(tab, "lost")
        assert len(points(tab)) > 2  # what was known stays


# --- what is shown of every kind of run ---------------------------------------------------------


@pytest.fixture(scope="module")
def suite(tmp_path_factory):
    return write_suite(tmp_path_factory.mktemp("drawn") / "s", n_train=3, n_test=1, size=48)


@pytest.fixture(scope="module")
def runs(small_run, suite, tmp_path_factory):
    """Finished runs by kind; one with names that are meant to do harm."""
    folder = tmp_path_factory.mktemp("kinds")
    drawn = read_inputs(suite)
    names = dict(zip(sorted(set(drawn.labels)), EVIL, strict=False))
    labels = tuple(names.get(label, label) for label in drawn.labels)
    evil = replace(drawn, labels=labels)
    config = TextureConfig(n_atoms=3, diameter=7, n_iterations=2, patches_per_image=60, stride=3)
    with open_engine("threads", progress=False) as engine:
        fit_texture(evil, config, engine, RunTarget(folder / "texture"))
        grid = SweepGrid(n_atoms=(2, 4), diameter=(7,), sparsity=(1,), method=("rotational",))
        sweep = Sweep(config, grid, Validation(held_out=0.5, repeats=2))
        run_sweep(drawn, sweep, engine, RunTarget(folder / "sweep"))
    shutil.copytree(small_run[0], folder / EVIL[0].replace("/", ""))
    return {
        "dictionary": small_run[0],
        "texture": folder / "texture",
        "sweep": folder / "sweep",
        "evil folder": folder / EVIL[0].replace("/", ""),
        "missing": folder / "not-there-yet",
    }


@pytest.fixture(scope="module")
def pages(runs):
    """Addresses of the live page of every kind, served as `dsc watch` does, from a thread."""
    loop, addresses = asyncio.new_event_loop(), {}

    async def bind():
        servers = [make_server(path) for path in runs.values()]
        addresses.update({kind: one.url for kind, one in zip(runs, servers, strict=True)})
        return servers

    async def stop(servers):
        for server in servers:
            server.stop()
            await server.close_all_connections()

    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    servers = asyncio.run_coroutine_threadsafe(bind(), loop).result(60)
    yield addresses
    asyncio.run_coroutine_threadsafe(stop(servers), loop).result(60)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


@pytest.mark.parametrize("kind", KINDS)
def test_page__is_quiet_and_fits_for_every_kind_of_run(browser, pages, kind):
    with opened(browser, pages[kind]) as (tab, requests, messages):
        tab.wait_for_function("() => performance.getEntriesByName(location + 'card').length > 0")
        fits_everywhere(tab, kind)
        images = tab.evaluate("[...document.images].map(i => [i.complete, i.naturalWidth, i.alt])")
        assert all(all(image) for image in images)
        is_quiet(pages[kind], requests, messages)


def test_page__says_finished_and_has_no_bar(browser, pages):
    with opened(browser, pages["dictionary"]) as (tab, _, _):
        wait_for(tab, "finished")
        assert tab.locator(".dsc-progress").count() == 0
        assert tab.locator("img").count() == 1
        assert tab.locator("polyline").count() == 1


def test_page__says_that_there_is_no_run_yet(browser, pages):
    with opened(browser, pages["missing"]) as (tab, _, _):
        wait_for(tab, "there is no run here yet")


def test_page__shows_classes_side_by_side_under_their_names(browser, pages, runs):
    with opened(browser, pages["texture"]) as (tab, _, messages):
        wait_for(tab, "finished")
        titles = tab.locator(".dsc-cards h4").all_inner_texts()
        tops = tab.evaluate(
            "[...document.querySelectorAll('.dsc-cards > .dsc-part')]"
            ".map(e => e.getBoundingClientRect().top)"
        )
        assert tab.locator("script").count() == 1  # ours
        assert messages == []
    assert titles == Run(runs["texture"]).events()[0]["names"]
    assert set(EVIL) < set(titles)
    assert len(set(tops)) == 1


def test_page__shows_settings_side_by_side_the_best_first(browser, pages):
    with opened(browser, pages["sweep"]) as (tab, _, _):
        wait_for(tab, "finished")
        titles = tab.locator(".dsc-cards h4").all_inner_texts()
        words = tab.locator(".dsc-cards .dsc-progress p").all_inner_texts()
        wait_for(tab, "2 of 2")
    assert sorted(titles) == [f"rotational, M = {m}, N = 7, K = 1" for m in (2, 4)]
    scores = [float(text.removeprefix("accuracy ")) for text in words]
    assert scores == sorted(scores, reverse=True)


def test_page__shows_names_of_folders_as_they_are(browser, pages, runs):
    with opened(browser, pages["evil folder"]) as (tab, _, messages):
        wait_for(tab, "finished")
        assert runs["evil folder"].name in tab.inner_text("h1")
        assert runs["evil folder"].name in tab.inner_text("h4")
        assert tab.title() == f"{runs['evil folder'].name}: live"
        assert messages == []


def test_page__of_this_folder_has_its_name(small_run, monkeypatch):
    monkeypatch.chdir(small_run[0])
    assert watch_card(Path()).title.startswith("run: ")


# --- the server ---------------------------------------------------------------------------------


def test_server__listens_on_loopback_alone_by_default(pages):
    url = pages["missing"]
    assert url.startswith("http://127.0.0.1:")
    port = int(re.search(r":(\d+)/", url)[1])
    own = [
        info[4][0]
        for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)
        if not info[4][0].startswith("127.")
    ]
    for address in own:
        with socket.socket() as other:
            other.settimeout(5)
            assert other.connect_ex((address, port)) != 0


@pytest.mark.parametrize("path", ["/", "/card", "/watch.js"])
def test_server__answers_to_its_own_names_alone(pages, path):
    url = pages["missing"]
    port = re.search(r":(\d+)/", url)[1]
    for host in ("127.0.0.1", "localhost", f"127.0.0.1:{port}", f"localhost:{port}"):
        assert answer_of(url, path, Host=host)[0] == 200
    for host in ("evil.example", f"evil.example:{port}", "127.0.0.1.evil.example", "xlocalhost"):
        assert answer_of(url, path, Host=host)[0] == 404


@pytest.mark.parametrize(
    "path", ["/run.json", "/../run.json", "/card/../../etc/passwd", "/%2e%2e/"]
)
def test_server__has_no_other_pages(pages, path):
    assert answer_of(pages["dictionary"], path)[0] in (400, 404)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT], ids=["terminate", "ctrl-c"])
def test_command__ends_quietly_right_after_it_said_where_to_look(tmp_path, how):
    with watching(tmp_path) as (process, _):
        process.send_signal(how)
        assert process.wait(20) == 0
        assert process.stdout.read() == ""


def test_command__a_port_in_use_is_one_line(pages, tmp_path):
    port = re.search(r":(\d+)/", pages["missing"])[1]
    with started("watch", tmp_path, "--port", port) as process:
        text, _ = process.communicate(timeout=60)
    assert process.returncode == 2
    assert text.count("\n") == 1
    assert "--port" in text


@pytest.mark.parametrize("port", [-1, 65_536, 10**9])
def test_command__a_port_that_cannot_be_is_refused(tmp_path, port):
    result = CliRunner().invoke(main, ["watch", str(tmp_path), "--port", str(port)])
    assert result.exit_code == 2
    assert "0<=x<=65535" in result.output


# --- dsc.watch outside of a notebook ------------------------------------------------------------


def test_watch__without_following_prints_a_line(small_run, capfd):
    dsc.watch(small_run[0], follow=False)
    out, err = capfd.readouterr()
    assert out.count("\n") == 1
    assert "finished" in out
    assert err == ""


def test_watch__following_ends_with_the_run(small_run, capfd):
    dsc.watch(small_run[0])
    assert "finished" in capfd.readouterr().out


def test_watch__of_nothing_says_so(tmp_path, capfd):
    dsc.watch(tmp_path / "missing", follow=False)
    assert "there is no run here yet" in capfd.readouterr().out
