"""Pages for people: facts and figures in a template make one self-contained HTML file.

Nothing is imported before it is used: Matplotlib takes a while.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dsc.report.demo import closing_words as closing_words
    from dsc.report.demo import write_demo as write_demo
    from dsc.report.experiments import check_free as check_free
    from dsc.report.experiments import write_result as write_result
    from dsc.report.experiments import write_summary as write_summary
    from dsc.report.learn import write_report as write_report

_HOMES = {
    "check_free": "experiments",
    "closing_words": "demo",
    "write_demo": "demo",
    "write_report": "learn",
    "write_result": "experiments",
    "write_summary": "experiments",
}


def __getattr__(name: str) -> Any:
    """Import what is asked for."""
    if name in _HOMES:
        return getattr(importlib.import_module(f"dsc.report.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'dsc.report' has no attribute {name!r}")
