"""Consoles for lines that people read: lines break between words on a terminal, never in a log.

So a reader can copy paths and commands from a log or a pipe.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["new_console"]

_WHOLE = 1_000_000  # the width in columns of a log, where no line breaks


def new_console(**settings: Any) -> "Console":
    """A console of rich with the given ``settings``; the program makes every console here."""
    from rich.console import Console

    console = Console(highlight=False, emoji=False, force_jupyter=False, **settings)
    if not console.file.isatty():
        console.width = _WHOLE
    return console
