"""Consoles for lines that people read: a terminal breaks lines between words, a log never does.

So paths and commands can be copied from a log or a pipe.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["new_console"]

_WHOLE = 1_000_000  # columns where no line is broken


def new_console(**settings: Any) -> "Console":
    """A console of rich with these settings; every console of the program comes from here."""
    from rich.console import Console

    console = Console(highlight=False, emoji=False, force_jupyter=False, **settings)
    if not console.file.isatty():
        console.width = _WHOLE
    return console
