"""Numbers on a page: looked up in the report by name, formatted once, marked for whoever checks."""

from __future__ import annotations

import html
import json
from dataclasses import dataclass
from typing import Any


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


@dataclass(frozen=True)
class Numbers:
    """Shows values of a report on its page.

    Attributes
    ----------
    facts
        What is in report.json.
    """

    facts: dict[str, Any]

    def __call__(self, name: str, form: str = "") -> str:
        """A value as HTML, with its name and exact value as attributes.

        Parameters
        ----------
        name
            Dotted path in the report.
        form
            Format specification of Python, such as ",", ".4g" or ".1%".

        Examples
        --------
        >>> Numbers({"patches": {"n": 17330}})("patches.n", ",")
        '<span data-name="patches.n" data-value="17330">17,330</span>'
        """
        value = look_up(self.facts, name)
        exact, text = html.escape(json.dumps(value)), html.escape(_text(value, form))
        return f'<span data-name="{name}" data-value="{exact}">{text}</span>'


def _text(value: Any, form: str) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = format(value, form) if isinstance(value, int | float) else str(value)
    return text.replace("%", " %")
