"""One self-contained HTML page: opens from disk, light and dark, readable on a phone."""

from __future__ import annotations

import base64
import html
import io

from matplotlib.figure import Figure

POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"

STYLE = """
:root { color-scheme: light dark; --ink: #1c1e21; --paper: #fff; --line: #d5d8dc; --soft: #5c636a;
  --accent: #2f6fb5; --second: #c4651a; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8eaed; --paper: #17191c; --line: #3a3f45; --soft: #a0a7ae;
    --accent: #7fb3ef; --second: #f0a35e; }
  img.plot { filter: invert(1) hue-rotate(180deg); }
}
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 60rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; }
h1, h2 { line-height: 1.2; } h2 { margin-top: 2.5rem; }
p.note, figcaption, .soft { color: var(--soft); }
h1 { overflow-wrap: anywhere; }
figure { margin: 1rem 0; } img { max-width: 100%; height: auto; }
table { border-collapse: collapse; } .scroll { overflow-x: auto; }
th, td { text-align: left; padding: .35rem .9rem .35rem 0; border-bottom: 1px solid var(--line); }
td.number { font-variant-numeric: tabular-nums; text-align: right; }
code { font-size: .92em; }
"""


def figure_tag(figure: Figure, caption: str, *, plot: bool = False) -> str:
    """A figure as an image inside the page; `plot` marks line art, which dark mode inverts."""
    data = io.BytesIO()
    figure.savefig(data, format="png", transparent=True)
    code = base64.b64encode(data.getvalue()).decode()
    kind = ' class="plot"' if plot else ""
    text = html.escape(caption)
    return (
        f'<figure><img{kind} alt="{text}" src="data:image/png;base64,{code}">'
        f"<figcaption>{text}</figcaption></figure>"
    )


def table_tag(header: list[str], rows: list[list[str]]) -> str:
    """A table; all but the first column are numbers."""
    head = "".join(f"<th>{html.escape(cell)}</th>" for cell in header)
    body = "".join(
        f"<tr><td>{html.escape(row[0])}</td>"
        + "".join(f'<td class="number">{html.escape(cell)}</td>' for cell in row[1:])
        + "</tr>"
        for row in rows
    )
    return f'<div class="scroll"><table><tr>{head}</tr>{body}</table></div>'


def page(title: str, body: list[str], style: str = "") -> str:
    """The whole page, which browsers keep from loading anything; `style` adds rules of its own."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(title)}</title><style>{STYLE}{style}</style></head>\n<body>\n"
        f"<h1>{html.escape(title)}</h1>\n" + "\n".join(body) + "\n</body></html>\n"
    )
