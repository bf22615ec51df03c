"""The one exception that tells a user what to change."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from numbers import Integral

MOST_LISTED = 100  # problems in one error
LARGEST = 2**63 - 1


class DscError(ValueError):
    """An input that cannot be used: says what was found, what is needed and what to do."""


def unknown_choice(argument: str, found: object, choices: Iterable[str]) -> DscError:
    """The error for a word that is not one of `choices`, with the nearest one suggested."""
    known = list(choices)
    near = difflib.get_close_matches(str(found), known, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return DscError(f"{argument}: unknown {found!r}, need one of {', '.join(known)}{hint}")


def printable(text: str) -> str:
    """A text with its control characters escaped, which could steer a terminal."""
    signs = ((sign, sign.isprintable() or sign == "\n") for sign in text)
    return "".join(s if fine else s.encode("unicode_escape").decode() for s, fine in signs)


def count_problem(name: str, value: object, least: int, most: int | None = None) -> str:
    """What is wrong with a value that must be a whole number; empty if nothing is.

    Examples
    --------
    >>> count_problem("n_atoms", 2.5, 1)
    'n_atoms: found 2.5, need a whole number ≥ 1'
    >>> count_problem("diameter", 2, 3, 255)
    'diameter: found 2, need a whole number from 3 to 255'
    """
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    top = LARGEST if most is None else most
    if whole and least <= value <= top:  # type: ignore[operator]
        return ""
    limits = f"≥ {least}" + " below 2⁶³" * (whole and value > top)  # type: ignore[operator]
    limits = limits if most is None else f"from {least} to {most}"
    found = repr(value) if not whole or abs(value) <= LARGEST else "a huge one"  # type: ignore[arg-type]
    return f"{name}: found {found}, need a whole number {limits}"


def counted(number: int, noun: str, many: str = "") -> str:
    """So many things.

    Examples
    --------
    >>> counted(1, "color"), counted(2000, "patch", "patches")
    ('1 color', '2,000 patches')
    """
    return f"{number:,} {noun if number == 1 else many or noun + 's'}"


def raise_listed(what: str, problems: Sequence[str]) -> None:
    """One error for all problems; of very many, the first ones and how many more."""
    if problems:
        more = len(problems) - MOST_LISTED
        lines = [*problems[:MOST_LISTED], *[f"and {more} more"] * (more > 0)]
        raise DscError(
            f"{what}: {counted(len(problems), 'problem')}\n"
            + "\n".join(f"  {line}" for line in lines)
        )


def readable(n_bytes: float) -> str:
    """Bytes for people: 1.34 GB."""
    for unit in ("B", "kB", "MB"):
        if n_bytes < 1000:
            return f"{n_bytes:.3g} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:.3g} GB"
