"""``python docs/check_links.py SITE``: every link of a built site leads somewhere.

Nothing on a page may load from another host. Links to other sites are not followed.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_LOADED = {"script": "src", "img": "src", "iframe": "src", "link": "href", "source": "src"}
_RELATIONS = {"stylesheet", "icon", "preload", "modulepreload"}  # of <link>: these are loaded


class _Page(HTMLParser):
    """The ids, the links, and what the page loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.ids |= {values[name] for name in ("id", "name") if values.get(name)}
        if tag == "a" and values.get("href"):
            self.links.append(values["href"])
        address = values.get(_LOADED.get(tag, ""), "")
        if address and (tag != "link" or _RELATIONS & set(values.get("rel", "").split())):
            self.loaded.append(address)


def faults(site: Path) -> list[str]:
    """A line for each link without a target, and for each file that another host would send."""
    files = [path for path in site.rglob("*.html") if "webpack" not in path.name]  # a template
    pages = {path: _Page(path.read_text(encoding="utf-8")) for path in files}
    lines = []
    for path, page in pages.items():
        name = path.relative_to(site)
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
    print("\n".join(found) or "every link leads somewhere")
    sys.exit(bool(found))
