"""`write_report`: a finished run folder as one HTML page, with its plots and numbers beside it."""

from __future__ import annotations

import datetime
import math
import os
import platform
import statistics
from dataclasses import asdict
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

from dsc.dictionary import Dictionary, Run, plot_disks, share_left
from dsc.errors import DscError
from dsc.report import figures as plots
from dsc.report.render import Page, Place, show
from dsc.report.sample import Comparison, find_patches, look_at
from dsc.show import atom_shades
from dsc.store import open_store
from dsc.version import __version__

KIND = "dsc report"  # by which we know a report.json of ours
PLOTS = ("error", "time", "atoms", "use", "angles", "examples", "worst")
MOST_ATOMS = 500  # drawn


def write_report(
    run: str | os.PathLike[str], out: str | os.PathLike[str] | None = None
) -> dict[str, Any]:
    """Write the report of a finished run; a report of ours that is there already is replaced.

    Numbers and plots go beside the HTML file `out` and are named after it (page.html, page.json,
    page-atoms.png, …). By default they are RUN/report/index.html, report.json, atoms.png, …

    Returns the numbers of the page, as in the JSON file.
    """
    folder = Run(Path(run))
    if not (folder.path / "run.toml").is_file():
        raise DscError(
            f"{folder.path}: found no run.toml, need a run folder, such as `dsc learn PATCHES "
            "--out RUN` makes"
        )
    if not folder.finished:
        raise DscError(
            f"{folder.path}: the run is not finished: continue it with `dsc learn --resume`, then "
            "make the report"
        )
    place = _place(folder.path, out)
    place.check(KIND, PLOTS)
    model = Dictionary.load(folder.model)
    facts, comparisons = _gather(folder, model)
    return place.write(_page(facts, model, comparisons))


def _place(run: Path, out: str | os.PathLike[str] | None) -> Place:
    if out is None:
        return Place.folder(run / "report")
    return Place.page(out)


def _gather(folder: Run, model: Dictionary) -> tuple[dict[str, Any], dict[str, Comparison]]:
    """All numbers, and the patches to be shown (none if the patch set cannot be had)."""
    facts = run_facts(folder, model)
    source = find_patches(folder, model)
    if not isinstance(source, str):
        try:
            sampled, comparisons = look_at(source, model)
            return {**facts, "sample": sampled, "sample_missing": None}, comparisons
        except DscError as error:  # a part of the set is missing or damaged
            source = f"The patches cannot be read: {error}"
    return {**facts, "sample": None, "sample_missing": source}, {}


def _page(facts: dict[str, Any], model: Dictionary, comparisons: dict[str, Comparison]) -> Page:
    atoms, passes = facts["atoms"], facts["time"]["passes"]
    disks = atom_shades(model.atoms_pixels[atoms["order"][:MOST_ATOMS]])
    triples = {name: some.shades() for name, some in comparisons.items()}
    figures = {
        "error": plots.plot_history(facts["history"], facts["shares"]),
        "use": plots.plot_use(atoms["count"], atoms["even"]),
    }
    if passes:
        figures["time"] = plots.plot_time(passes)
    if facts["sample"] is not None and model.n_angles > 1:
        figures["angles"] = plots.plot_angles(facts["sample"]["angles"])
    with plots.drawing():
        counts = [f"{n:,}" for n in atoms["count"][:MOST_ATOMS]]
        figures["atoms"] = plot_disks(disks, labels=counts)
        for name, rows in triples.items():
            some = np.concatenate(list(rows.values()))
            figures[name] = plot_disks(some, len(rows["patch"]), headings=list(rows))
    grid = [
        (disk, f"atom {atom}", show(facts, f"atoms.count.{i}", ","))
        for i, (disk, atom) in enumerate(zip(disks, atoms["order"], strict=False))
    ]
    return Page(
        "learn.html",
        f"Run {facts['run']['name']}",
        facts,
        {name: plots.draw(figure) for name, figure in figures.items()},
        {"atoms": grid, **triples},
    )


