"""Who listens: what `progress` means."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from dsc.errors import DscError
from dsc.show.events import Listener, Place, Pulse
from dsc.show.notebook import NotebookCard
from dsc.show.terminal import Terminal


def listener_of(progress: Callable[[Any], None] | bool | None) -> tuple[Listener, ...]:
    """The listeners that `progress` asks for.

    None is a card in a notebook and nothing elsewhere; True is a bar on a terminal, too; False is
    nothing. A function gets an event after every round, such as `Iteration`; an object with a
    method `close` gets the pulses in between, too.
    """
    if progress is None or progress is True:
        if in_notebook():
            return (NotebookCard(),)
        return (Terminal(),) if progress else ()
    if progress is False:
        return ()
    if not callable(progress):
        raise DscError(f"progress: found {progress!r}, need True, False, None or a function")
    if hasattr(progress, "close"):
        return (progress,)
    return (lambda event: None if isinstance(event, Place | Pulse) else progress(event),)


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    if "IPython" not in sys.modules:
        return False
    from IPython import get_ipython

    return hasattr(get_ipython(), "kernel")
