"""The names of other toolkits, each with its name here: the answer to an unknown name.

``other_names.md`` beside this file is the table, and a page of the site.
"""

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from glassformer.support.errors import nearest

__all__ = ["check_keywords", "remedy", "rows"]


@cache
def rows() -> dict[str, list[str]]:
    """The row of each name elsewhere: names, the name here, what differs, a line to run."""
    lines = Path(__file__).with_suffix(".md").read_text("utf-8").splitlines()
    table = [line.strip("| ").split(" | ") for line in lines if line.startswith("| ")]
    return {name: row for row in table for name in re.findall(r"`([^`]+)`", row[0])}


def remedy(name: str, known: Iterable[str]) -> str:
    """The end of an error about an unknown name: the name here, or the nearest known name.

    If the name here is none of ``known``, the error says where to look. Without ``known``, any name
    here is a remedy.

    >>> remedy("--num-beams", ["--beam"]), remedy("dropuot", ["dropout"])
    (': here it is --beam (1 is greedy search)', " (did you mean 'dropout'?)")
    """
    names = {_plain(each): each for each in known}
    if row := rows().get(_plain(name)):
        options = set(re.findall(r"`(\w+)`", row[1]))
        valid = not (options and names) or options & names.keys()
        here = re.sub(r"`(\w+)`", lambda code: names.get(code[1], code[1]), row[1])
        return f": {'here it is' if valid else 'see'} {here} ({row[2]})".replace("`", "")
    return nearest(name, names.values())


def _plain(name: str) -> str:
    """An option's name without the form of a flag."""
    return name.lstrip("-").replace("-", "_")


def check_keywords(call: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Raise TypeError for a keyword that the call does not take, with the remedy."""
    names = set(known)
    for name in given:
        if name not in names:
            raise TypeError(f"{call} takes no {name!r}{remedy(name, names)}")
