"""Pages for people: facts and figures in a template make one self-contained HTML file.

Nothing is imported before it is used: Matplotlib takes a while.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dsc.report.maps import class_colours as class_colours
    from dsc.report.maps import write_maps as write_maps
    from dsc.report.sweep import sweep_table as sweep_table
    from dsc.report.sweep import write_sweep_report as write_sweep_report
    from dsc.report.texture import compared_method as compared_method
    from dsc.report.texture import write_texture_report as write_texture_report

_HOMES = {
    "class_colours": "maps",
    "compared_method": "texture",
    "sweep_table": "sweep",
    "write_maps": "maps",
    "write_sweep_report": "sweep",
    "write_texture_report": "texture",
}


def __getattr__(name: str) -> Any:
    """Import what is asked for."""
    if name in _HOMES:
        return getattr(importlib.import_module(f"dsc.report.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'dsc.report' has no attribute {name!r}")
