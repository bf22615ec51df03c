"""The documentation site: these notebooks, the API from its docstrings, the commands.

`sphinx-build notebooks notebooks/_build/html` runs the notebooks and writes the site;
nothing is downloaded. A new notebook is a file here and a line in index.md.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from html import escape
from typing import Any

from docutils.nodes import SkipNode
from matplotlib.font_manager import FontProperties
from matplotlib.path import Path
from matplotlib.textpath import TextPath
from sphinx.domains.python import PyObject

import dsc

project = html_title = "dsc"
release = version = dsc.__version__
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_click",
]
exclude_patterns = ["_build", "**.ipynb_checkpoints"]
default_role = "py:obj"  # `name` is a link where there is something of that name

# notebooks are stored without outputs, so all of them run, each in its own folder
nb_execution_mode = "auto"
nb_execution_in_temp = True
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_merge_streams = True
myst_enable_extensions = ["dollarmath"]

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # docstrings say shapes and units, hints are for mypy
autodoc_preserve_defaults = True
napoleon_google_docstring = False
napoleon_attr_annotations = False
napoleon_use_ivar = True
napoleon_use_rtype = False

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_math_renderer = "drawn"
html_copy_source = html_show_sphinx = html_show_copyright = False

Lines = list[str]


def prepare(_app: Any, _kind: str, _name: str, value: Any, _: Any, lines: Lines) -> None:
    """Fit our docstrings to Napoleon, which comes next.

    What a function returns is a sentence, not a list of types. Names that share a
    description are taken apart. A configuration class keeps the words about its fields
    in their metadata, where the command line finds them too.
    """
    text = "\n".join(lines)
    text = re.sub(r"(?<=^Returns\n-------\n)(?:.+\n?)+", _one_line, text, flags=re.M)
    text = re.sub(r"^(\w+(?:, \w+)+)\n((?: {4}.+\n?)+)", _one_each, text, flags=re.M)
    if isinstance(value, type) and dataclasses.is_dataclass(value):
        fields = [one for one in dataclasses.fields(value) if "help" in one.metadata]
        if fields:
            text = text.split("Attributes are documented")[0].rstrip()
            text += "\n\nAttributes\n----------\n"
            text += "".join(f"{f.name}\n    {f.metadata['help']}\n" for f in fields)
    lines[:] = text.split("\n")


def _one_line(found: re.Match[str]) -> str:
    return " ".join(found[0].split()) + "\n"


def _one_each(found: re.Match[str]) -> str:
    return "".join(f"{name}\n{found[2].rstrip()}\n" for name in found[1].split(", "))


def mend(_app: Any, kind: str, _name: str, value: Any, _: Any, lines: Lines) -> None:
    """Set sentences again that Napoleon took for types.

    What a function returns is no type to be set in italics, and what a property is does
    not end at a colon.
    """
    if kind == "property":
        lines[:] = (inspect.getdoc(value) or "").split("\n")
    lines[:] = [re.sub(r"^(:returns: )\*(.*)\*$", r"\1\2", line) for line in lines]


def hide_private(*event: Any) -> tuple[str | None, Any]:
    """Leave private fields of dataclasses out of their signature."""
    signature, returns = event[-2:]
    return signature and re.sub(r", _\w+=[^,)]+", "", signature), returns


def draw_math(self: Any, node: Any) -> None:
    """Draw a formula in the colour of the text: needs no script, font or download."""
    tex, em = " ".join(node.astext().split()), 100
    font = FontProperties(math_fontfamily="cm")
    path = TextPath((0, 0), f"${tex}$", size=em, prop=font)
    pen = {Path.MOVETO: "M", Path.LINETO: "L", Path.CURVE3: "Q", Path.CURVE4: "C"}
    strokes = []
    for points, code in path.iter_segments(simplify=False):
        flipped = (points.reshape(-1, 2) * (1, -1)).round().astype(int)  # y is down
        strokes.append(
            pen[code] + " ".join(map(str, flipped.flat)) if code in pen else "Z"
        )
    box = path.get_extents().padded(4)
    is_block = node.tagname == "math_block"
    self.body.append(
        f'<svg class="math-{"block" if is_block else "inline"}" role="img" '
        f'aria-label="{escape(tex)}" '
        f'style="width:{box.width / em:.3f}em;vertical-align:{box.y0 / em:.3f}em" '
        f'viewBox="{box.x0:.0f} {-box.y1:.0f} {box.width:.0f} {box.height:.0f}">'
        f'<path fill="currentColor" d="{"".join(strokes)}"/></svg>'
    )
    raise SkipNode


def setup(app: Any) -> None:
    """Napoleon has the usual priority of 500."""
    app.connect("autodoc-process-docstring", prepare, priority=400)
    app.connect("autodoc-process-docstring", mend, priority=600)
    app.connect("autodoc-process-signature", hide_private)
    app.add_html_math_renderer("drawn", (draw_math, None), (draw_math, None))
    for field in PyObject.doc_field_types:
        if field.name == "variable":
            field.label = "Attributes"  # Sphinx calls them variables
