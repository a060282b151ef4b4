"""The site: ``make docs`` builds it, runs every example, and fails if one fails."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import pages  # noqa: E402  this folder's own module
from docutils import nodes  # noqa: E402
from latex2mathml.converter import convert  # noqa: E402

project = "Glassformer"
author = "the Glassformer authors"
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_design",
]
# The notebooks are for download; another page includes the table of names.
exclude_patterns = ["_build", "generated/notebooks", "generated/names.md"]
html_math_renderer = "mathml"
html_theme = "pydata_sphinx_theme"
html_static_path = ["_static"]
html_title = "Glassformer"
html_show_sourcelink = False
html_theme_options: dict[str, Any] = {
    "navbar_end": ["theme-switcher"],
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "header_links_before_dropdown": 3,
    "footer_end": [],
}
settings = tomllib.loads((HERE.parent / "pyproject.toml").read_text("utf-8"))["tool"]["glassformer"]
if settings["repository"]:
    html_theme_options["github_url"] = settings["repository"]
html_context = {"default_mode": "auto"}
html_css_files = ["glassformer.css"]
html_js_files = ["frames.js"]
# Pages without pages below them have nothing to navigate at the side.
_SINGLE = ("live", "life", "pictures", "recurrence", "generated/mistakes", "glossary", "reading")
_PLAIN = ("gpu", "api", "paper", "measurements", "decisions", "security", "reliability")
_PLAIN += ("before-release",)
html_sidebars: dict[str, list[str]] = {page: [] for page in (*_SINGLE, *_PLAIN)}
html_sidebars["generated/from-other-names"] = []
myst_enable_extensions = ["colon_fence", "dollarmath", "deflist"]
myst_heading_anchors = 3
suppress_warnings = ["mystnb.unknown_mime_type"]

# Every code cell of every page runs; an error in one is an error of the build.
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 120
nb_merge_streams = True
autodoc_member_order = "bysource"
autodoc_typehints = "none"

BUNDLE = HERE.parent / "build" / "docs" / "demo" / "en-de"


def write_pages(app: Any) -> None:  # noqa: ARG001  Sphinx hands the app to every listener
    """Write the pages that come from the lessons, and the figures of the demo's translator."""
    pages.write(HERE / "generated")
    look = HERE / "_static" / "look.html"
    text = "Monday, March 4, 2030"
    command = [sys.executable, "-m", "glassformer", "look", BUNDLE, "--live", "--text", text]
    subprocess.run([*command, "--out", look], check=True, stdout=subprocess.DEVNULL)


def add_index(app: Any, page: str, source: list[str]) -> None:
    """Put the words by which a reader searches for a page into the site's index.

    A page that loads files is built anew if one of them changes.
    """
    for file in re.findall(r"^:load: (\S+)$", source[0], re.MULTILINE):
        app.env.note_dependency(str((HERE / file).resolve()))
    if words := pages.SEARCHED.get(page):
        heading = r"(?m)^# .*\n"
        source[0] = re.sub(heading, lambda line: line[0] + pages.index(*words), source[0], count=1)


def formula(display: str) -> Any:
    """A visitor that writes a formula as MathML: every browser draws it, without a script."""

    def visit(translator: Any, node: nodes.math | nodes.math_block) -> None:
        translator.body.append(convert(node.astext(), display=display))
        raise nodes.SkipNode

    return visit


def setup(app: Any) -> None:
    """Sphinx calls this."""
    app.connect("builder-inited", write_pages)
    app.connect("source-read", add_index)
    app.add_html_math_renderer("mathml", (formula("inline"), None), (formula("block"), None))
