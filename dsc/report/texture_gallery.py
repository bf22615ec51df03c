"""The sections of a texture report after its numbers: pairs, class maps, atoms, errors, run."""

from __future__ import annotations

import html

import numpy as np
from numpy.typing import NDArray

from dsc.report.disks import data_url
from dsc.report.figures import Drawn
from dsc.report.numbers import Numbers
from dsc.report.texture_images import (
    COLUMNS,
    ClassMap,
    ConfusedPair,
    Floats,
    Pictures,
    atom_strip,
    class_colours,
    hex_colour,
    label_shares,
    small_grey,
    small_map,
)
from dsc.report.texture_sections import derived, facts_table, plot

FIRST_CLASSES = 5  # of a map's legend; the others are folded

STYLE = """
.cards { display: grid; gap: 1.6rem 2rem; margin: 1rem 0; align-items: start;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 18rem), 1fr)); }
.cards > figure { margin: 0; min-width: 0; overflow-wrap: anywhere; }
.cards .row { display: grid; gap: .5rem; align-items: start; }
.cards .two { grid-template-columns: 1fr 1fr; }
.cards .three { grid-template-columns: 1fr 1fr 1fr; }
.cards .row > div { min-width: 0; font-size: .8rem; line-height: 1.3; color: var(--soft); }
.cards .row img { display: block; width: 100%; margin-bottom: .25rem; }
.cards img.map { image-rendering: pixelated; }
.cards figcaption { margin-bottom: .4rem; font-size: .92rem; line-height: 1.35; }
.bad { color: var(--second); font-weight: 600; }
ul.legend { list-style: none; padding: 0; margin: .4rem 0 0; font-size: .85rem; line-height: 1.5; }
ul.legend li { display: flex; gap: .4rem; align-items: center; }
ul.legend li > :nth-child(2) { flex: 1; min-width: 0; } ul.legend .legend-box { flex: none; }
.cards details { margin: .1rem 0; font-size: .85rem; }
.strips { display: grid; gap: .9rem 2.2rem; margin: 1rem 0; align-items: start;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 20rem), 1fr)); }
.strips details { margin: 0; min-width: 0; }
.strips summary { color: var(--ink); overflow-wrap: anywhere; }
.strips img { display: block; width: 100%; image-rendering: pixelated; margin-top: .3rem;
  filter: drop-shadow(0 0 .6px var(--soft)); }
.strips p { font-size: .82rem; color: var(--soft); margin: .3rem 0 0; }
"""


def confused(show: Numbers, pictures: Pictures) -> str:
    """The classes that were confused most, with examples."""
    heading = "<h2>Most confused classes</h2>"
    if not show.facts["confused_pairs"]:
        return heading + "<p>Nothing was confused: every test picture is recognised.</p>"
    cards = "".join(_pair(show, i, one, pictures) for i, one in enumerate(pictures.confused))
    known = [(pair.true, pair.predicted) for pair in pictures.confused]
    rest = "".join(
        f"<li>{_pair_title(show, i)}</li>"
        for i, pair in enumerate(show.facts["confused_pairs"])
        if (pair["true"], pair["predicted"]) not in known
    )
    title = "The others" if known else "All of them"
    listed = f"<details><summary>{title}</summary><ul>{rest}</ul></details>" if rest else ""
    note = (
        '<p class="note">Most often first: a test picture taken for another class, the '
        "training picture whose histogram is nearest to its own, and a training picture of the "
        "true class.</p>"
    )
    return heading + (f'{note}<div class="cards">{cards}</div>' if cards else "") + listed


def _pair_title(show: Numbers, i: int) -> str:
    at = f"confused_pairs.{i}"
    many = "picture" if show.facts["confused_pairs"][i]["count"] == 1 else "pictures"
    return (
        f'{show(at + ".true")} taken for <span class="bad">{show(at + ".predicted")}</span>: '
        f"{show(at + '.count', ',')} {many}"
    )


def _pair(show: Numbers, i: int, pair: ConfusedPair, pictures: Pictures) -> str:
    told = [(one["true"], one["predicted"]) for one in show.facts["confused_pairs"]]
    title = _pair_title(show, told.index((pair.true, pair.predicted)))
    true, predicted = html.escape(pair.true), html.escape(pair.predicted)
    shown = (
        (pair.query, f"test picture, {true}", derived(f"confused.{i}.query_name", pair.query_name)),
        (
            pair.nearest,
            f"nearest, {predicted}",
            derived(f"confused.{i}.nearest_name", pair.nearest_name),
        ),
        (pair.true_example, f"training picture, {true}", ""),
    )
    words = ("test picture", "nearest training picture", "a training picture of the true class")
    images = "".join(
        f'<div><img alt="{alt}" src="{data_url(small_grey(grey, pictures.side))}">'
        f"{word}<br>{name}</div>"
        for (grey, alt, name), word in zip(shown, words, strict=True)
    )
    return f'<figure><figcaption>{title}</figcaption><div class="row three">{images}</div></figure>'


def class_maps(show: Numbers, pictures: Pictures) -> str:
    """Test pictures beside the class of each of their patches."""
    if not pictures.maps:
        return ""
    colours = class_colours(len(show.facts["label_names"]))
    cards = "".join(
        _map(show, i, one, colours, pictures.side) for i, one in enumerate(pictures.maps)
    )
    return (
        '<h2>Class maps</h2><p class="note">Test pictures, and beside each the class whose '
        "dictionary codes the patch around each pixel best, with the share of the pixels that each "
        "class has. The margin, half a patch wide, has no class.</p>"
        f'<div class="cards">{cards}</div>'
    )


