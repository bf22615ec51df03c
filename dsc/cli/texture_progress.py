"""What `dsc texture` shows while it works."""

from __future__ import annotations

from typing import Any

from dsc.cli import options as console

LINE_EVERY = 20  # seconds between two lines of a log while pictures are labelled


class TextureProgress:
    """Reports iterations, then labelled pictures, on stderr."""

    def __init__(self) -> None:
        self.iterations = console.IterationProgress()
        self.last_line = -float("inf")

    def __call__(self, event: dict[str, Any]) -> None:
        """Show one event of `fit_texture` or `count_labels`."""
        if "iteration" in event:
            self.iterations(event)
            return
        finished = event["done"] == event["total"]
        if not self.iterations.terminal:
            if not finished and event["seconds"] - self.last_line < LINE_EVERY:
                return
            self.last_line = -float("inf") if finished else event["seconds"]
        console.show_progress(
            event["done"] / event["total"],
            f"labelled {event['done']:,} of {event['total']:,} pictures: "
            f"{event['patches_per_second']:,.0f} patches/s, {event['seconds_left']:.0f} s left",
            finished,
        )


class SweepProgress:
    """Reports every finished setting on stderr; what goes on inside one only on a terminal."""

    def __init__(self) -> None:
        self.inside = TextureProgress()

    def __call__(self, event: dict[str, Any]) -> None:
        """Show one event of `run_sweep`."""
        if "phase" in event:
            if self.inside.iterations.terminal:
                self.inside(event)
            return
        config = event["config"]
        console.show_progress(
            event["setting"] / event["total"],
            f"setting {event['setting']} of {event['total']}: {config['method']}, "
            f"M = {config['n_atoms']}, N = {config['diameter']}, K = {config['sparsity']}: "
            f"accuracy {event['accuracy']:.4f}, {event['seconds']:.0f} s",
            finished=True,
        )
