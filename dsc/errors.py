"""The one exception that tells a user what to change."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

MOST_LISTED = 100  # problems in one error


class DscError(ValueError):
    """An input that cannot be used: says what was found, what is needed and what to do."""


def unknown_choice(argument: str, found: object, choices: Iterable[str]) -> DscError:
    """The error for a word that is not one of `choices`, with the nearest one suggested."""
    known = list(choices)
    near = difflib.get_close_matches(str(found), known, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return DscError(f"{argument}: unknown {found!r}, need one of {', '.join(known)}{hint}")


def raise_listed(what: str, problems: Sequence[str]) -> None:
    """One error for all problems; of very many, the first ones and how many more."""
    if problems:
        more = len(problems) - MOST_LISTED
        lines = [*problems[:MOST_LISTED], *[f"and {more} more"] * (more > 0)]
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        raise DscError(f"{what}: {count}\n" + "\n".join(f"  {line}" for line in lines))
