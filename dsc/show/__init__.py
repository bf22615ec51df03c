"""What people see while it works: events, the bar of a terminal, the card of a notebook."""

from dsc.show.card import Card, png_url
from dsc.show.disks import COLUMNS, Floats, Shades, atom_shades, mosaic, shades
from dsc.show.events import (
    PERIOD,
    Event,
    Listener,
    Meter,
    Notice,
    Place,
    Pulse,
    Stage,
    duration,
    percent,
)
from dsc.show.listeners import in_notebook, listener_of
from dsc.show.notebook import NotebookCard
from dsc.show.terminal import Terminal
