"""What commands show on stderr while they work."""

from __future__ import annotations

import sys
import time
from typing import Any

import click

from dsc.dictionary import Iteration
from dsc.texture import Labelling, Setting

LINE_EVERY = 20  # seconds between two lines of a log while pictures are labelled


class Progress:
    """Reports events: one line that is rewritten on a terminal, else a line each.

    Parameters
    ----------
    settings
        Whether finished settings of a sweep are reported; what goes on inside of them is shown on
        a terminal only.
    """

    def __init__(self, settings: bool = False) -> None:
        self.terminal = sys.stderr.isatty()
        self.settings = settings
        self.began = time.perf_counter()
        self.n_passes = 0
        self.last_line = -float("inf")

    def __call__(self, event: Any) -> None:
        """Show one event."""
        if isinstance(event, Setting):
            self._setting(event)
        elif self.settings and not self.terminal:
            return
        elif isinstance(event, Iteration):
            self._iteration(event)
        elif isinstance(event, Labelling):
            self._labelling(event)

    def _iteration(self, event: Iteration) -> None:
        self.n_passes += 1
        total = event.n_iterations + 1
        done = total if event.finished else event.iteration
        pace = (time.perf_counter() - self.began) / self.n_passes
        name = "final pass" if event.finished else f"iteration {event.iteration}"
        self._show(
            done / total,
            f"{name} of {event.n_iterations}: mse {event.mse:.6g}, "
            f"{event.patches_per_second:,.0f} patches/s, {max(0, total - done) * pace:.0f} s left",
            event.finished,
        )

    def _labelling(self, event: Labelling) -> None:
        finished = event.done == event.total
        if not self.terminal:
            if not finished and event.seconds - self.last_line < LINE_EVERY:
                return
            self.last_line = -float("inf") if finished else event.seconds
        self._show(
            event.done / event.total,
            f"labelled {event.done:,} of {event.total:,} pictures: "
            f"{event.patches_per_second:,.0f} patches/s, {event.seconds_left:.0f} s left",
            finished,
        )

    def _setting(self, event: Setting) -> None:
        config = event.result.config
        self._show(
            event.index / event.total,
            f"setting {event.index} of {event.total}: {config.method}, M = {config.n_atoms}, "
            f"N = {config.diameter}, K = {config.sparsity}: accuracy {event.result.mean:.4f}, "
            f"{event.result.seconds:.0f} s",
            finished=True,
        )

    def _show(self, fraction: float, text: str, finished: bool) -> None:
        if not self.terminal:
            click.echo(text, err=True)
            return
        width = 24
        filled = round(width * fraction)
        bar = "█" * filled + "░" * (width - filled)
        end = "\n" if finished else ""
        click.echo(f"\r\x1b[2K{bar} {text}{end}", nl=False, err=True)