def run_facts(folder: Run, model: Dictionary) -> dict[str, Any]:
    """All that is known without looking at the patches."""
    basis, first, last = model.basis, float(model.history[0]), model.mse
    shares = [share_left(mse, model.energy) for mse in model.history.tolist()]
    is_known = not math.isnan(model.share)  # not by models of earlier versions
    order = np.argsort(-model.count, kind="stable")
    total, n_patches = int(model.count.sum()), model.patches["n_patches"]
    return {
        "kind": KIND,
        "run": {
            "name": folder.path.absolute().name,
            "dsc": open_store(folder.model).attributes["dsc_version"],
            "atoms_sha256": model.sha256,
        },
        "configuration": {**asdict(model.config), "n_angles": model.config.resolve(model.basis)},
        "basis": {"name": basis.name, "n_coords": basis.n_coords, "n_pixels": basis.n_pixels},
        "patches": {
            "path": folder.options().get("patches"),
            "diameter": basis.diameter,
            **{n: model.patches[n] for n in ("n_patches", "center", "unit", "fingerprint")},
        },
        "numerics": model.numerics,
        "report": {
            "dsc": __version__,
            "python": platform.python_version(),
            "matplotlib": matplotlib.__version__,
            "system": f"{platform.system()} {platform.machine()}",
            "n_cores": os.cpu_count(),
        },
        "history": model.history.tolist(),
        "shares": shares if is_known else None,  # of the energy left, after each update
        "error": {
            "share": model.share if is_known else None,
            "first": first,
            "last": last,
            "ratio": last / first if first > 0 else None,
            "n_updates": len(model.history) - 1,
        },
        "atoms": {
            "order": order.tolist(),
            "count": model.count[order].tolist(),
            "total": total,
            "n_atoms": len(order),
            "n_unused": model.n_unused,
            "even": total / len(order),
            "per_patch": total / n_patches,
        },
        "notes": folder.notes,
        "time": time_facts(folder.events()),
    }


def time_facts(events: list[dict[str, Any]]) -> dict[str, Any]:
    """Seconds of every pass over the patches, and what they add up to.

    The first pass of each session (a run may have been resumed) also reads the patches and loads or
    compiles the loops; the last one only codes. What no pass was busy with went into saving.
    """
    passes = _passes(events)
    first, updates, final = (
        [one["seconds"] for one in passes if one["kind"] == kind]
        for kind in ("first", "update", "final")
    )
    rates = [one["patches_per_second"] for one in passes if one["kind"] == "update"]
    ended = [event["time"] for event in events if event["event"] == "end"]
    last = [event["time"] for event in events if event["event"] == "iteration"]
    parts = {
        "first": sum(first),
        "updates": sum(updates),
        "final": sum(final),
        "saving": max(0.0, ended[-1] - last[-1]) if ended and last else 0.0,
    }
    return {
        "passes": passes,
        "n_passes": len(passes),
        "n_sessions": sum(event["event"] == "start" for event in events),
        **parts,
        "total": sum(parts.values()),
        "update_median": statistics.median(updates) if rates else None,
        "patches_per_second": statistics.median(rates) if rates else None,
        "began": _moment(events[0]["time"]) if events else None,
        "ended": _moment(ended[-1]) if ended else None,
    }


def _passes(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One entry per pass in the order they were made; kind is first, update or final."""
    kept = ("iteration", "seconds", "patches_per_second", "mse")
    passes = []
    fresh = True
    for event in events:
        if event["event"] == "start":
            fresh = True
        elif event["event"] == "iteration":
            kind = "first" if fresh else "final" if event["finished"] else "update"
            fresh = False
            passes.append({"kind": kind, **{name: event[name] for name in kept}})
    return passes


def _moment(seconds: float) -> str:
    moment = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    return moment.strftime("%Y-%m-%d %H:%M:%S UTC")
