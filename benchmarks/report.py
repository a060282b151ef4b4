"""Tables for people, and JSON for everything else."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.pairs import Spread

__all__ = ["save", "shown", "table"]


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table with aligned columns.

    >>> print(table("speed", ["who", "tokens/s"], [["ours", "9"]]))
    **speed**
    <BLANKLINE>
    | who  | tokens/s |
    |------|----------|
    | ours | 9        |
    """
    widths = [max(map(len, cells)) for cells in zip(columns, *rows, strict=True)]
    lines = [
        "| "
        + " | ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
        + " |"
        for cells in (columns, *rows)
    ]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([f"**{title}**", "", lines[0], rule, *lines[1:]])


def shown(value: Spread, form: str = ",.0f") -> str:
    """
    >>> shown(Spread(2.5, 2.25, 3.0), ".2f")
    '2.50 (2.25 to 3.00)'
    """
    return f"{value.median:{form}} ({value.low:{form}} to {value.high:{form}})"


def save(path: Path, figures: dict[str, Any]) -> None:
    """Write the figures as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(figures, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
