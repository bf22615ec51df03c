"""The live view of a run folder that another process trains: in a notebook, or as a page."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

from dsc.dictionary import Run
from dsc.errors import DscError
from dsc.report.render import render_template
from dsc.show import Card, NotebookCard, in_notebook

EVERY = 1.0  # seconds between two looks
MOST_SETTINGS = 24  # of a sweep, the best ones

LOOPBACK = ("127.0.0.1", "localhost", "::1")


def watch(run: str | PathLike[str], follow: bool = True) -> None:
    """Show a run folder while another process, on this or another machine, trains it.

    In a notebook this is the card that `dsc.learn` shows; elsewhere it is a line whenever something
    is new. It goes on until the run is finished; interrupt it when you have seen enough.

    Parameters
    ----------
    run
        The folder; it may be there later.
    follow
        False shows what is there now, and returns.
    """
    path = Path(run)
    draw: Any = NotebookCard().draw if in_notebook() else _Lines().draw
    while True:
        card = watch_card(path)
        draw(card)
        if not follow or _is_finished(path):
            return
        time.sleep(EVERY)


def watch_card(path: Path) -> Card:
    """Where a run stands, whatever state its folder is in."""
    try:
        run = Run(path)
        card = run.card()
        settings = [event for event in run.events() if event.get("event") == "setting"]
        return _with_settings(card, settings) if settings else card
    except (DscError, OSError) as error:
        return Card(str(path), alert=str(error))
    except (KeyError, TypeError, ValueError) as error:  # of a log that is not as we wrote it
        return Card(str(path), alert=f"the log of this run cannot be read: {error!r}")


def _with_settings(card: Card, settings: list[dict[str, Any]]) -> Card:
    """The card of a sweep: its finished settings side by side, the best first."""
    results = [(event["result"], event["result"]["config"]) for event in settings]
    scored = [
        (sum(result["accuracy"]) / len(result["accuracy"]), config) for result, config in results
    ]
    scored.sort(key=lambda pair: -pair[0])
    cards = [
        Card(
            f"{config['method']}, M = {config['n_atoms']}, N = {_sizes(config['diameter'])}, "
            f"K = {config['sparsity']}",
            progress=(accuracy, f"accuracy {accuracy:.4f}"),
        )
        for accuracy, config in scored[:MOST_SETTINGS]
    ]
    total = settings[-1]["total"]
    numbers = {"settings": f"{len(settings)} of {total}"}
    return replace(card, numbers=numbers, cards=(*card.cards, *cards))


def _sizes(diameter: int | list[int]) -> str:
    """One diameter, as in logs of earlier versions, or several, for people."""
    return " + ".join(map(str, diameter if isinstance(diameter, list) else [diameter]))


def _is_finished(path: Path) -> bool:
    try:
        return Run(path).finished and not Run(path).is_worked_on
    except (DscError, OSError):
        return False


class _Lines:
    """Prints what is new in a card."""

    def __init__(self) -> None:
        self.last = ""

    def draw(self, card: Card) -> None:
        line = str(card)
        if line != self.last:
            print(line, flush=True)
        self.last = line


def make_server(run: str | PathLike[str], host: str = "127.0.0.1", port: int = 0) -> Any:
    """A server of the live page, bound and not yet running; its address is `server.url`."""
    from tornado.httpserver import HTTPServer
    from tornado.netutil import bind_sockets
    from tornado.web import Application

    path = Path(run)
    pages = {
        "/": ("text/html", partial(_page, path)),
        "/card": ("text/html", lambda: watch_card(path).html()),
        "/watch.js": ("text/javascript", _script),
    }
    application = Application()
    # a page of another site may not reach a loopback server under a name of its own
    names = r"(127\.0\.0\.1|localhost|\[::1\])" if host in LOOPBACK else r".*"
    application.add_handlers(
        names, [(url, _handler(), {"page": page}) for url, page in pages.items()]
    )
    try:
        sockets = bind_sockets(port, host)
    except OSError as error:
        raise DscError(f"cannot listen on {host}:{port}: {error}: choose another --port") from error
    server: Any = HTTPServer(application)
    server.add_sockets(sockets)
    shown = f"[{host}]" if ":" in host else host
    server.url = f"http://{shown}:{sockets[0].getsockname()[1]}/"
    return server


def _handler() -> Any:
    from tornado.web import RequestHandler

    class Handler(RequestHandler):
        """Answers with a page."""

        def initialize(self, page: Any) -> None:
            self.kind, self.make = page

        def get(self) -> None:
            self.set_header("Content-Type", f"{self.kind}; charset=utf-8")
            self.set_header("Cache-Control", "no-store")
            self.write(self.make())

    return Handler


def _page(path: Path) -> str:
    return render_template(
        "watch.html", title=f"{path.resolve().name}: live", card=watch_card(path)
    )


def _script() -> str:
    return Path(__file__).with_name("watch.js").read_text(encoding="utf-8")
