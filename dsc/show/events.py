"""What happens while work goes on, and the meter that says how far it is.

An event knows how it is shown: as a line of a log, as a bar, as a card. So whatever shows events
need not know where they come from.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from dsc.show.card import Card

PERIOD = 0.5  # seconds between two pulses, on average of any three

Listener = Callable[[Any], None]


@dataclass(frozen=True)
class Event:
    """Something that happened; by default nothing of it is shown."""

    line_every: ClassVar[float] = 0.0  # seconds between two lines of this kind in a log, at least
    is_kept: ClassVar[bool] = True  # whether the log of a run has it

    @property
    def is_last(self) -> bool:
        """Whether a bar ends with it."""
        return True

    def line(self) -> str:
        """One line for a log."""
        return ""

    def bar(self) -> tuple[float, str] | None:
        """The share that is done, and what is said beside it."""
        return None

    def card(self) -> Card | None:
        """What a card shows from now on."""
        return None


@dataclass(frozen=True)
class Place(Event):
    """Where the work is done."""

    text: str  # such as "2 threads of this process"

    def line(self) -> str:
        """One line for a log."""
        return f"running on {self.text}"


@dataclass(frozen=True)
class Notice(Event):
    """Something that people should know, though the work goes on."""

    text: str

    def line(self) -> str:
        """One line for a log."""
        return self.text


@dataclass(frozen=True)
class Stage:
    """What some tasks are for."""

    name: str  # such as "iteration 3 of 10"
    n_patches: int  # that all of them go through together
    index: int = 0  # stages alike that came before it, and how many there are
    total: int = 1


@dataclass(frozen=True)
class Pulse(Event):
    """A sign of life: how far the tasks of a stage are. It comes at most twice a second."""

    stage: Stage
    done: int  # patches
    seconds: float  # since the stage began

    is_kept: ClassVar[bool] = False

    @property
    def is_last(self) -> bool:
        """Whether a bar ends with it."""
        return False

    @property
    def patches_per_second(self) -> float:
        """The pace of this stage so far."""
        return self.done / max(self.seconds, 1e-9)

    @property
    def seconds_left(self) -> float | None:
        """Until this stage and those alike that follow are done; None before the first patch."""
        if not self.done:
            return None
        stage = self.stage
        passes = stage.total - stage.index - self.done / max(1, stage.n_patches)
        return passes * stage.n_patches / max(self.patches_per_second, 1e-9)

    def bar(self) -> tuple[float, str]:
        """The share that is done, and what is said beside it."""
        stage, remaining = self.stage, self.seconds_left
        text = stage.name
        if remaining is not None:
            text += f": {self.patches_per_second:,.0f} patches/s, {duration(remaining)} left"
        return (stage.index + self.done / max(1, stage.n_patches)) / stage.total, text


class Meter:
    """Tells listeners what happens, and how far the work is: at most two pulses in a second."""

    def __init__(self, *listeners: Listener) -> None:
        self.listeners = listeners
        self._last = [-float("inf"), -float("inf")]  # when the last two pulses came
        self._began = 0.0
        self._stage = Stage("", 0)

    def __call__(self, event: Any) -> None:
        """Hand an event to all listeners."""
        for listener in self.listeners:
            listener(event)

    def begin(self, stage: Stage) -> None:
        """Say that a stage begins."""
        self._stage, self._began = stage, time.perf_counter()
        self.show(0)

    def show(self, done: int) -> None:
        """Say that so many patches of the stage are done, unless it was said just now."""
        now = time.perf_counter()
        if self.listeners and now - self._last[0] >= 2 * PERIOD:
            self._last[:] = self._last[1], now
            self(Pulse(self._stage, done, now - self._began))

    def close(self) -> None:
        """Say that nothing more goes on."""
        for listener in self.listeners:
            if hasattr(listener, "close"):
                listener.close()

    def also(self, listeners: Sequence[Listener]) -> Meter:
        """A meter that tells some more, and them first, no more often than this one would."""
        meter = Meter(*listeners, *self.listeners)
        meter._last = self._last
        return meter


def percent(share: float) -> str:
    """A share for people.

    Examples
    --------
    >>> percent(0.02653), percent(0.4), percent(float("nan"))
    ('2.65 %', '40 %', 'an unknown share')
    """
    return "an unknown share" if math.isnan(share) else f"{100 * share:.3g} %"


def duration(seconds: float) -> str:
    """A time for people.

    Examples
    --------
    >>> duration(7.4), duration(200), duration(9000), duration(400_000)
    ('7 s', '3 min', '2.5 h', '4.6 days')
    """
    for limit, unit, name in ((120, 1, "s"), (7200, 60, "min")):
        if seconds < limit:
            return f"{seconds / unit:.0f} {name}"
    return f"{seconds / 3600:.1f} h" if seconds < 172_800 else f"{seconds / 86_400:.1f} days"
