"""The page that looks inside, as one file: styles, modules and a trace in it, and no network.

The same modules are served one by one by ``glassformer look BUNDLE``. Here they become one script:
each module a function that returns what it exports, called after those that it imports. A policy
inside the file allows this script and this style by their hashes and forbids everything else.
"""

import base64
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from graphlib import TopologicalSorter
from html import escape
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

__all__ = ["build_page", "join_modules", "look_folder"]

_ENTRY = "main.js"
_IMPORT = re.compile(r'^import \{ ([\w, ]+) \} from "\./([\w-]+\.js)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async )?(?:function|const|class) (\w+))", re.MULTILINE)
_STYLES = ("theme.css", "look.css")
_LINKS = "\n".join(f'<link rel="stylesheet" href="{name}">' for name in _STYLES)
_SCRIPT = '<script type="module" src="main.js"></script>'
_CHARSET = '<meta charset="utf-8">'


def look_folder() -> Traversable:
    """The page's own files: look.html, its styles and the modules."""
    return files("glassformer.web") / "static" / "look"


def build_page(stored: Mapping[str, Any], *, title: str = "") -> str:
    """One HTML file that works from a disk: ``stored`` is what its scripts read, as JSON.

    ``stored["trace"]`` is a trace's JSON as Python values; ``stored["film"]``,
    ``stored["without"]`` and ``stored["changed"]`` are what was worked out beforehand, or None.
    """
    folder = look_folder()
    style = "".join((folder / name).read_text("utf-8") for name in _STYLES)
    script = join_modules(_modules(folder), _ENTRY)
    page = (folder / "look.html").read_text("utf-8")
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}';"
        " img-src data:; base-uri 'none'; form-action 'none'"
    )
    meta = f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    data = f'<script type="application/json" id="stored">{_json(stored)}</script>'
    if title:
        page = page.replace("<title>", f"<title>{escape(title)} · ")
    page = page.replace(_CHARSET, f"{_CHARSET}\n{meta}")
    page = page.replace(_LINKS, f"<style>{style}</style>")
    return page.replace(_SCRIPT, f'{data}\n<script type="module">{script}</script>')


def join_modules(modules: Mapping[str, str], entry: str) -> str:
    """Modules by their file names, as one script that does what ``entry`` does.

    Understood are imports ``import { a, b } from "./other.js";`` and declarations that begin with
    ``export``; whatever else of the kind stands in a module is a ValueError.

    >>> print(join_modules({"a.js": "export const one = 1;\\n",
    ...                     "b.js": 'import { one } from "./a.js";\\none;\\n'}, "b.js"))
    const module_a = (() => {
    const one = 1;
    return { one };
    })();
    const module_b = (() => {
    const { one } = module_a;
    one;
    return {  };
    })();
    <BLANKLINE>
    """
    needs = {
        name: sorted({match[2] for match in _IMPORT.finditer(text)})
        for name, text in sorted(modules.items())
    }
    order = [
        name for name in TopologicalSorter(needs).static_order() if name in _reach(entry, needs)
    ]
    return "".join(_as_function(name, modules[name]) for name in order)


def _reach(entry: str, needs: Mapping[str, list[str]]) -> set[str]:
    """The module and all that it imports."""
    found: set[str] = set()
    waiting = [entry]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += needs[name]
    return found


def _as_function(name: str, text: str) -> str:
    names = [match[2] for match in _EXPORT.finditer(text)]
    body = _EXPORT.sub(r"\1", _IMPORT.sub(_as_constants, text))
    if left := re.search(r"^(import|export)\b.*", body, re.MULTILINE):
        raise ValueError(f"{name}: cannot be joined: {left[0]}")
    return f"const {_variable(name)} = (() => {{\n{body}return {{ {', '.join(names)} }};\n}})();\n"


def _as_constants(match: re.Match[str]) -> str:
    return f"const {{ {match[1]} }} = {_variable(match[2])};\n"


def _variable(name: str) -> str:
    return "module_" + name.removesuffix(".js").replace("-", "_")


def _modules(folder: Traversable) -> dict[str, str]:
    return dict(_texts(folder))


def _texts(folder: Traversable) -> Iterator[tuple[str, str]]:
    for file in folder.iterdir():
        if file.name.endswith(".js"):
            yield file.name, file.read_text("utf-8")


def _json(value: object) -> str:
    """JSON that no parser of HTML takes for the end of its element, whatever texts it holds."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
