"""Sphinx builds the pages of docs/, of benchmark/ and the README into one site: `make docs`. The source folder is the
repository, so that links between pages are the same here and where the repository is browsed.
"""

from __future__ import annotations

import re
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "docs")]

import gallery  # noqa: E402  beside this file

project, author, release = "rnea_ros", "rnea_ros maintainers", "0.2.0"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.mathjax",
              "sphinx.ext.viewcode", "sphinx_copybutton"]
root_doc = "docs/site"
include_patterns = ["docs/**.md", "docs/**.rst", "benchmark/*.md", "README.md", "CONTRIBUTING.md", "CHANGELOG.rst",
                    "QUALITY_DECLARATION.md"]
exclude_patterns = ["docs/api/templates", ".*", "build"]  # environments and builds have 100 000 files to walk through
html_static_path, html_css_files, html_js_files = ["static"], ["site.css"], ["tables.js"]
html_extra_path = ["root"]  # index.html, which opens the front page

html_theme = "furo"
html_title = "rnea_ros"
html_copy_source = html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True, "footer_icons": []}
highlight_language = "text"  # of code without a language: equations, commands
pygments_style, pygments_dark_style = "friendly", "github-dark"

myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence", "dollarmath"]
suppress_warnings = ["myst.header"]  # pages may begin sections below the first level
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_default_options = {"members": True, "inherited-members": True, "show-inheritance": True}
autosummary_generate = True
autodoc_type_aliases = {"ArrayLike": "ArrayLike", "Array": "Array"}
python_use_unqualified_type_names = True
templates_path = ["api/templates"]
autosummary_ignore_module_all = False
default_role = "code"

# One file of MathJax 3 beside the pages: equations need no network. Without the package it is loaded from a CDN.
if (mathjax := find_spec("sphinx-mathjax-offline")) and mathjax.submodule_search_locations:
    html_static_path.append(str(Path(mathjax.submodule_search_locations[0]) / "static" / "mathjax" / "tex-svg.js"))
    mathjax_path = "tex-svg.js"

ENTRY = re.compile(r"^(\s*)(\*{0,2}\w[\w., /*]{0,40}?)\s+: (\S.*)$")
CODE = re.compile(r"(`[^`]*`)")


def format_docstring(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Convert a docstring for Sphinx: lines like `q : (n,) positions` become lists, everything else is plain text."""
    found: list[str] = []
    inside = ""  # indentation of the continuation lines of an entry
    for line in lines:
        if entry := ENTRY.match(line):
            if not inside:
                found.append("")
            inside = entry[1] + " "
            found.append(f"{entry[1]}:{escaped(entry[2])}: {escaped(entry[3])}")
            continue
        if inside and not line.startswith(inside):
            inside = ""
            found.append("")
        found.append(escaped(line))
    lines[:] = found


def escaped(line: str) -> str:
    """Return text with escaped stars, bars and trailing underscores; code in backticks is unchanged."""
    parts = CODE.split(line)
    return "".join(part if k % 2 else re.sub(r"([*|]|_(?=\W|$))", r"\\\1", part) for k, part in enumerate(parts))


def setup(app: Any) -> dict[str, bool]:
    """Register the extension; called by Sphinx."""
    app.add_config_value("gallery_run", True, "env")
    app.connect("builder-inited", gallery.build)
    app.connect("autodoc-process-docstring", format_docstring)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
