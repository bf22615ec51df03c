"""The live card of a notebook, which stays in it as an image when the work is done."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dsc.show.card import Card
from dsc.show.events import Event, Place


class NotebookCard:
    """Shows events in the output of the cell that runs; one card, drawn anew."""

    def __init__(self) -> None:
        self.card = Card("dsc")
        self._display: Any = None

    def __call__(self, event: Event) -> None:
        """Show one event."""
        note = self.card.note
        if isinstance(event, Place):
            note = event.line()
        self.card = replace(event.card() or self.card, note=note)
        self.card = replace(self.card, progress=event.bar() or self.card.progress)
        self.draw(self.card)

    def close(self) -> None:
        """Leave the card, without its bar; take it away if there was nothing else on it."""
        if self._display is None:
            return
        if self.card.image is None and not self.card.cards:
            self._display.update(_Nothing())
            return
        done = self.card.progress[1] if self.card.progress else ""
        note = f"{self.card.note.replace('running', 'ran')}; {done}".strip("; ")
        self.draw(replace(self.card, note=note, progress=None))

    def draw(self, card: Card) -> None:
        """Put a card where the last one was."""
        from IPython import display

        if self._display is None:
            self._display = display.display(card, display_id=True)
        else:
            self._display.update(card)


class _Nothing:
    """Shows as nothing."""

    def _repr_html_(self) -> str:
        return ""

    def __repr__(self) -> str:
        return ""
