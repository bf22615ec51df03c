"""`write_report`: a finished run folder as one HTML page, with its plots and numbers beside it."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dsc.dictionary import Dictionary
from dsc.dictionary.run import RunFolder, from_toml
from dsc.errors import DscError
from dsc.files import write_whole
from dsc.patches import StoredPatches
from dsc.report import disks, sections
from dsc.report import figures as plots
from dsc.report.facts import KIND, run_facts, sample_facts
from dsc.report.numbers import Numbers
from dsc.report.page import page
from dsc.report.sample import Shown, code_sample, find_patches, pick_examples, pick_worst, show

PLOTS = ("error", "time", "atoms", "use", "angles", "examples", "worst")


def write_report(
    run: str | os.PathLike[str], out: str | os.PathLike[str] | None = None
) -> dict[str, Any]:
    """Write the report of a finished run; a report of ours that is there already is replaced.

    Parameters
    ----------
    run
        A run folder that `dsc.learn` finished.
    out
        The HTML file; its numbers and plots go beside it, named after it (page.html, page.json,
        page-atoms.png, …). By default RUN/report/index.html, report.json, atoms.png, …

    Returns
    -------
    The numbers of the page, as in the JSON file.
    """
    folder = RunFolder(Path(run))
    _check_run(folder)
    files = _Files.of(folder.path, None if out is None else Path(out))
    files.check()
    model = Dictionary.load(folder.model)
    facts, shown = _gather(folder, model)
    figures = _figures(facts, model, shown)
    text = _page(facts, model, shown, figures)
    files.write(facts, figures, text)
    return facts


@dataclass(frozen=True)
class _Files:
    """Where the parts of a report go.

    Attributes
    ----------
    html, json
        The page and its numbers.
    prefix
        What the names of the plots begin with.
    """

    html: Path
    json: Path
    prefix: str

    @staticmethod
    def of(run: Path, out: Path | None) -> _Files:
        if out is None:
            return _Files(run / "report" / "index.html", run / "report" / "report.json", "")
        if out.suffix.lower() not in (".html", ".htm"):
            raise DscError(f"{out}: found suffix {out.suffix!r}, need a file that ends in .html")
        return _Files(out, out.with_suffix(".json"), f"{out.stem}-")

    def plot(self, name: str, suffix: str) -> Path:
        """The file of a plot."""
        return self.html.parent / f"{self.prefix}{name}.{suffix}"

    def all(self) -> list[Path]:
        """Every file that a report may have."""
        images = [self.plot(name, suffix) for name in PLOTS for suffix in ("png", "svg")]
        return [self.json, *images, self.html]

    def check(self) -> None:
        """Refuse to overwrite what is no report of ours."""
        if self._ours():
            return
        found = [path for path in self.all() if path.exists()]
        if found:
            raise DscError(
                f"{found[0]}: exists and is no report of dsc; it is not overwritten: choose "
                "another --out, or remove it"
            )

    def _ours(self) -> bool:
        try:
            content = json.loads(self.json.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return False
        return isinstance(content, dict) and content.get("kind") == KIND

    def write(self, facts: dict[str, Any], figures: dict[str, plots.Drawn], text: str) -> None:
        """Write all files, the page last: where there is a page, all of it is there."""
        try:
            self.html.parent.mkdir(parents=True, exist_ok=True)
            self.html.unlink(missing_ok=True)
            write_whole(self.json, json.dumps(facts, indent=1, ensure_ascii=False).encode())
            for path in self.all()[1:]:
                path.unlink(missing_ok=True)
            for name, drawn in figures.items():
                write_whole(self.plot(name, "png"), drawn.png)
                write_whole(self.plot(name, "svg"), drawn.svg)
            write_whole(self.html, text.encode())
        except OSError as error:
            raise DscError(f"{self.html}: the report cannot be written: {error}") from error


def _check_run(folder: RunFolder) -> None:
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


def _gather(folder: RunFolder, model: Dictionary) -> tuple[dict[str, Any], dict[str, Shown]]:
    """All numbers, and the patches to be shown (none if the patch set cannot be had)."""
    facts = run_facts(folder, model)
    source = find_patches(folder.path, from_toml(folder.path / "run.toml"), model)
    if not isinstance(source, str):
        try:
            sampled, shown = _look_at(source, model)
            return {**facts, "sample": sampled, "sample_missing": None}, shown
        except DscError as error:  # a part of the set is missing or damaged
            source = f"The patches cannot be read: {error}"
    return {**facts, "sample": None, "sample_missing": source}, {}


def _look_at(source: StoredPatches, model: Dictionary) -> tuple[dict[str, Any], dict[str, Shown]]:
    """Code some patches: their numbers, and those to be shown."""
    sample = code_sample(source, model)
    places = {
        "examples": pick_examples(sample, model.config.seed),
        "worst": pick_worst(source, sample),
    }
    shown = {name: show(source, model, sample, some) for name, some in places.items()}
    return sample_facts(source, model, sample, **places), shown


def _figures(
    facts: dict[str, Any], model: Dictionary, shown: dict[str, Shown]
) -> dict[str, plots.Drawn]:
    """Every plot by the name of its files."""
    atoms = facts["atoms"]
    grid = disks.atom_shades(model.atoms_pixels[atoms["order"][: sections.MOST_ATOMS]])
    figures = {
        "error": plots.plot_history(facts["history"]),
        "atoms": disks.plot_grid(grid, [f"{n:,}" for n in atoms["count"][: sections.MOST_ATOMS]]),
        "use": plots.plot_use(atoms["count"], atoms["even"]),
    }
    if facts["time"]["passes"]:
        figures["time"] = plots.plot_time(facts["time"]["passes"])
    if facts["sample"] is not None and model.n_angles > 1:
        figures["angles"] = plots.plot_angles(facts["sample"]["angles"])
    for name, some in shown.items():
        figures[name] = disks.plot_triples(some)
    return {name: plots.draw(figure) for name, figure in figures.items()}


def _page(
    facts: dict[str, Any],
    model: Dictionary,
    shown: dict[str, Shown],
    figures: dict[str, plots.Drawn],
) -> str:
    number = Numbers(facts)
    grid = disks.atom_shades(model.atoms_pixels[facts["atoms"]["order"]])
    body = [
        sections.lead(number),
        sections.key_figures(number),
        sections.error_and_time(number, figures["error"], figures.get("time")),
        sections.atoms(number, grid),
        sections.use(number, figures["use"], figures.get("angles")),
        sections.examples(number, *(disks.triple_shades(shown[n]) for n in ("examples", "worst")))
        if shown
        else sections.no_examples(facts["sample_missing"]),
        sections.what_was_run(number),
    ]
    return page(f"Run {facts['run']['name']}", body, style=sections.STYLE)
