"""One renderer for all pages: facts, figures and a template make one self-contained HTML file.

Every value on a page is marked with where it is from: `data-name` is its place in the JSON file
beside the page, `data-derived` says what it was computed from.
"""

from __future__ import annotations

import errno
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache, partial
from os import PathLike
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from dsc.errors import DscError
from dsc.files import write_whole
from dsc.report.figures import Rendering, themed_url
from dsc.show import png_url


@dataclass(frozen=True, eq=False)
class Page:
    """A page before it is written."""

    template: str  # its file in `templates/`
    title: str  # the heading
    facts: dict[str, Any]  # plain values for the JSON file; `kind` says what the report is
    figures: dict[str, Rendering] = field(default_factory=dict)  # saved as NAME.png and NAME.svg
    images: dict[str, Any] = field(default_factory=dict)  # what else the template draws, not saved
    texts: dict[str, str] = field(default_factory=dict)  # other files by name, saved beside it

    def html(self) -> str:
        """The page as text."""
        template = _templates().get_template(self.template)
        return template.render(
            vars(self),
            show=partial(show, self.facts),
            show_all=partial(show_all, self.facts),
            url=lambda name: themed_url(self.figures[name]),
        )


@dataclass(frozen=True)
class Place:
    """Where the files of a report go."""

    html: Path  # the page, and the JSON file with its facts
    numbers: Path
    prefix: str = ""  # what the names of the plots begin with

    @staticmethod
    def folder(path: Path) -> Place:
        """A folder of its own: index.html, report.json, and plots."""
        return Place(path / "index.html", path / "report.json")

    @staticmethod
    def page(path: str | PathLike[str]) -> Place:
        """A page with all else beside it, named after it: page.json, page-atoms.png, …."""
        page = Path(path)
        if page.suffix.lower() not in (".html", ".htm"):
            raise DscError(f"{page}: found suffix {page.suffix!r}, need a file that ends in .html")
        return Place(page, page.with_suffix(".json"), f"{page.stem}-")

    def check(self, kind: str, plots: Iterable[str] = (), texts: Iterable[str] = ()) -> None:
        """Refuse to write over anything but a report of this kind, its plots and its texts."""
        ours = self._earlier()
        files = {self.html.name, self.numbers.name, *self._plot_files(plots), *texts}
        if ours.get("kind") == kind:  # older reports do not name their files
            files -= {self.html.name, self.numbers.name, *ours.get("files", files)}
        taken = [path for name in sorted(files) if (path := self.html.parent / name).exists()]
        if taken:
            raise DscError(
                f"{taken[0]}: exists and is no part of a {kind}; it is not overwritten: choose "
                "another --out, or remove it"
            )

    def write(self, page: Page) -> dict[str, Any]:
        """Write all files, the page last: where there is a page, all of it is there.

        Returns what is in the JSON file: the facts, and the names of the other files.
        """
        self.check(page.facts["kind"], page.figures, page.texts)
        folder = self.html.parent
        names = [*self._plot_files(page.figures), *page.texts, self.html.name]
        facts = {**page.facts, "files": names}
        numbers = json.dumps(facts, indent=1, ensure_ascii=False, allow_nan=False)
        text = page.html()
        try:
            if not folder.parent.exists():
                folder.parent.mkdir(parents=True, exist_ok=True)
            folder.mkdir(exist_ok=True)  # but no run folder that was removed just now
            for name in self._earlier().get("files", ()):
                (folder / name).unlink(missing_ok=True)
            write_whole(self.numbers, numbers)
            for name, rendering in page.figures.items():
                write_whole(folder / f"{self.prefix}{name}.png", rendering.png)
                write_whole(folder / f"{self.prefix}{name}.svg", rendering.svg)
            for name, content in page.texts.items():
                write_whole(folder / name, content)
            write_whole(self.html, text)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise  # a full disk: the command says how much is free there
            raise DscError(f"{self.html}: the report cannot be written: {error}") from error
        return facts

    def _plot_files(self, plots: Iterable[str]) -> list[str]:
        return [f"{self.prefix}{name}.{suffix}" for name in plots for suffix in ("png", "svg")]

    def _earlier(self) -> dict[str, Any]:
        """The facts of the report that is there."""
        try:
            found = json.loads(self.numbers.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        if not isinstance(found, dict):
            return {}
        files = found.pop("files", None)
        if isinstance(files, list):
            found["files"] = [name for name in files if self._is_own(name)]
        return found

    def _is_own(self, name: Any) -> bool:
        """Whether a file that a report names may be one of this report."""
        return name == self.html.name or (
            isinstance(name, str)
            and Path(name).name == name
            and name.startswith(self.prefix)
            and name.endswith((".png", ".svg", ".md"))
        )


def look_up(facts: Any, name: str) -> Any:
    """The value at a dotted path.

    Examples
    --------
    >>> look_up({"history": [0.5, 0.25]}, "history.1")
    0.25
    """
    for key in name.split("."):
        facts = facts[int(key)] if isinstance(facts, list) else facts[key]
    return facts


def show(facts: dict[str, Any], name: str, form: str = "") -> Markup:
    """The value at a dotted path in the facts as HTML, marked with its name and its exact value.

    Examples
    --------
    >>> print(show({"patches": {"n": 17330}}, "patches.n", ","))
    <span data-name="patches.n" data-value="17330">17,330</span>
    """
    value = look_up(facts, name)
    mark = '<span data-name="{}" data-value="{}">{}</span>'
    return Markup(mark).format(name, json.dumps(value), text_of(value, form))


def show_all(facts: dict[str, Any], name: str) -> list[tuple[str, Markup]]:
    """The names and values of a part of the facts, as rows of a table."""
    return [(key, show(facts, f"{name}.{key}")) for key in look_up(facts, name)]


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
    return format(value, form).replace("%", " %") if isinstance(value, int | float) else str(value)


def plural(value: int, word: str) -> str:
    """A word for so many things."""
    return word if value == 1 else f"{word}s"


def render_template(name: str, **values: Any) -> str:
    """A template that is no report, filled in."""
    return _templates().get_template(name).render(values)


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
    environment.globals |= {
        one.__name__: one for one in (derived, look_up, plural, png_url, text_of)
    }
    environment.globals["style"] = Markup(style)
    return environment
