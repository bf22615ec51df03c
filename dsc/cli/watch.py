"""`dsc watch`."""

from __future__ import annotations

import asyncio
import signal
from contextlib import suppress

import click

from dsc.cli.options import say
from dsc.files import local_path


@click.command()
@click.argument("run", metavar="RUN")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=8899,
    show_default=True,
    help="Port of the page; 0 for a free one.",
)
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on. Any but loopback shows the run to everyone who can reach it.",
)
def watch(run: str, port: int, host: str) -> None:
    """Serve a live page of the run folder RUN, whoever trains it, until you press Ctrl-C."""
    with suppress(KeyboardInterrupt):
        asyncio.run(_serve(str(local_path(run)), port, host))


async def _serve(run: str, port: int, host: str) -> None:
    from dsc.report import make_server

    ended = asyncio.Event()
    for one in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(one, ended.set)
    server = make_server(run, host, port)
    say(f"look at {server.url}, end with Ctrl-C")
    await ended.wait()
    server.stop()
