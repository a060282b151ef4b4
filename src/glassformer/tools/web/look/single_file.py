"""Builds a page as one HTML file that needs no network.

The file holds the styles, the server's JavaScript modules and the data. An import map gives each
module's path its source as a ``data:`` URL. The page's policy names styles, import map and loader
by their hashes. ``'strict-dynamic'`` lets the loader, and no markup, add the modules.
"""

import base64
import hashlib
import json
import posixpath
import re
import zlib
from collections.abc import Iterable, Mapping
from html import escape
from importlib.resources import files
from typing import Literal

__all__ = ["Face", "build_page"]

Face = Literal["look", "translate"]
"""The page that looks inside the model, or the translator's page."""
_STATIC = files("glassformer.tools.web") / "static"
_PAGES: dict[Face, str] = {"look": "look/look.html", "translate": "translate.html"}
_STYLE = re.compile(r'<link rel="stylesheet" href="([^"]+)">\n')
_SCRIPT = re.compile(r'<script type="module" src="([^"]+)"></script>')
_IMPORT = re.compile(r'(?<= from )"(\.[^"]+)"')
_CHARSET = '<meta charset="utf-8">'
_SERVER, _ENGINE = "look/server.js", "engine/local.js"
_LOADER = (
    'document.head.append(Object.assign(document.createElement("script"),'
    ' {{ type: "module", src: "data:text/javascript,{}" }}));'
)


def build_page(
    stored: Mapping[str, object], *, title: str = "", face: Face = "look", weights: bytes = b""
) -> str:
    """The page as one HTML file; its modules read ``stored`` as JSON.

    Without ``weights``, the page shows one sentence: ``stored["trace"]`` is a trace's JSON as
    Python values; ``stored["without"]`` and ``stored["changed"]`` are precomputed answers, or None.
    With ``weights``, the page translates any text by an engine without a server. ``stored`` is then
    the record of :mod:`glassformer.tools.web.living_page`.
    """
    path = _PAGES[face]
    page = _text(path)
    styles = "".join(_text(_placed(path, name)) for name in _STYLE.findall(page))
    [main] = _SCRIPT.findall(page)
    mains = [_placed(path, main), *(["engine/file.js"] if weights else [])]
    imports = _json({"imports": _modules(mains, alive=bool(weights))})
    loader = _LOADER.format("; ".join(f"import '{name}'" for name in mains))
    wasm = " 'wasm-unsafe-eval'" if weights else ""
    policy = (
        f"default-src 'none'; script-src 'strict-dynamic' '{_hash(imports)}' '{_hash(loader)}'"
        f"{wasm}; style-src '{_hash(styles)}'; img-src data:; base-uri 'none'; form-action 'none'"
    )
    meta = f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    data = _json(stored)
    scripts = f'<script type="application/json" id="{"about" if weights else "stored"}">{data}'
    scripts += f'</script>\n<script type="importmap">{imports}</script>\n<script>{loader}</script>'
    if weights:
        crc = zlib.crc32(weights, zlib.crc32(data.encode()))
        encoded = base64.b64encode(weights).decode()
        opening = f'<script type="text/plain" id="weights" data-crc="{crc}">'
        scripts = f"{opening}{encoded}</script>\n{scripts}"
    if title:
        page = page.replace("<title>", f"<title>{escape(title)} · ")
    page = page.replace(_CHARSET, f"{_CHARSET}\n{meta}")
    page = _STYLE.sub("", page).replace("</head>", f"<style>{styles}</style>\n</head>")
    return _SCRIPT.sub(lambda _: scripts, page)


def _text(path: str) -> str:
    return (_STATIC / path).read_text("utf-8")


def _placed(path: str, name: str) -> str:
    """The path, without static/, of the file ``name`` that the file ``path`` refers to."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), name)).removeprefix("static/")


def _modules(mains: Iterable[str], *, alive: bool) -> dict[str, str]:
    """The source of ``mains`` and of all modules that they import, by path, as ``data:`` URLs.

    A ``data:`` URL has no relative paths, so the modules import each other by full path.
    """
    urls: dict[str, str] = {}

    def add(path: str) -> None:
        def imported(match: re.Match[str]) -> str:
            placed = _placed(path, match[1])
            placed = _ENGINE if alive and placed == _SERVER else placed
            if placed not in urls:
                add(placed)
            return f'"{placed}"'

        urls[path] = ""  # modules may import each other
        source = _IMPORT.sub(imported, _text(path))
        urls[path] = f"data:text/javascript;base64,{base64.b64encode(source.encode()).decode()}"

    for main in mains:
        add(main)
    return dict(sorted(urls.items()))


def _json(value: object) -> str:
    """JSON with escapes for <, > and &, so that no text ends the script element."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
