"""What happens in a run: the events of its log, which `progress` functions get too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dsc.dictionary.cards import states_card
from dsc.dictionary.loop import Problem, State
from dsc.show import Card, Event, duration, percent

UNLOGGED = {"is_logged": False}  # of fields that stay out of a log


@dataclass(frozen=True)
class Start(Event):
    """A run begins, or goes on."""

    iteration: int  # updates done before
    plan: dict[str, Any]  # how the patches are cut into tasks
    identity: dict[str, dict[str, Any]]  # what decides the result
    place: str  # where tasks run
    names: list[str]  # of the dictionaries, where there are many


@dataclass(frozen=True)
class Iteration(Event):
    """One pass over all patches is done.

    Attributes
    ----------
    iteration
        Updates done.
    n_iterations
        Updates that were asked for.
    finished
        Whether this was the final pass, which only codes.
    share
        Share of the energy of all patches that is left before the update.
    mse
        Mean squared error per pixel, the mean of all dictionaries.
    seconds
        Time of the pass.
    patches_per_second
        Patches of all dictionaries in that time.
    notes
        What is odd about what was learned, one line each; none before the final pass.
    problems, states
        What is learned, and where it stands after the pass; the log of a run leaves them out.
    """

    iteration: int
    n_iterations: int
    finished: bool
    share: float
    mse: float
    seconds: float
    patches_per_second: float
    notes: Sequence[str] = ()
    problems: Sequence[Problem] = field(default=(), repr=False, compare=False, metadata=UNLOGGED)
    states: Sequence[State] = field(default=(), repr=False, compare=False, metadata=UNLOGGED)

    @property
    def is_last(self) -> bool:
        """Whether a bar ends with it."""
        return self.finished

    def line(self) -> str:
        """One line for a log, and one more for each note."""
        text = self._text(f"{percent(self.share)} of the energy left, mse {self.mse:.6g}")
        return "\n".join([text, *(f"note: {note}" for note in self.notes)])

    def bar(self) -> tuple[float, str]:
        """The share that is done, and what is said beside it."""
        return self._done / (self.n_iterations + 1), self._text(f"{percent(self.share)} left")

    @property
    def _done(self) -> int:
        """Passes done."""
        return self.n_iterations + 1 if self.finished else self.iteration

    def _text(self, error: str) -> str:
        """Which pass it was, its error, its pace, and the time to go."""
        name = "final pass" if self.finished else f"iteration {self.iteration}"
        pace = f"{self.patches_per_second:,.0f} patches/s"
        text = f"{name} of {self.n_iterations}: {error}, {pace}"
        if self.finished:
            return text
        return f"{text}, {duration((self.n_iterations + 1 - self._done) * self.seconds)} to go"

    def card(self) -> Card:
        """What a card shows from now on."""
        bases, names = ([getattr(p, name) for p in self.problems] for name in ("basis", "name"))
        card = states_card(self.states, bases, names if any(names) else ())
        return replace(card, alert="; ".join(self.notes))


@dataclass(frozen=True)
class End(Event):
    """A run is finished."""

    share: float  # share of the energy of all patches that is left
    mse: float  # mean squared error per pixel, the mean of all dictionaries
    atoms_sha256: str  # hash of the atoms, of all dictionaries together where there are many
