"""Pages of the Dask dashboard: the error, the atoms and the pace of what `dsc` learns there.

Start the scheduler with `dask scheduler --preload dsc.engine.dashboard`, or set
`distributed.scheduler.preload` before a `LocalCluster` is made. The pages are then listed among
Dask's own, in JupyterLab too. They are added when this module is imported, since Dask starts its
server before it calls a preload. Dask has no public way to add pages: should it change, there are
none, and nothing else is different.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dsc.engine.workers import TOPIC

REFRESH = 500  # milliseconds between two looks at the events

Update = Callable[[list[tuple[float, dict[str, Any]]]], None]


def messages(scheduler: Any) -> list[tuple[float, dict[str, Any]]]:
    """(time, message) of all that was reported by the run that reported last."""
    logged = scheduler.get_events(TOPIC)  # by us, or by others who like the name
    found = [pair for pair in logged if isinstance(pair[1], dict) and "run" in pair[1]]
    return [pair for pair in found if pair[1]["run"] == found[-1][1]["run"]]


def error_page() -> tuple[Any, Update]:
    """The error after every pass, a line for each dictionary."""
    from bokeh.models import ColumnDataSource
    from bokeh.plotting import figure

    source = ColumnDataSource({"x": [], "y": []})
    plot = _plot(figure, "error per pixel", "pass")
    plot.multi_line("x", "y", source=source, line_width=2)

    def update(found: list[tuple[float, dict[str, Any]]]) -> None:
        for _, message in reversed(found):
            if curves := message["curves"]:
                y = list(curves.values())
                source.data = {"x": [list(range(len(one))) for one in y], "y": y}
                return

    return plot, update


def pace_page() -> tuple[Any, Update]:
    """Patches per second over time."""
    from bokeh.models import ColumnDataSource
    from bokeh.plotting import figure

    source = ColumnDataSource({"x": [], "y": []})
    plot = _plot(figure, "patches/s", "seconds since the begin")
    plot.line("x", "y", source=source, line_width=2)

    def update(found: list[tuple[float, dict[str, Any]]]) -> None:
        pairs = [(when - found[0][0], message["pace"]) for when, message in found]
        shown = [pair for pair in pairs if pair[1] is not None]
        source.data = {"x": [x for x, _ in shown], "y": [y for _, y in shown]}

    return plot, update


def atoms_page() -> tuple[Any, Update]:
    """The card that a notebook shows: the atoms as they form, and how far it is."""
    from bokeh.models import Div

    div = Div(text="<p>Nothing has been learned here yet.</p>", sizing_mode="stretch_width")

    def update(found: list[tuple[float, dict[str, Any]]]) -> None:
        for _, message in reversed(found):
            if message["html"]:
                div.text = message["html"]
                return

    return div, update


def _plot(figure: Any, name: str, x_name: str) -> Any:
    plot = figure(title=name, sizing_mode="stretch_both", x_axis_label=x_name, min_height=200)
    plot.y_range.start = 0
    plot.toolbar.logo = None
    return plot


PAGES = {
    "/individual-dsc-error": error_page,
    "/individual-dsc-atoms": atoms_page,
    "/individual-dsc-pace": pace_page,
}


def add_pages() -> bool:
    """Add the pages to Dask's; False if it cannot be done with this version."""
    try:
        from distributed.dashboard.scheduler import applications
    except ImportError:  # there is no bokeh, or Dask has changed
        return False
    for url, make in PAGES.items():
        applications.setdefault(url, _document(make))
    return True


def _document(make: Callable[[], tuple[Any, Update]]) -> Callable[[Any, Any, Any], None]:
    def document(scheduler: Any, extra: Any, doc: Any) -> None:  # noqa: ARG001
        root, update = make()
        doc.title = "dsc"
        doc.add_root(root)

        def look() -> None:
            if found := messages(scheduler):
                update(found)

        look()
        doc.add_periodic_callback(look, REFRESH)

    return document


add_pages()
