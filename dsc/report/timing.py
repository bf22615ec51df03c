"""Where the time of a run went, from its log of events."""

from __future__ import annotations

import datetime
import statistics
from typing import Any


def time_facts(events: list[dict[str, Any]]) -> dict[str, Any]:
    """Seconds of every pass over the patches, and what they add up to.

    The first pass of each session (a run may have been resumed) also reads the patches and loads or
    compiles the loops; the last one only codes. What no pass was busy with went into saving.

    Parameters
    ----------
    events
        Of `RunFolder.events`.
    """
    passes = _passes(events)
    updates = [one["seconds"] for one in passes if one["kind"] == "update"]
    ended = [event["time"] for event in events if event["event"] == "end"]
    last = [event["time"] for event in events if event["event"] == "iteration"]
    saving = max(0.0, ended[-1] - last[-1]) if ended and last else 0.0
    parts = {
        "first": sum(one["seconds"] for one in passes if one["kind"] == "first"),
        "updates": sum(updates),
        "final": sum(one["seconds"] for one in passes if one["kind"] == "final"),
        "saving": saving,
    }
    rates = [one["patches_per_second"] for one in passes if one["kind"] == "update"]
    return {
        "passes": passes,
        "n_passes": len(passes),
        "n_sessions": sum(event["event"] == "start" for event in events),
        **parts,
        "total": sum(parts.values()),
        "update_median": statistics.median(updates) if updates else None,
        "patches_per_second": statistics.median(rates) if rates else None,
        "began": _moment(events[0]["time"]) if events else None,
        "ended": _moment(ended[-1]) if ended else None,
    }


def _passes(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One entry per pass in the order they were made; kind is first, update or final."""
    passes = []
    fresh = True
    for event in events:
        if event["event"] == "start":
            fresh = True
        if event["event"] != "iteration":
            continue
        kind = "first" if fresh else "final" if event["finished"] else "update"
        fresh = False
        passes.append(
            {
                "iteration": event["iteration"],
                "kind": kind,
                "seconds": event["seconds"],
                "patches_per_second": event["patches_per_second"],
                "mse": event["mse"],
            }
        )
    return passes


def _moment(seconds: float) -> str:
    moment = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    return moment.strftime("%Y-%m-%d %H:%M:%S UTC")
