"""Sphinx: MyST for Markdown, the theme of pydata, numpydoc, the gallery. Nothing is fetched or
loaded from elsewhere."""

from __future__ import annotations

import os
import re
import sys
import warnings
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import formulas
import pages
import scraping

import fairveil

project, author = "Fairveil", "The Fairveil developers"
project_copyright = author
release = version = fairveil.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "numpydoc", "sphinx_gallery.gen_gallery"]
# fetches inventories: not in a build that has to work without network
if os.environ.get("FAIRVEIL_INTERSPHINX"):
    extensions.append("sphinx.ext.intersphinx")
    intersphinx_mapping = {
        "python": ("https://docs.python.org/3", None),
        "numpy": ("https://numpy.org/doc/stable", None),
        "sklearn": ("https://scikit-learn.org/stable", None),
    }
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
root_doc = "index"
exclude_patterns = [
    "README.md",
    "docs/index.md",
    "examples",
    "tests",
    "scripts",
    "**.ipynb",
]
myst_heading_anchors = 6
myst_enable_extensions = ["dollarmath"]
myst_dmath_allow_space = False
html_math_renderer = "mathml"
smartquotes = False  # two hyphens begin an option
nitpicky = False
html_theme = "pydata_sphinx_theme"
html_title = f"Fairveil {release}"
html_static_path = ["static"]
html_css_files = ["site.css"]
toc_object_entries_show_parents = "hide"
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "navigation_with_keys": False,
    "collapse_navigation": True,
    "navigation_depth": 2,
}
html_sidebars = {"api/fairveil*": []}  # a list of all names on each of 400 pages would weigh 25 MB
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False
# attributes of several classes have one name
suppress_warnings = ["config.cache", "myst.header", "ref.python"]
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
sphinx_gallery_conf = {
    "examples_dirs": "scripts",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "ignore_pattern": scraping.left_out(),
    "image_scrapers": ("matplotlib", scraping.drawn),
    "reset_argv": scraping.few_rows,
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "write_computation_times": False,
    "min_reported_time": 10_000,
    "within_subsection_order": "FileNameSortKey",
    "default_thumb_file": str(pages.DOCS / "rooms.svg"),
}

# What scripts of the gallery warn of, without this machine's paths.
warnings.formatwarning = lambda message, category, *_args, **_options: (
    f"{category.__name__}: {message}\n"
)

ANCHOR = re.compile(r'<a id="([\w-]+)"></a>')
CITED = re.compile(r"(?<![(/\w])theory\.md#([\w-]+)")
NAMED = re.compile(r"(?<![(/\w])docs/([\w/]+)\.md(?:#([\w-]+))?")
EMPHASIS = re.compile(r"((?<![\w*])\*{1,2}\w(?:[^*]*[\w.])?\*{1,2}(?![\w*]))")
WORD = re.compile(r"(`[^`\n]+`)")


def stated(app: Any, docname: str, source: list[str]) -> None:
    """Anchors that a page states by itself, for links from other pages."""
    app.env.metadata[docname]["stated"] = ANCHOR.findall(source[0])


def known(app: Any, env: Any) -> None:
    """MyST knows headings; these anchors too, from now on."""
    for found in env.metadata.values():
        for anchor in found.get("stated", ()):
            found.setdefault("myst_slugs", {}).setdefault(anchor, (0, anchor, anchor))


def plain(app: Any, what: str, name: str, found: Any, options: Any, lines: list[str]) -> None:
    """Docstrings are plain text with code in backticks: marks of reStructuredText are escaped,
    formulas kept as they are."""
    lines[:] = rewritten(lines)


def rewritten(lines: list[str]) -> list[str]:
    """The same docstring in reStructuredText."""
    out: list[str] = []
    heads = {at for at, line in enumerate(lines[1:]) if re.fullmatch(r"-{3,}", line.strip())}
    section, block, item = "", False, False
    for at, line in enumerate(lines):
        indented = line.startswith(" ")
        if at in heads:
            section = line.strip()
        if line.lstrip().startswith(">>>"):
            block = True
        if not line.strip():
            block, item = False, False
        free = section in ("", "Notes", "References")
        if free and indented and line.strip() and not block and (not out or not out[-1].strip()):
            out += ["::", ""]
            block = True
        if block or not line.strip() or at in heads or re.fullmatch(r"\s*-{3,}", line):
            out.append(line)
            if at in heads or not line.strip():
                block = False
            continue
        item = (item and indented) or re.match(r"\s*(\d+\.|[-*]|\.\.) ", line) is not None
        out.append(
            marked(line.strip() if free and not item else line, head=not free and not indented)
        )
    return out


def marked(line: str, *, head: bool = False) -> str:
    """A line whose code is code, with links into the theory."""
    if head:  # the head of a parameter: its name and type are numpydoc's
        return line
    pieces = WORD.split(line.replace("``", "`"))
    out = []
    for at, piece in enumerate(pieces):
        if at % 2:
            out.append(f"`{piece}`")
        else:
            parts = EMPHASIS.split(piece)
            kept = (
                part if at % 2 else re.sub(r"([*|\\])", r"\\\1", part)
                for at, part in enumerate(parts)
            )
            text = "".join(kept)
            text = re.sub(r"_(?=[\s.,;:)]|$)", r"\\_", text)
            text = CITED.sub(r"`theory: \1 <../docs/theory.html#\1>`__", text)
            out.append(NAMED.sub(linked, text))
    return "".join(out)


def linked(found: re.Match[str]) -> str:
    """A page that a docstring names, as a link to it."""
    name, anchor = found.groups()
    return (
        f"`{name.replace('_', ' ')} "
        f"<../docs/{name}.html{'' if anchor is None else f'#{anchor}'}>`__"
    )


def setup(app: Any) -> None:
    """Sphinx asks for it."""
    formulas.setup(app)
    app.connect("source-read", stated)
    app.connect("env-updated", known)
    app.connect("autodoc-process-docstring", plain, priority=100)
