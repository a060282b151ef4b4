"""Short displays of records and pages: text in a terminal, HTML in a notebook."""

import sys
from abc import ABC, abstractmethod
from base64 import b64encode
from collections.abc import Iterator, Sequence
from functools import partial
from html import escape
from typing import Any

__all__ = ["Page", "Shown", "Table", "name_of", "notebook", "shown_form"]

_ROWS, _WIDTH, _CELL = 19, 92, 60  # rows, characters of a row and of a cell, in the text
_MOST = 200  # rows of the HTML


class Table(list[dict[str, Any]]):
    """Records that show themselves: as text, less than 2,000 characters; as HTML, 200 rows.

    ``pandas.DataFrame(table)`` takes all of them.

    >>> Table([{"head": 1, "shape": (2, 512)}, {"head": 12}])
    head  shape
       1  2 × 512
      12
    """

    def _columns(self, most: int) -> Iterator[tuple[bool, list[str]]]:
        """Each column: whether all values are numbers, and its name with the first cells."""
        for name in dict.fromkeys(name for record in self for name in record):
            values = [record.get(name) for record in self]
            cells = [*map(_cell, [name, *values[:most]]), *["…"] * (len(self) > most)]
            yield all(isinstance(value, float | int | None) for value in values), cells

    def __repr__(self) -> str:
        columns = []
        for numbers, cells in self._columns(_ROWS):
            short = [_short(cell, _CELL) for cell in cells]
            justify, width = str.rjust if numbers else str.ljust, max(map(len, short))
            columns.append([justify(cell, width) for cell in short])
        lines = ["  ".join(row).rstrip() for row in zip(*columns, strict=True)]
        return "\n".join(_short(line, _WIDTH) for line in lines) or "no records"

    def _repr_html_(self) -> str:
        columns = []
        for numbers, cells in self._columns(_MOST):
            side = "right" if numbers else "left"
            begin = f'<td style="padding: 0.2em 0.6em; text-align: {side}">'
            columns.append([f"{begin}{escape(cell)}</td>" for cell in cells])
        rows = map("".join, zip(*columns, strict=True))
        return f'<table class="dataframe"><tr>{"</tr><tr>".join(rows)}</tr></table>'


class Shown(ABC):
    """An object that terminals and notebooks show as the table of its ``records``."""

    @abstractmethod
    def records(self) -> Table:
        """The rows of the display, which ``pandas.DataFrame`` takes too."""

    @property
    def remarks(self) -> Sequence[str]:
        """Lines below the table, such as about a part of a text that has no rows."""
        return ()

    def __repr__(self) -> str:
        return "\n".join([repr(self.records()), *self.remarks])

    def _repr_html_(self) -> str:
        lines = "".join(f"<p>{escape(remark)}</p>" for remark in self.remarks)
        return self.records()._repr_html_() + lines


class Page(str):
    """An HTML page, which a notebook shows in a frame inside the cell."""

    def __repr__(self) -> str:
        return f"Page of {len(self):,} characters"

    def _repr_html_(self) -> str:
        # As data, the page has an address, which it changes, and no access to the notebook.
        data = b64encode(self.encode()).decode()
        return f'<iframe width="100%" height="800" src="data:text/html;base64,{data}"></iframe>'


def notebook() -> Any:
    """IPython's module if the kernel of a notebook runs this program, or else None."""
    module: Any = sys.modules.get("IPython")
    return module if module and hasattr(module.get_ipython(), "kernel") else None


def _cell(value: object) -> str:
    """One value for a reader: 1,024 or 0.1234, and 2 × 512 for a shape."""
    if isinstance(value, list | tuple):
        return " × ".join(map(_cell, value))
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    text = f"{value:,}" if type(value) is int else "" if value is None else str(value)
    return " ".join(text.splitlines())


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def name_of(form: object) -> tuple[str, str]:
    """Module and name of a function, of a class, or of a callable object."""
    if isinstance(form, partial):
        module, name = name_of(form.func)
        values = [*map(shown_form, form.args)]
        values += [f"{key}={shown_form(value)}" for key, value in form.keywords.items()]
        return module, f"{name} with {', '.join(values)}"
    named = form if hasattr(form, "__qualname__") else type(form)
    return named.__module__, named.__qualname__


def shown_form(value: object) -> str:
    """A form, or a value inside a ``partial``, without an address in memory."""
    return name_of(value)[1] if callable(value) or " at 0x" in str(value) else str(value)
