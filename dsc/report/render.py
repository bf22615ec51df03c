"""One renderer for all pages: facts, figures and a template make one self-contained HTML file.

Every value on a page is marked with where it is from: `data-name` is its place in the JSON file
beside the page, `data-derived` says what it was computed from.
"""

from __future__ import annotations

import base64
import io
import json
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from PIL import Image

from dsc.errors import DscError
from dsc.files import write_whole
from dsc.report.figures import Drawn, themed_url


@dataclass(frozen=True, eq=False)
class Page:
    """A page before it is written.

    Attributes
    ----------
    template
        Its file in `templates/`.
    title
        The heading.
    facts
        Plain values, which go to the JSON file as they are; `kind` says what the report is.
    figures
        Plots, saved beside the page as NAME.png and NAME.svg.
    images
        What else the template draws; it is not saved beside the page.
    """

    template: str
    title: str
    facts: dict[str, Any]
    figures: dict[str, Drawn] = field(default_factory=dict)
    images: dict[str, Any] = field(default_factory=dict)

    def html(self) -> str:
        """The page as text."""
        context = {
            "title": self.title,
            "facts": self.facts,
            "figures": self.figures,
            "images": self.images,
            "show": lambda name, form="": show(self.facts, name, form),
            "url": lambda name: themed_url(self.figures[name]),
        }
        return _templates().get_template(self.template).render(context)


@dataclass(frozen=True)
class Place:
    """Where the files of a report go.

    Attributes
    ----------
    html, numbers
        The page, and the JSON file with its facts.
    prefix
        What the names of the plots begin with.
    """

    html: Path
    numbers: Path
    prefix: str = ""

    @staticmethod
    def folder(path: Path) -> Place:
        """A folder of its own: index.html, report.json, and plots."""
        return Place(path / "index.html", path / "report.json")

    def check(self, kind: str) -> None:
        """Refuse to write over anything but a report of this kind."""
        found = self._earlier()
        taken = [path for path in (self.html, self.numbers) if path.exists()]
        if taken and found.get("kind") != kind:
            raise DscError(
                f"{taken[0]}: exists and is no {kind}; it is not overwritten: choose another "
                "--out, or remove it"
            )

    def write(self, page: Page) -> None:
        """Write all files, the page last: where there is a page, all of it is there."""
        self.check(page.facts["kind"])
        names = [f"{self.prefix}{name}.{end}" for name in page.figures for end in ("png", "svg")]
        folder = self.html.parent
        other = [folder / name for name in names if (folder / name).exists()]
        earlier = self._earlier().get("files", [])
        if taken := [path for path in other if path.name not in earlier]:
            raise DscError(
                f"{taken[0]}: exists and is no plot of this report; it is not overwritten: choose "
                "another --out, or remove it"
            )
        text = page.html()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for name in (self.html.name, *earlier):
                (folder / Path(name).name).unlink(missing_ok=True)
            facts = {**page.facts, "files": [*names, self.html.name]}
            write_whole(self.numbers, json.dumps(facts, indent=1, ensure_ascii=False))
            for name, drawn in page.figures.items():
                write_whole(folder / f"{self.prefix}{name}.png", drawn.png)
                write_whole(folder / f"{self.prefix}{name}.svg", drawn.svg)
            write_whole(self.html, text)
        except OSError as error:
            raise DscError(f"{self.html}: the report cannot be written: {error}") from error

    def _earlier(self) -> dict[str, Any]:
        """The facts of the report that is there."""
        try:
            found = json.loads(self.numbers.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}


def show(facts: dict[str, Any], name: str, form: str = "") -> Markup:
    """A value of the facts as HTML, marked with its name and its exact value.

    Parameters
    ----------
    facts
        What is in the JSON file.
    name
        Dotted path in it.
    form
        Format specification of Python, such as ",", ".4g" or ".1%".

    Examples
    --------
    >>> print(show({"patches": {"n": 17330}}, "patches.n", ","))
    <span data-name="patches.n" data-value="17330">17,330</span>
    """
    value: Any = facts
    for key in name.split("."):
        value = value[int(key)] if isinstance(value, list) else value[key]
    mark = '<span data-name="{}" data-value="{}">{}</span>'
    return Markup(mark).format(name, json.dumps(value), text_of(value, form))


def derived(source: str, value: Any, form: str = "") -> Markup:
    """A value that is not in the facts itself, marked with what it was computed from."""
    return Markup('<span data-derived="{}">{}</span>').format(source, text_of(value, form))


def text_of(value: Any, form: str = "") -> str:
    """A value for people."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    text = format(value, form) if isinstance(value, int | float) else str(value)
    return text.replace("%", " %")


def plural(value: int, word: str) -> str:
    """A word for so many things."""
    return word if value == 1 else f"{word}s"


def png_url(pixels: Any) -> str:
    """A picture of bytes, (y, x) or (y, x, 2 to 4), as a PNG in a URL."""
    data = io.BytesIO()
    Image.fromarray(pixels).save(data, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(data.getvalue()).decode()


@lru_cache
def _templates() -> Environment:
    environment = Environment(
        loader=PackageLoader("dsc.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    style = Path(__file__).with_name("style.css").read_text(encoding="utf-8")
    environment.globals.update(
        style=Markup(style),
        derived=derived,
        plural=plural,
        png_url=png_url,
        text_of=text_of,
    )
    return environment
