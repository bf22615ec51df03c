"""What happens in a run: the events of its log, which `progress` functions get too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from dsc.dictionary.cards import states_card
from dsc.dictionary.loop import Problem, State
from dsc.show import Card, Event, duration

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
    mse
        Mean squared error per pixel before the update, the mean of all dictionaries.
    seconds
        Time of the pass.
    patches_per_second
        Patches of all dictionaries in that time.
    problems, states
        What is learned, and where it stands after the pass; the log of a run leaves them out.
    """

    iteration: int
    n_iterations: int
    finished: bool
    mse: float
    seconds: float
    patches_per_second: float
    problems: Sequence[Problem] = field(default=(), repr=False, compare=False, metadata=UNLOGGED)
    states: Sequence[State] = field(default=(), repr=False, compare=False, metadata=UNLOGGED)

    @property
    def is_last(self) -> bool:
        """Whether a bar ends with it."""
        return self.finished

    def line(self) -> str:
        """One line for a log."""
        return self.bar()[1]

    def bar(self) -> tuple[float, str]:
        """The share that is done, and what is said beside it."""
        total = self.n_iterations + 1
        done = total if self.finished else self.iteration
        name = "final pass" if self.finished else f"iteration {self.iteration}"
        text = (
            f"{name} of {self.n_iterations}: mse {self.mse:.6g}, "
            f"{self.patches_per_second:,.0f} patches/s"
        )
        if not self.finished:
            text += f", {duration((total - done) * self.seconds)} left"
        return done / total, text

    def card(self) -> Card:
        """What a card shows from now on."""
        bases, names = ([getattr(p, name) for p in self.problems] for name in ("basis", "name"))
        return states_card(self.states, bases, names if any(names) else ())


@dataclass(frozen=True)
class End(Event):
    """A run is finished."""

    mse: float  # mean squared error per pixel, the mean of all dictionaries
    atoms_sha256: str  # hash of the atoms, of all dictionaries together where there are many
