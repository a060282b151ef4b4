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

    A name here that is none of ``known`` is no remedy. Without ``known``, any name here is one.

    >>> remedy("--num-beams", ["--beam"]), remedy("dropuot", ["dropout"])
    (': here it is beam (1 is greedy search)', " (did you mean 'dropout'?)")
    """
    row, names = rows().get(name.lstrip("-").replace("-", "_")), set(known)
    options = {*re.findall(r"`(\w+)`", row[1])} if row else set()
    if row and (not options or not names or options & names):
        return f": here it is {row[1]} ({row[2]})".replace("`", "")
    return nearest(name, names)


def check_keywords(call: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Raise TypeError for a keyword that the call does not take, with the remedy."""
    names = set(known)
    for name in given:
        if name not in names:
            raise TypeError(f"{call} takes no {name!r}{remedy(name, names)}")
