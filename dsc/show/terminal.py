"""Progress of commands, on stderr: a bar on a terminal, lines in a log."""

from __future__ import annotations

import sys
import time
from typing import Any

from dsc.show.events import Event, Place


class Terminal:
    """Shows events: a bar that is rewritten, or one plain line for every round in a log.

    Parameters
    ----------
    lines_of
        The kinds of events that have lines of their own; a bar shows all kinds.
    is_brief
        Whether a line says of a round what a bar says: no numbers in units that people do not know.
    """

    def __init__(
        self, lines_of: tuple[type[Event], ...] = (Event,), is_brief: bool = False
    ) -> None:
        self.lines_of, self.is_brief = lines_of, is_brief
        self._place = ""  # that was said last
        self._bar: Any = None
        self._last_line: dict[type[Event], float] = {}

    def __call__(self, event: Event) -> None:
        """Show one event."""
        bar = event.bar() if sys.stderr.isatty() else None
        if bar is not None:
            self._draw(*bar)
        if event.is_last or not sys.stderr.isatty():
            self._write(event)

    def close(self) -> None:
        """Take the bar away: nothing more goes on."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def _draw(self, share: float, text: str) -> None:
        if self._bar is None:
            self._bar = _new_bar()
            self._bar.add_task("", total=1.0)
            self._bar.start()
        self._bar.update(self._bar.task_ids[0], completed=share, description=text)

    def _write(self, event: Event) -> None:
        now, kind = time.monotonic(), type(event)
        waits = not event.is_last and now - self._last_line.get(kind, -1e9) < event.line_every
        if waits or not isinstance(event, self.lines_of) or not (line := event.line()):
            return
        if isinstance(event, Place):
            if line == self._place:
                return
            self._place = line
        if self.is_brief and (bar := event.bar()) is not None:
            line = bar[1]
        self._last_line[kind] = -1e9 if event.is_last else now
        self.close()
        sys.stderr.write(line + "\n")
        sys.stderr.flush()


def _new_bar() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn

    return Progress(
        SpinnerColumn(),
        BarColumn(bar_width=24),
        TaskProgressColumn(),
        TextColumn("{task.description}", markup=False),
        console=Console(stderr=True),
        refresh_per_second=4,
        transient=True,
    )
