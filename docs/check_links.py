"""``python docs/check_links.py SITE``: every link of a built site leads somewhere.

Nothing on a page may load from another host. Links to other sites are not followed. An output of a
cell is a picture, not its name, and plain text of an output is short.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_LOADED = {"script": "src", "img": "src", "iframe": "src", "link": "href", "source": "src"}
_RELATIONS = {"stylesheet", "icon", "preload", "modulepreload"}  # of <link>: these are loaded
_PLAIN = {"text_plain", "stream"}  # classes of an output that is plain text
_MOST = 2000  # characters of plain text in an output


class _Page(HTMLParser):
    """The ids, the links, what the page loads, and the plain text of its cells' outputs."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.outputs: list[str] = []
        self._depth = 0  # of elements <div> within an output of plain text
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        classes = set(values.get("class", "").split())
        if tag == "div" and (self._depth or ("output" in classes and classes & _PLAIN)):
            self.outputs += [] if self._depth else [""]
            self._depth += 1
        self.ids |= {values[name] for name in ("id", "name") if values.get(name)}
        if tag == "a" and values.get("href"):
            self.links.append(values["href"])
        address = values.get(_LOADED.get(tag, ""), "")
        if address and (tag != "link" or _RELATIONS & set(values.get("rel", "").split())):
            self.loaded.append(address)

    def handle_endtag(self, tag: str) -> None:
        self._depth -= tag == "div" and self._depth > 0

    def handle_data(self, data: str) -> None:
        if self._depth:
            self.outputs[-1] += data


def faults(site: Path) -> list[str]:
    """A line for each link without a target, file of another host, and output that nobody reads."""
    files = [path for path in site.rglob("*.html") if "webpack" not in path.name]  # a template
    pages = {path: _Page(path.read_text(encoding="utf-8")) for path in files}
    lines = []
    for path, page in pages.items():
        name = path.relative_to(site)
        for output in page.outputs:
            if "<Figure size" in output:
                lines.append(f"{name}: {output.strip()} stands in the place of a picture")
            elif len(output) > _MOST:
                lines.append(f"{name}: {len(output):,} characters of output: {output[:40]!r} …")
        for address in page.loaded:
            if urlsplit(address).netloc:
                lines.append(f"{name}: loads {address} from another host")
        for address in [*page.links, *page.loaded]:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            anchor = unquote(parts.fragment)
            if not target.is_file():
                lines.append(f"{name}: {address}: no such file")
            # An anchor with "=" is no place: it says which panel a figure shows.
            elif "=" not in anchor and target in pages and anchor not in {"", *pages[target].ids}:
                lines.append(f"{name}: {address}: no such place")
    return sorted(set(lines))


if __name__ == "__main__":
    found = faults(Path(sys.argv[1]).resolve())
    print("\n".join(found) or "every link leads somewhere, and every output is short")
    sys.exit(bool(found))
