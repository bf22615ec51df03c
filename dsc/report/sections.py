"""The sections of the report's page, from the numbers in report.json and the pictures."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

from dsc.report.disks import Shades, data_url
from dsc.report.figures import Drawn, themed_url
from dsc.report.numbers import Numbers, look_up

MOST_ATOMS = 500  # drawn on the page

STYLE = """
body { max-width: 66rem; }
.key { display: grid; gap: .75rem; grid-template-columns: repeat(auto-fit, minmax(9rem, 1fr));
  margin: 1.5rem 0; padding: 0; }
.key div { display: flex; flex-direction: column-reverse; justify-content: flex-end;
  border-top: 3px solid var(--accent); padding-top: .4rem; }
.key dd { margin: 0; font-size: 1.45rem; font-variant-numeric: tabular-nums; line-height: 1.2; }
.key dt { color: var(--soft); font-size: .88rem; }
.pair { display: grid; gap: 0 2.5rem; align-items: start;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); }
.pair > * { min-width: 0; }
figure.plot img { width: 100%; max-width: 36rem; }
table.facts { width: 100%; margin-bottom: 1rem; table-layout: fixed; }
table.facts caption { text-align: left; font-weight: 600; padding: .5rem 0; }
table.facts th { font-weight: normal; color: var(--soft); vertical-align: top; width: 38%; }
table.wide th { width: 65%; }
table.facts td { overflow-wrap: anywhere; padding-right: 0; font-variant-numeric: tabular-nums; }
.disks { display: grid; gap: .7rem .6rem; padding: 0; margin: 1rem 0;
  grid-template-columns: repeat(auto-fill, minmax(4rem, 1fr)); }
.triples { display: grid; gap: 1.1rem; margin: 1rem 0; grid-template-columns: 1fr 1fr; }
.disks figure, .triples figure { margin: 0; min-width: 0; }
.disks img, .triples img { display: block; width: 100%; image-rendering: pixelated;
  filter: drop-shadow(0 0 .8px var(--soft)); }
.triples .row { display: grid; grid-template-columns: repeat(3, 1fr); gap: .35rem; }
.disks figcaption { text-align: center; font-size: .82rem; font-variant-numeric: tabular-nums; }
.triples figcaption { font-size: .82rem; line-height: 1.35; margin-top: .3rem;
  overflow-wrap: anywhere; font-variant-numeric: tabular-nums; }
