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
    """How to run an experiment.

    Attributes
    ----------
    quick
        A reduced version that takes seconds.
    data
        "auto", "paper", "cc0" or "synthetic".
    dense
        More numbers of atoms on the curves of the coding experiments.
    """

    quick: bool = False
    data: str = "auto"
    dense: bool = False


@dataclass(frozen=True)
class Finding:
    """One claim, and what came out.

    Attributes
    ----------
    claim
        What is said.
    ours
        What this run found, in numbers.
    holds
        Whether the claim held in this run.
    why
        Where it did not, or where numbers differ: the explanation, in a sentence.
    by
        Who says it: "paper", or "dsc" for what this project adds.
    """

    claim: str
    ours: str
    holds: bool
    why: str = ""
    by: str = "paper"

    @property
    def sentence(self) -> str:
        """The finding for people."""
        verdict = "holds" if self.holds else "does NOT hold"
        reason = f" {self.why}" if self.why else ""
        return f"{self.claim}: {verdict}. {self.ours}.{reason}"


@dataclass(frozen=True)
class Lines:
    """A figure of lines with markers.

    Attributes
    ----------
    lines
        y by label; or by (label, kind): lines of a label share a colour, those of a kind a dash.
    x
        Places along the x axis, the same for all lines.
    x_name, y_name
        Of the axes.
    is_log
        Whether the y axis is logarithmic.
    bound
        Name and height of a horizontal line.
    """

    caption: str
    lines: Mapping[Any, Sequence[float]]
    x: Sequence[float]
    x_name: str
    y_name: str
    is_log: bool = True
    bound: tuple[str, float] | None = None


@dataclass(frozen=True, eq=False)
class ImageRows:
    """A figure of rows of small images, NaN being transparent.

    Attributes
    ----------
    rows
        (image, y, x) by the name of the row.
    like
        The row whose grey scales, column by column, hold for the others too. A row of another
        length shows atoms, each in its own scale around zero.
    labels
        Text under the images of the first row.
    scale
        Black and white of all images, in place of that.
    """

    caption: str
    rows: Mapping[str, Floats]
    like: str
    labels: Sequence[str] = ()
    scale: tuple[float, float] | None = None


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
    """What one run of an experiment found.

    Attributes
    ----------
    data
        Label of the data it ran on, shown in every output.
    header, rows
        The table, as text.
    figures
        Figures by file name.
    numbers
        Plain values, ready for JSON.
    findings
        Each claim of the paper, with whether it held.
    notes
        What a reader has to know to judge the numbers.
    name, title, quick, seconds
        Which experiment in which version it is, and how long it took: `run_experiment` fills them.
    """

    data: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    figures: dict[str, FigureValue]
    numbers: dict[str, Any]
    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()
    name: str = ""
    title: str = ""
    quick: bool = False
    seconds: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """All but the figures, ready for JSON."""
        return {
            "name": self.name,
            "title": self.title,
            "data": self.data,
            "quick": self.quick,
            "seconds": self.seconds,
            "numbers": self.numbers,
            "table": {"header": list(self.header), "rows": [list(row) for row in self.rows]},
            "findings": [asdict(finding) for finding in self.findings],
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class Experiment:
    """The description of an experiment: what `dsc experiment --list` shows.

    Attributes
    ----------
    paper, ours
        What the paper found; what our full run found.
    needs
        The data it needs.
    duration
        How long the full run takes on two cores.
    pictures
        The paper's pictures that it runs on unless others are asked for.
    has_dense
        Whether `Options.dense` has an effect.
    """

    name: str
    title: str
    paper: str
    ours: str
    needs: str
    duration: str
    run: Callable[[Options], Result] = field(repr=False)
    pictures: tuple[str, ...] = ()
    has_dense: bool = False
