"""What the configuration classes share: documented fields, and making one from words and values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field, fields
from typing import Any, Self

import numpy as np

from dsc.errors import DscError, count_problem, unknown_choice


def option(default: Any, help: str, choices: Iterable[str] = ()) -> Any:  # noqa: A002
    """A field with the help text that the command line shows, and the words it may take."""
    return field(default=default, metadata={"help": help, "choices": tuple(choices)})


class Options:
    """The base of a frozen dataclass of options."""

    @classmethod
    def from_options(cls, options: dict[str, Any], others: Iterable[str] = ()) -> Self:
        """From words and values, refusing unknown words; `others` are known to the caller."""
        own = [f.name for f in fields(cls)]  # type: ignore[arg-type]
        unknown = [name for name in options if name not in own]
        if unknown:
            known = [*own, *others]
            raise DscError("\n".join(str(unknown_choice("option", n, known)) for n in unknown))
        return cls(**options)

    def _make_plain(self) -> None:
        """Turn NumPy's numbers into Python's, which JSON and TOML can hold."""
        for f in fields(self):  # type: ignore[arg-type]
            value = getattr(self, f.name)
            if isinstance(value, np.generic):
                object.__setattr__(self, f.name, value.item())

    def _count_problems(self, least: dict[str, int]) -> list[str]:
        """What is wrong with options that are whole numbers of at least so much."""
        problems = (count_problem(name, getattr(self, name), low) for name, low in least.items())
        return [problem for problem in problems if problem]

    def _choice_problems(self) -> list[str]:
        """What is wrong with options that are one of several words."""
        return [
            str(unknown_choice(f.name, getattr(self, f.name), choices))
            for f in fields(self)  # type: ignore[arg-type]
            if (choices := f.metadata.get("choices"))
            and getattr(self, f.name) not in (*choices, f.default)
        ]
