"""Builds the page that looks inside a translator as one HTML file that needs no network.

The file holds the styles, the JavaScript modules and the trace. An import map gives each module
name its source as a ``data:`` URL: the file runs the same modules as the server. The page's policy
names styles, import map and loader by their hashes. ``'strict-dynamic'`` lets the loader, and no
markup, add the modules.
"""

import base64
import hashlib
import json
from collections.abc import Mapping
from html import escape
from importlib.resources import files

__all__ = ["LOOK_FOLDER", "build_page"]

LOOK_FOLDER = files("glassformer.web") / "static" / "look"
"""The folder with look.html, its styles and its modules."""
_STYLES = ("theme.css", "look.css")
_LINKS = "\n".join(f'<link rel="stylesheet" href="{name}">' for name in _STYLES)
_SCRIPT = '<script type="module" src="main.js"></script>'
_CHARSET = '<meta charset="utf-8">'
_LOADER = (
    'document.head.append(Object.assign(document.createElement("script"),'
    ' { type: "module", src: "data:text/javascript,import \'main.js\'" }));'
)


def build_page(stored: Mapping[str, object], *, title: str = "") -> str:
    """The page as one HTML file; its modules read `stored` as JSON.

    ``stored["trace"]`` is a trace's JSON as Python values. ``stored["without"]`` and
    ``stored["changed"]`` are precomputed answers, or None.
    """
    style = "".join((LOOK_FOLDER / name).read_text("utf-8") for name in _STYLES)
    imports = _json({"imports": _module_urls()})
    page = (LOOK_FOLDER / "look.html").read_text("utf-8")
    policy = (
        f"default-src 'none'; script-src 'strict-dynamic' '{_hash(imports)}' '{_hash(_LOADER)}';"
        f" style-src '{_hash(style)}'; img-src data:; base-uri 'none'; form-action 'none'"
    )
    meta = f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    scripts = (
        f'<script type="application/json" id="stored">{_json(stored)}</script>\n'
        f'<script type="importmap">{imports}</script>\n<script>{_LOADER}</script>'
    )
    if title:
        page = page.replace("<title>", f"<title>{escape(title)} · ")
    page = page.replace(_CHARSET, f"{_CHARSET}\n{meta}")
    page = page.replace(_LINKS, f"<style>{style}</style>")
    return page.replace(_SCRIPT, scripts)


def _module_urls() -> dict[str, str]:
    """The source of each module as a ``data:`` URL, by the module's name.

    Nothing is relative to a ``data:`` URL, so the modules import each other by name, not by path.
    """
    sources = {
        file.name: file.read_text("utf-8").replace(' from "./', ' from "')
        for file in LOOK_FOLDER.iterdir()
        if file.name.endswith(".js")
    }
    return {
        name: f"data:text/javascript;base64,{base64.b64encode(source.encode()).decode()}"
        for name, source in sorted(sources.items())
    }


def _json(value: object) -> str:
    """JSON of any texts, in which no HTML parser finds the end of the script element."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
