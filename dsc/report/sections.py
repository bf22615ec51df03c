"""The old rules of the learn page, which the texture pages still import."""

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
