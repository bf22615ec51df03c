"""A card: a few numbers, curves and images of one thing, as a piece of HTML.

The same card is what a notebook shows of a value, what `dsc.learn` shows while it works, and what
the live page is made of. It needs nothing from outside: images are inside, colours are those of
the page around it.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

CURVE = (320, 110)  # pixels of a curve


@dataclass(frozen=True, eq=False, repr=False)
class Card:
    """What is shown of one thing; what is empty is left out."""

    title: str
    note: str = ""  # a line below the title
    numbers: dict[str, str] = field(default_factory=dict)  # in words, by name
    curve: Sequence[float] = ()  # the error after every pass
    curve_unit: str = ""  # what follows its numbers, such as " %"
    image: NDArray[np.uint8] | None = None  # (y, x) or (y, x, 2): the atoms
    bars: Sequence[float] = ()  # how often each of them is used
    cards: tuple[Card, ...] = ()  # parts of it, side by side
    alert: str = ""  # what is wrong
    # what is going on: the share that is done, and words
    progress: tuple[float, str] | None = None

    def html(self) -> str:
        """The card as HTML that can stand anywhere."""
        return str(_templates().get_template("card.html").render(card=self, style=_style()))

    def _repr_html_(self) -> str:
        return self.html()

    def __repr__(self) -> str:
        """Its words in one line, for where there is no HTML."""
        words = [self.note, *(f"{name} {text}" for name, text in self.numbers.items())]
        words += [self.progress[1]] if self.progress else []
        words = [word for word in (*words, self.alert) if word]
        return f"{self.title}: {', '.join(words)}" if words else self.title

    @property
    def points(self) -> str:
        """The curve as points of an SVG, by orders of magnitude where it spans some."""
        width, height = CURVE
        values = np.asarray(self.curve, float)
        if values.min() > 0 and values.max() > 4 * values.min():
            values = np.log(values / values.min()) + 0.1
        x = np.linspace(4, width - 4, len(values)) if len(values) > 1 else np.array([4.0])
        y = height - 4 - (height - 8) * values / max(values.max(), 1e-300)
        return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))

    @property
    def columns(self) -> list[tuple[float, float, float]]:
        """(x, y, height) of the bars in an SVG, all of one width; the most used come first."""
        values = np.sort(np.asarray(self.bars, float))[::-1]
        heights = np.maximum(0.5, (CURVE[1] - 8) * values / max(values.max(initial=0), 1e-300))
        step = (CURVE[0] - 8) / max(1, len(values))
        return [(4 + i * step, CURVE[1] - 4 - h, float(h)) for i, h in enumerate(heights)]

    @property
    def column_width(self) -> float:
        """Of one bar."""
        return 0.8 * (CURVE[0] - 8) / max(1, len(self.bars))

    @property
    def image_url(self) -> str:
        """The image inside a URL."""
        return "" if self.image is None else png_url(self.image)


def png_url(pixels: NDArray[np.uint8]) -> str:
    """An image of bytes, (y, x) or (y, x, 2 to 4), as a PNG in a URL."""
    from PIL import Image

    data = io.BytesIO()
    Image.fromarray(pixels).save(data, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(data.getvalue()).decode()


@lru_cache
def _templates() -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("dsc.show"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@lru_cache
def _style() -> Any:
    from pathlib import Path

    from markupsafe import Markup

    return Markup(Path(__file__).with_name("card.css").read_text(encoding="utf-8"))
