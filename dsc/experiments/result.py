"""What an experiment is, and what it returns: values and figures, none of them drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating]


@dataclass(frozen=True)
class Options:
    """How to run an experiment."""

    quick: bool = False  # a reduced version that takes seconds
    data: str = "auto"  # "auto", "paper", "cc0" or "synthetic"
    dense: bool = False  # more numbers of atoms on the curves of the coding experiments


@dataclass(frozen=True)
class Finding:
    """One claim, and what came out."""

    claim: str  # what is said
    ours: str  # what this run found, in numbers
    holds: bool  # whether the claim held in this run
    why: str = ""  # where it did not, or where numbers differ: the explanation, in a sentence
    by: str = "paper"  # who says it: "paper", or "dsc" for what this project adds

    @classmethod
    def added(cls, claim: str, ours: str, holds: bool, why_not: str = "") -> Finding:
        """What this project adds; `why_not` explains where it does not hold."""
        return cls(claim, ours, holds, "" if holds else why_not, by="dsc")

    @property
    def sentence(self) -> str:
        """The finding for people."""
        verdict = "holds" if self.holds else "does NOT hold"
        reason = f" {self.why}" if self.why else ""
        return f"{self.claim}: {verdict}. {self.ours}.{reason}"


@dataclass(frozen=True)
class Lines:
    """A figure of lines with markers."""

    caption: str
    # y by label; or by (label, kind): lines of a label share a colour, those of a kind a dash
    lines: Mapping[Any, Sequence[float]]
    x: Sequence[float]  # places along the x axis, the same for all lines
    x_name: str  # of the axes
    y_name: str
    is_log: bool = True  # whether the y axis is logarithmic
    bound: tuple[str, float] | None = None  # name and height of a horizontal line


@dataclass(frozen=True, eq=False)
class ImageRows:
    """A figure of rows of small images, NaN being transparent."""

    caption: str
    rows: Mapping[str, Floats]  # (image, y, x) by the name of the row
    # the row whose grey scales, column by column, hold for the others too. A row of another length
    # shows atoms, each in its own scale around zero
    like: str
    labels: Sequence[str] = ()  # text under the images of the first row
    scale: tuple[float, float] | None = None  # black and white of all images, in place of that


@dataclass(frozen=True, eq=False)
class AtomGrid:
    """A figure of atoms (atom, y, x), those of a group framed in one colour."""

    caption: str
    images: Floats
    groups: Sequence[Sequence[int]] = ()
    columns: int = 10


FigureValue = Lines | ImageRows | AtomGrid


@dataclass(frozen=True, eq=False)
class Result:
    """What one run of an experiment found."""

    data: str  # label of the data it ran on, shown in every output
    header: tuple[str, ...]  # the table, as text
    rows: tuple[tuple[str, ...], ...]
    figures: Mapping[str, FigureValue]  # figures by file name
    numbers: dict[str, Any]  # plain values, ready for JSON
    findings: tuple[Finding, ...]  # each claim of the paper, with whether it held
    notes: tuple[str, ...] = ()  # what a reader has to know to judge the numbers
    # which experiment in which version it is, and how long it took: `run_experiment` fills them
    name: str = ""
    title: str = ""
    quick: bool = False
    seconds: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """All but the figures, ready for JSON."""
        names = ("name", "title", "data", "quick", "seconds", "numbers")
        return {
            **{name: getattr(self, name) for name in names},
            "table": {"header": list(self.header), "rows": [list(row) for row in self.rows]},
            "findings": [asdict(finding) for finding in self.findings],
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class Experiment:
    """The description of an experiment: what `dsc experiment --list` shows."""

    name: str
    title: str
    paper: str  # what the paper found; what our full run found
    ours: str
    needs: str  # the data it needs
    duration: str  # how long the full run takes on two cores
    run: Callable[[Options], Result] = field(repr=False)
    images: tuple[str, ...] = ()  # the paper's images that it runs on unless others are asked for
    has_dense: bool = False  # whether `Options.dense` has an effect
