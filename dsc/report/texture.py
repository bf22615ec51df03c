"""`write_texture_report`: a texture evaluation as one page, with plots and numbers beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dsc.errors import DscError
from dsc.files import write_whole
from dsc.report import texture_figures as figures
from dsc.report import texture_gallery as gallery
from dsc.report import texture_sections as sections
from dsc.report.figures import Drawn, draw
from dsc.report.numbers import Numbers
from dsc.report.page import page
from dsc.report.sections import STYLE as REPORT_STYLE
from dsc.report.texture_images import ClassMap, ConfusedPair, Pictures, class_colours

__all__ = [
    "KIND",
    "PLOTS",
    "ClassMap",
    "ConfusedPair",
    "Pictures",
    "class_colours",
    "write_texture_report",
]

KIND = "dsc texture report"  # by which we know a report.json of ours
PLOTS = ("angles", "confusion", "pairs", "maps", "atoms", "history")


def write_texture_report(folder: Path, facts: dict[str, Any], pictures: Pictures) -> Path:
    """Write FOLDER/index.html, report.json and the plots; a report of ours is replaced.

    Parameters
    ----------
    folder
        Made if it does not exist.
    facts
        All numbers of the page, which go to report.json as they are. The first of the `methods`
        is this run; those whose source says "cited" were not run here.
    pictures
        What is shown beside them.

    Returns
    -------
    The page.
    """
    plain: dict[str, Any] = json.loads(json.dumps(facts))  # numbers on the page as in the file
    _check(folder, plain, pictures)
    drawn = {name: draw(figure) for name, figure in _figures(plain, pictures).items()}
    text = page(
        plain["title"],
        _body(Numbers(plain), pictures, drawn),
        style=REPORT_STYLE + sections.STYLE + gallery.STYLE,
    )
    _write(folder, plain, drawn, text)
    return folder / "index.html"


def _figures(facts: dict[str, Any], pictures: Pictures) -> dict[str, Any]:
    """Every plot by the name of its files."""
    names = facts["label_names"]
    plots = {
        "confusion": figures.plot_confusion(facts["confusion"], names),
        "atoms": figures.plot_atoms(pictures.atoms, names),
    }
    if facts["accuracy_by_angle"]:
        plots["angles"] = figures.plot_angles(facts["accuracy_by_angle"], facts["accuracy"])
    if any(facts["history"]):
        plots["history"] = figures.plot_errors(facts["history"], names)
    if pictures.maps:
        plots["maps"] = figures.plot_maps(pictures, len(names))
    if pictures.confused:
        plots["pairs"] = figures.plot_pairs(pictures)
    return plots


def _body(show: Numbers, pictures: Pictures, drawn: dict[str, Drawn]) -> list[str]:
    return [
        sections.lead(show),
        sections.key_figures(show),
        sections.angles(show, drawn.get("angles")),
        sections.methods(show),
        sections.confusion(show),
        gallery.confused(show, pictures),
        gallery.class_maps(show, pictures),
        gallery.atoms(show, pictures),
        gallery.errors(show, drawn.get("history")),
        gallery.what_was_run(show),
    ]


def _check(folder: Path, facts: dict[str, Any], pictures: Pictures) -> None:
    """Refuse what does not fit together, and to overwrite what is no report of ours."""
    n_labels = len(facts["label_names"])
    told = {(pair["true"], pair["predicted"]) for pair in facts["confused_pairs"]}
    shapes = {
        "rows of confusion": len(facts["confusion"]),
        "histories": len(facts["history"]) or n_labels,  # there may be none
        "dictionaries of atoms": len(pictures.atoms),
        "dictionaries of counts": len(pictures.count),
    }
    problems = [
        f"found {found} {what}, need {n_labels}, one for each class"
        for what, found in shapes.items()
        if found != n_labels
    ]
    problems += [
        f"found pictures of {pair.true} taken for {pair.predicted}, which is not in confused_pairs"
        for pair in pictures.confused
        if (pair.true, pair.predicted) not in told
    ]
    if facts["kind"] != KIND:
        problems.append(f"found kind {facts['kind']!r}, need {KIND!r}")
    taken = [] if _ours(folder) else [path for path in _files(folder) if path.exists()]
    if taken:
        problems.append(
            f"{taken[0]}: exists and is no texture report of dsc; it is not overwritten: choose "
            "another folder, or remove it"
        )
    if problems:
        raise DscError("; ".join(problems))


def _ours(folder: Path) -> bool:
    try:
        content = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(content, dict) and content.get("kind") == KIND


def _files(folder: Path) -> list[Path]:
    """Every file that a report may have."""
    plots = [folder / f"{name}.{suffix}" for name in PLOTS for suffix in ("png", "svg")]
    return [folder / "report.json", *plots, folder / "index.html"]


def _write(folder: Path, facts: dict[str, Any], drawn: dict[str, Drawn], text: str) -> None:
    """Write all files, the page last: where there is a page, all of it is there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "index.html").unlink(missing_ok=True)
        write_whole(
            folder / "report.json", json.dumps(facts, indent=1, ensure_ascii=False).encode()
        )
        for path in _files(folder)[1:]:
            path.unlink(missing_ok=True)
        for name, one in drawn.items():
            write_whole(folder / f"{name}.png", one.png)
            write_whole(folder / f"{name}.svg", one.svg)
        write_whole(folder / "index.html", text.encode())
    except OSError as error:
        raise DscError(f"{folder}: the report cannot be written: {error}") from error
