"""Cards of dictionaries: the atoms as they are, or as they form."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsc.basis import SteerableBasis
from dsc.dictionary.loop import State, share_left
from dsc.errors import DscError
from dsc.show import COLUMNS, Card, atom_shades, duration, mosaic, percent

MOST_ATOMS = 50  # on a card
MOST_CARDS = 48  # side by side
SILENCE = 60  # seconds after which a card says that there is no sign of life


def state_card(state: State, basis: SteerableBasis) -> Card:
    """One dictionary: error, atoms, use."""
    n_atoms, side = len(state.atoms), basis.diameter
    numbers = {}
    is_known = not math.isnan(state.share)  # not of what an earlier version has made
    if state.history:
        numbers = {
            **({"energy left": percent(state.share)} if is_known else {}),
            "error per pixel": f"{state.history[-1]:.4g}",
            "unused atoms": f"{(state.count == 0).sum()}",
        }
    return Card(
        f"{n_atoms} atoms of {side} × {side} pixels",
        numbers=numbers,
        curve=[100 * share_left(mse, state.energy) for mse in state.history]
        if is_known
        else state.history,
        curve_unit=" %" if is_known else "",
        image=_atoms(state, basis, MOST_ATOMS),
        bars=state.count.tolist(),
    )


def states_card(
    states: Sequence[State], bases: Sequence[SteerableBasis], names: Sequence[str] = ()
) -> Card:
    """One dictionary, or many side by side under their names."""
    if len(states) == 1:
        return state_card(states[0], bases[0])
    titles = list(names) or [f"dictionary {index}" for index in range(len(states))]
    parts = [
        replace(state_card(state, basis), title=title, image=_atoms(state, basis, COLUMNS), bars=())
        for state, basis, title in zip(states[:MOST_CARDS], bases, titles, strict=False)
    ]
    if n_more := len(states) - len(parts):
        parts.append(Card(f"and {n_more} more"))
    return Card(f"{len(states)} dictionaries", cards=tuple(parts))


@dataclass(frozen=True, eq=False)
class RunFacts:
    """What is known of a run."""

    path: Path  # its folder
    events: list[dict[str, Any]]  # what its log tells
    last: tuple[list[State], list[SteerableBasis]] | None  # of its last checkpoint
    pulse: dict[str, Any]  # the last sign of life
    last_beat: float  # when the process that has locked the folder last said that it lives
    is_over: bool  # whether it is finished, and nobody works on it


def run_card(run: RunFacts, alerts: Sequence[str] = ()) -> Card:
    """Where a run stands; `alerts` says what else is wrong."""
    note, names, passed = _story(run)
    card = Card(str(run.path)) if run.last is None else states_card(*run.last, names)
    alerts = list(alerts)
    progress = (run.pulse["share"], run.pulse["text"]) if run.pulse else None
    silence = time.time() - max(run.pulse.get("time", time.time()), run.last_beat)
    if run.is_over:
        note, progress = "finished", None
    elif silence > SILENCE:
        note = "not finished"
        alerts.append(
            f"no sign of life for {duration(silence)}: if nothing computes it any more, "
            "repeat its command with --resume"
        )
    return replace(
        card,
        title=f"{run.path.resolve().name}: {card.title}" if run.last else str(run.path),
        note=note,
        numbers={**card.numbers, **passed},
        alert="; ".join(alerts),
        progress=progress,
    )


def _story(run: RunFacts) -> tuple[str, list[str], dict[str, str]]:
    """What the log tells: where it runs, the names of dictionaries, passes and the error."""
    try:
        starts = [event for event in run.events if event["event"] == "start"]
        passes = [event for event in run.events if event["event"] == "iteration"]
        numbers = {}
        if passes and "share" in passes[-1]:  # logs of earlier versions have none
            numbers["energy left"] = percent(passes[-1]["share"])
        if passes:
            numbers["error per pixel"] = f"{passes[-1]['mse']:.4g}"
        numbers["passes"] = str(len(passes))
        if not starts:
            return "", [], numbers
        names = [str(name) for name in starts[-1].get("names", [])]
        return f"running on {starts[-1]['place']}", names, numbers
    except (KeyError, TypeError, ValueError) as error:
        raise DscError(f"{run.path}: its log is not as a run writes it: {error!r}") from error


def _atoms(state: State, basis: SteerableBasis, most: int) -> NDArray[np.uint8]:
    """The most used atoms as one image."""
    order = np.argsort(-state.count, kind="stable")[:most]
    return mosaic(atom_shades(basis.to_image(state.atoms[order])), COLUMNS)