@media (min-width: 45rem) {
  .disks { grid-template-columns: repeat(auto-fill, minmax(5.6rem, 1fr)); }
  .triples { gap: 1.4rem 2rem; grid-template-columns: repeat(auto-fill, minmax(13rem, 1fr)); }
}
.ink { color: var(--ink); } .whole { white-space: nowrap; }
details { margin: .5rem 0 1rem; } summary { cursor: pointer; color: var(--soft); }
p.missing { border-left: 3px solid var(--second); padding-left: .8rem; }
"""


def lead(show: Numbers) -> str:
    """What it is, in a sentence."""
    configuration, patches = show.facts["configuration"], show.facts["patches"]
    kind = "standard" if configuration["n_angles"] == 1 else "rotational"
    normalised = [
        text for name, text in (("center", "mean removed"), ("unit", "unit norm")) if patches[name]
    ]
    return (
        f"<p>A {kind} dictionary in the {show('basis.name')} basis, learned by "
        f"<code>{show('configuration.update')}</code> in "
        f"{_count(show, 'error.n_updates', 'iteration')} from "
        f"{show('patches.n_patches', ',')} patches of diameter {show('patches.diameter')}"
        f"{''.join(', ' + text for text in normalised)}.</p>"
    )


def key_figures(show: Numbers) -> str:
    """The line of large numbers at the top."""
    entries = [
        ("error per pixel", show("error.last", ".4g")),
        ("patches", show("patches.n_patches", ",")),
        ("atoms", show("configuration.n_atoms", ",")),
        ("atoms per patch", show("configuration.sparsity", ",")),
        ("angles", show("configuration.n_angles", ",")),
        ("seconds of learning", show("time.total", ",.1f")),
    ]
    cells = "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in entries)
    return f'<dl class="key">{cells}</dl>'


def what_was_run(show: Numbers) -> str:
    """Configuration, patches, versions and machine."""
    configuration = [(name, show(f"configuration.{name}")) for name in show.facts["configuration"]]
    patches = [
        ("patch set", show("patches.path")),
        ("patches", show("patches.n_patches", ",")),
        ("diameter", show("patches.diameter") + "&nbsp;pixels"),
        ("pixels in the disk", show("basis.n_pixels", ",")),
        ("coordinates", show("basis.n_coords", ",")),
        ("mean removed", show("patches.center")),
        ("unit norm", show("patches.unit")),
        ("fingerprint", f"<code>{show('patches.fingerprint')}</code>"),
    ]
    machine = [("dsc", show("run.dsc"))]
    machine += [(name, show(f"numerics.{name}")) for name in show.facts["numerics"]]
    machine += [
        ("began", show("time.began")),
        ("ended", show("time.ended")),
        ("atoms, SHA-256", f"<code>{show('run.atoms_sha256')}</code>"),
    ]
    report = [
        (name.replace("n_cores", "cores"), show(f"report.{name}")) for name in show.facts["report"]
    ]
    return (
        '<h2>What was run</h2><div class="pair"><div>'
        + _facts("Configuration", configuration)
        + "</div><div>"
        + _facts("Patches", patches)
        + "</div><div>"
        + _facts("Versions and processor of the run", machine)
        + "</div><div>"
        + _facts("This report was made with", report)
        + "</div></div>"
    )


def error_and_time(show: Numbers, history: Drawn, time: Drawn | None) -> str:
    """Error over iterations, and where the time went."""
    ratio = ""
    if show.facts["error"]["ratio"] is not None:
        ratio = f", {show('error.ratio', '.2%')} of the start"
    error = (
        "<div><h2>Error over iterations</h2>"
        + _plot(history, "error per pixel after each update of the dictionary")
        + f'<p class="note">Mean squared error per pixel of the disk, over all patches: '
        f"{show('error.first', '.4g')} at the start, {show('error.last', '.4g')} after "
        f"{_count(show, 'error.n_updates', 'update')}{ratio}.</p>" + _history_table(show) + "</div>"
    )
    return f'<div class="pair">{error}<div>{_time(show, time)}</div></div>'


def _time(show: Numbers, time: Drawn | None) -> str:
    heading = "<h2>Where the time went</h2>"
    if time is None:
        return heading + _missing("The run folder has no log of its passes.")
    rows = [
        ("first pass: reads patches, loads loops", show("time.first", ",.2f") + "&nbsp;s"),
        ("passes that update", show("time.updates", ",.2f") + "&nbsp;s"),
        ("final pass: only codes", show("time.final", ",.2f") + "&nbsp;s"),
        ("saving the model", show("time.saving", ",.2f") + "&nbsp;s"),
        ("together", show("time.total", ",.2f") + "&nbsp;s"),
    ]
    if show.facts["time"]["update_median"] is not None:
        rows += [
            ("an update pass, median", show("time.update_median", ",.3g") + "&nbsp;s"),
            ("patches per second, median", show("time.patches_per_second", ",.0f")),
        ]
    if show.facts["time"]["n_sessions"] > 1:
        rows.append(("sessions (the run was resumed)", show("time.n_sessions")))
    return heading + _plot(time, "seconds of each pass over the patches") + _facts("", rows, "wide")


def atoms(show: Numbers, disks: Shades) -> str:
    """The atoms as a grid, sorted by use."""
    order = show.facts["atoms"]["order"][:MOST_ATOMS]
    tiles = "".join(
        f'<figure title="atom {atom}"><img alt="atom {atom}" src="{data_url(disks[place])}">'
        f"<figcaption>{show(f'atoms.count.{place}', ',')}</figcaption></figure>"
        for place, atom in enumerate(order)
    )
    some = "" if len(order) == len(disks) else " Only the most used are drawn."
    unused = ""
    if show.facts["atoms"]["n_unused"]:
        unused = f" {show('atoms.n_unused', ',')} are not used."
    return (
        "<h2>Atoms</h2>"
        f'<p class="note">{show("atoms.n_atoms", ",")} atoms, most used first, with the number of '
        f"uses in the last pass over all patches.{unused}{some} Zero is mid-grey, and each atom "
        f'has its own contrast.</p><div class="disks">{tiles}</div>'
    )


def use(show: Numbers, bars: Drawn, angles: Drawn | None) -> str:
    """Use of atoms and of angles."""
    left = (
        _plot(bars, "uses of each atom, most used first")
        + f'<p class="note">{show("atoms.total", ",")} uses in all, '
        f"{show('atoms.per_patch', '.2f')} per patch; with even use each atom would have "
        f"{show('atoms.even', ',.0f')}.</p>"
    )
    if show.facts["configuration"]["n_angles"] == 1:
        right = '<p class="note">Atoms of this dictionary do not turn: there is one angle.</p>'
    elif angles is None:
        right = _missing("The angles are not known, since no patches could be coded (see below).")
    else:
        right = (
            _plot(angles, "polar histogram of the angles at which atoms are used")
            + '<p class="note">Angles at which the atoms, as drawn above, are turned '
            f"counter-clockwise: {show('sample.n_used', ',')} uses in "
            f"{show('sample.n_patches', ',')} patches. The dashed circle is even use. A preferred "
            "angle says how the atoms happen to lie as much as how the pictures do.</p>"
        )
    return (
        '<h2>Use of atoms and angles</h2><div class="pair">'
        f"<div>{left}</div><div>{right}</div></div>"
    )


def examples(show: Numbers, chosen: Sequence[Shades], worst: Sequence[Shades]) -> str:
    """A fixed choice of patches, and the worst-coded ones."""
    sample = show.facts["sample"]
    many = "all" if sample["is_all"] else "a random choice of"
    where = f" in {sample['examples'][0]['picture']}" if sample["n_pictures"] == 1 else ""
    return (
        "<h2>Patches, codings, residuals</h2>"
        f'<p class="note">Coded again for this report: {many} {show("sample.n_patches", ",")} '
        f"patches, mean error per pixel {show('sample.mse', '.4g')}, median "
        f"{show('sample.median', '.4g')}; {show('sample.left', '.2%')} of the energy is left. "
        "Below, a fixed random choice, each as patch, coding and residual in the same span of "
        "greys; a residual of zero is mid-grey. Under each: its error per pixel, the share of its "
        f"energy that is left, its number, and its place{html.escape(where)}.</p>"
        + _triples(show, "examples", chosen)
        + '<h2>Worst-coded patches</h2><p class="note">Of the patches coded for this report, those '
        "with the largest error, worst first; of patches that overlap, only the worst.</p>"
        + _triples(show, "worst", worst)
    )


def no_examples(reason: str) -> str:
    """What stands in their place where the patches cannot be had."""
    return "<h2>Patches, codings, residuals</h2>" + _missing(reason)


def _triples(show: Numbers, name: str, disks: Sequence[Shades]) -> str:
    """Patches beside their coding and residual; `name` is the list in the sample."""
    cards = []
    for place in range(len(disks[0])):
        at = f"sample.{name}.{place}"
        images = "".join(
            f'<img alt="{what}" title="{what}" src="{data_url(part[place])}">'
            for what, part in zip(("patch", "coding", "residual"), disks, strict=True)
        )
        picture = f"{show(at + '.picture')}<br>" if show.facts["sample"]["n_pictures"] > 1 else ""
        cards.append(
            f'<figure><div class="row">{images}</div><figcaption>'
            f'<span class="ink">{show(at + ".error", ".3g")}, {show(at + ".left", ".1%")}</span>'
            f"<br>{picture}patch {show(at + '.patch', ',')}, "
            f'<span class="whole">y {show(at + ".y")}, x {show(at + ".x")}</span>'
            "</figcaption></figure>"
        )
    return f'<div class="triples">{"".join(cards)}</div>'


def _history_table(show: Numbers) -> str:
    rows = "".join(
        f'<tr><td class="index">{i}</td><td class="number">{show(f"history.{i}", ".6g")}</td></tr>'
        for i in range(len(show.facts["history"]))
    )
    return (
        "<details><summary>All values</summary><table><tr><th>updates</th>"
        f"<th>error per pixel</th></tr>{rows}</table></details>"
    )


def _count(show: Numbers, name: str, word: str) -> str:
    """A number of things."""
    return f"{show(name, ',')} {word}{'' if look_up(show.facts, name) == 1 else 's'}"


def _plot(drawn: Drawn, text: str) -> str:
    image = f'<img alt="{html.escape(text)}" src="{themed_url(drawn)}">'
    return f'<figure class="plot">{image}</figure>'


def _facts(caption: str, rows: list[tuple[str, Any]], kind: str = "") -> str:
    title = f"<caption>{html.escape(caption)}</caption>" if caption else ""
    body = "".join(f"<tr><th>{html.escape(name)}</th><td>{value}</td></tr>" for name, value in rows)
    return f'<table class="facts {kind}">{title}{body}</table>'


def _missing(reason: str) -> str:
    return f'<p class="missing">{html.escape(reason)}</p>'