def _map(show: Numbers, i: int, one: ClassMap, colours: NDArray[np.uint8], side: int) -> str:
    shares = label_shares(one.labels, len(colours))
    entries = [_legend_entry(show, i, label, share, colours) for label, share in shares]
    more = "".join(entries[FIRST_CLASSES:])
    folded = ""
    if more:
        folded = f'<details><summary>more</summary><ul class="legend">{more}</ul></details>'
    true = derived(f"maps.{i}.true", one.true)
    given = ", recognised"
    if one.predicted != one.true:
        given = (
            f', taken for <span class="bad">{derived(f"maps.{i}.predicted", one.predicted)}</span>'
        )
    name = html.escape(one.name)
    return (
        f"<figure><figcaption>{true}{given}<br>"
        f'<span class="soft">{derived(f"maps.{i}.name", one.name)}</span></figcaption>'
        f'<div class="row two"><div><img alt="{name}" '
        f'src="{data_url(small_grey(one.grey, side))}"></div>'
        f'<div><img class="map" alt="classes of the patches of {name}" '
        f'src="{data_url(small_map(one, colours, side))}"></div></div>'
        f'<ul class="legend">{"".join(entries[:FIRST_CLASSES])}</ul>{folded}</figure>'
    )


def _legend_entry(
    show: Numbers, i: int, label: int, share: float, colours: NDArray[np.uint8]
) -> str:
    text = f"{100 * share:.1f} %" if share >= 0.0005 else "< 0.1 %"
    return (
        f'<li><span class="legend-box" style="background: {hex_colour(colours[label])}"></span>'
        f"{show(f'label_names.{label}')}{derived(f'maps.{i}.share.{label}', text)}</li>"
    )


def atoms(show: Numbers, pictures: Pictures) -> str:
    """The atoms of every class, the first of them open, the others folded."""
    n_drawn = pictures.n_atoms_drawn
    some = "" if n_drawn == pictures.atoms.shape[1] else " Only the most used are drawn."
    strips = "".join(_strip(show, label, pictures, n_drawn) for label in range(len(pictures.atoms)))
    return (
        '<h2>Atoms</h2><p class="note">Of each class the atoms that are used most; open a class '
        f"to see its others, by use.{some} Zero is mid-grey, and each atom has its own "
        f'contrast.</p><div class="strips">{strips}</div>'
    )


def _strip(show: Numbers, label: int, pictures: Pictures, n_drawn: int) -> str:
    class_atoms, count = pictures.atoms[label, :n_drawn], pictures.count[label]
    name = html.escape(show.facts["label_names"][label])
    uses = (
        f"Uses of an atom: at most {derived(f'count.{label}.most', f'{int(count.max()):,}')}, "
        f"at least {derived(f'count.{label}.least', f'{int(count.min()):,}')}."
    )
    others = ""
    if n_drawn > COLUMNS:
        others = _strip_image(class_atoms[COLUMNS:], f"the other atoms of {name}")
    return (
        f"<details><summary>{show(f'label_names.{label}')}"
        + _strip_image(class_atoms[:COLUMNS], f"the most used atoms of {name}")
        + f"</summary>{others}<p>{uses}</p></details>"
    )


def _strip_image(class_atoms: Floats, alt: str) -> str:
    return f'<img alt="{alt}" src="{data_url(atom_strip(class_atoms))}">'


def errors(show: Numbers, drawn: Drawn | None) -> str:
    """Error of the dictionaries over iterations."""
    if drawn is None:
        return ""
    rows = "".join(
        f'<tr><td>{show(f"label_names.{i}")}</td><td class="number">'
        f'{show(f"history.{i}.0", ".4g")}</td><td class="number">'
        f"{show(f'history.{i}.{len(line) - 1}', '.4g')}</td></tr>"
        for i, line in enumerate(show.facts["history"])
        if line
    )
    table = (
        "<details><summary>First and last values</summary>"
        '<table class="angles"><tr><th scope="col">class</th><th scope="col">first</th>'
        f'<th scope="col">last</th></tr>{rows}</table></details>'
    )
    return (
        "<h2>Error of the dictionaries</h2>"
        + plot(drawn, "error per pixel of each class's dictionary after each update")
        + '<p class="note">Mean squared error per pixel on the training patches of each class, one '
        "line per class; the highest and the lowest are named.</p>" + table
    )


def what_was_run(show: Numbers) -> str:
    """Configuration, times, versions."""
    facts = show.facts
    configuration = [(name, show(f"config.{name}")) for name in facts["config"]]
    times = [(name, show(f"seconds.{name}", ",.1f") + "&nbsp;s") for name in facts["seconds"]]
    times += [
        ("patches labelled", show("n_patches_labelled", ",")),
        ("patches per second", show("patches_per_second", ",.0f")),
    ]
    if facts["pruned"] is not None:
        times.append(("pairs pruned", show("pruned", ".2%")))
    versions = [("dsc", show("version"))]
    versions += [(name, show(f"numerics.{name}")) for name in facts["numerics"]]
    pruned = ""
    if facts["pruned"] is not None:
        pruned = (
            '<p class="note">A pair of an atom and a patch is pruned where none of its angles was '
            "evaluated.</p>"
        )
    return (
        '<h2>What was run</h2><div class="pair"><div>'
        + facts_table("Configuration", configuration)
        + "</div><div>"
        + facts_table("Time", times)
        + pruned
        + "</div><div>"
        + facts_table("Versions and processor", versions)
        + "</div></div>"
    )
